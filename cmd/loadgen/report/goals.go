package report

import "fmt"

// A line is one goal next to what was measured.
type line struct {
	what, goal, measured, floor string
	met                         bool
	missed                      string
}

// atMost judges a figure that must not be above a goal.
func atMost(what string, got, goal float64, unit, floor string) line {
	l := line{what: what, goal: fmt.Sprintf("≤ %s %s", short(goal), unit), measured: short(got) + " " + unit, floor: floor, met: got <= goal}
	if !l.met {
		l.missed = fmt.Sprintf("by %.0f %%", (got/goal-1)*100)
	}
	return l
}

// timesFloor judges a time by the floor's of the same run.
func timesFloor(what string, got, floor, goal float64) line {
	l := atMost(what, got/floor, goal, "times", short(floor)+" ms")
	l.measured = fmt.Sprintf("%s times (%s ms)", short(got/floor), short(got))
	return l
}

// ofFloor judges a rate by the floor's of the same run.
func ofFloor(what string, ratio, rate, floor, goal float64) line {
	l := line{what: what, goal: fmt.Sprintf("≥ %s of the bare loop", short(goal)), measured: fmt.Sprintf("%.2f (%.0f/s)", ratio, rate),
		floor: fmt.Sprintf("%.0f/s", floor), met: ratio >= goal}
	if !l.met {
		l.missed = fmt.Sprintf("by %.0f %%", (1-ratio/goal)*100)
	}
	return l
}

func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (b *Report) goals() []line {
	d := &b.Result
	var out []line
	if l := d.Latency; l != nil {
		out = append(out,
			timesFloor("latency p50, one in flight", l.Gateway.P50, l.Bare.P50, 2.5),
			timesFloor("latency p99, one in flight", l.Gateway.P99, l.Bare.P99, 3),
			atMost("processor time per message, one in flight", l.CPU, 3, "ms", short(l.BareCPU)+" ms"))
	}
	if l := d.Rate; l != nil {
		what := fmt.Sprintf("%g messages/s", b.Rate)
		out = append(out,
			timesFloor("latency p50, "+what, l.Gateway.P50, l.Bare.P50, 2.5),
			timesFloor("latency p99, "+what, l.Gateway.P99, l.Bare.P99, 3))
	}
	if d.Burst != nil {
		out = append(out, b.burstGoals("", d.Burst)...)
	}
	if d.Thinking != nil {
		out = append(out, b.burstGoals(fmt.Sprintf(", the model takes %s", b.Thinking), d.Thinking)...)
	}
	if m := d.Memory; m != nil {
		out = append(out,
			atMost("memory (RSS), idle", m.Idle, 36, "MiB", ""),
			atMost("memory (RSS), peak of a burst", m.Peak, 120, "MiB", short(m.BarePeak)+" MiB"),
			atMost("memory (RSS), "+m.Settle+" after it", m.After, 60, "MiB", ""),
			atMost("goroutines after the burst, above idle", m.GoroutinesAfter-m.GoroutinesIdle, 5, "", ""))
	}
	out = append(out, b.agentGoals()...)
	out = append(out, b.councilGoals()...)
	if s := d.Start; s != nil {
		out = append(out,
			atMost("cold start until every platform hears of it, new vault", Median(s.Fresh), 80, "ms", short(Median(s.Bare))+" ms"),
			atMost("cold start, known vault", Median(s.Again), 80, "ms", short(Median(s.Bare))+" ms"),
			atMost("the program's file", s.Base, 45, "MiB", ""))
	}
	if s := d.Scale; s != nil {
		with := fmt.Sprintf(", %d rows and %d chats, by the same on an empty database", s.Rows, s.Lanes)
		if s.History > 0 {
			with = fmt.Sprintf(", %d rows, %d chats, %d rows each of audit log and usage, by the same on an empty database", s.Rows, s.Lanes, s.History)
		}
		out = append(out,
			atMost("latency p50"+with, s.P50, 1.2, "times", short(s.Small.P50)+" ms"),
			atMost("latency p99"+with, s.P99, 1.2, "times", short(s.Small.P99)+" ms"),
			atMost("burst"+with, s.Ratio, 1.2, "times", ""))
	}
	out = append(out, b.indexGoals()...)
	if d.Build > 0 {
		out = append(out, atMost("cold go build, empty cache", d.Build, 180, "s", ""))
	}
	v := d.Verdict
	out = append(out, atMost(fmt.Sprintf("lost, doubled, out of order, of %d messages in all", v.Messages), float64(v.Lost+v.Doubled+v.Disorder), 0, "", ""))
	return out
}

// burstGoals judges the rounds by their medians.
func (b *Report) burstGoals(with string, d *Burst) []line {
	pick := func(f func(Round) float64) float64 {
		var list []float64
		for _, r := range d.Rounds {
			list = append(list, f(r))
		}
		return Median(list)
	}
	what := fmt.Sprintf("burst of %d chats × %d%s", b.Chats, b.Each, with)
	cpu, bare := pick(func(r Round) float64 { return r.CPU }), pick(func(r Round) float64 { return r.BareCPU })
	rate, floor := pick(func(r Round) float64 { return r.Gateway }), pick(func(r Round) float64 { return r.Bare })
	return []line{
		ofFloor(what, pick(func(r Round) float64 { return r.Ratio }), rate, floor, .45),
		atMost("processor time per message, "+what, cpu, 1.2, "ms", short(bare)+" ms"),
		atMost("processor time of the first messages of new chats, by later ones, "+what, d.First.CPU/cpu, 1.3, "times", short(cpu)+" ms"),
	}
}
