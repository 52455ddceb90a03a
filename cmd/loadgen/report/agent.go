package report

import "fmt"

// agentGoals judges what the agent core is held to.
func (b *Report) agentGoals() (out []line) {
	d := &b.Result
	if t := d.Tools; t != nil {
		out = append(out, atMost("a tool call in process, all that the loop does for it, p50", t.Process.P50, 2, "ms", short(t.Bare.P50)+" ms"))
		if t.Note == "" {
			out = append(out, atMost("a tool call in a fresh bubblewrap shell, the same, p50", t.Shell.P50, 30, "ms", short(t.BareShell.P50)+" ms"))
		} else {
			out = append(out, line{what: "a tool call in a fresh bubblewrap shell", goal: "≤ 30.0 ms", measured: "not measured: " + t.Note, missed: "by being unknown"})
		}
	}
	if w := d.Waiting; w != nil {
		out = append(out, atMost(fmt.Sprintf("memory (RSS), peak with %d runs that wait for slow models", w.Runs), w.Peak, 150, "MiB", short(w.Idle)+" MiB"))
	}
	if s := d.Streaming; s != nil {
		what := fmt.Sprintf("%d chats whose answers stream at once: ", s.Chats)
		out = append(out, atMost(what+"from the model's last word until the final is seen, p99", s.Final.P99, 100, "ms", ""))
		gap := line{what: what + "two previews of one chat, the closest", goal: "≥ 1000 ms", measured: short(s.Closest) + " ms", met: s.Closest >= 1000}
		if !gap.met {
			gap.missed = fmt.Sprintf("by %.0f %%", (1-s.Closest/1000)*100)
		}
		out = append(out, gap)
	}
	if s := d.Streams; s != nil {
		out = append(out, streamGoals(s)...)
	}
	return out
}

// streamGoals judges open event streams.
func streamGoals(s *Streams) []line {
	what := fmt.Sprintf("memory (RSS), peak with %d idle event streams and %d active ones", s.Idle, s.Active)
	if s.Note != "" {
		return []line{{what: what, goal: "≤ 400 MiB", measured: s.Note, missed: "by being unknown"}}
	}
	return []line{
		atMost(what, s.Peak, 400, "MiB", short(s.Before)+" MiB"),
		atMost("from asking over the API to the first event, p99", s.First.P99, 5, "ms", ""),
	}
}

func (b *Report) toolRows(row func(string, Percentiles)) {
	if s := b.Streaming; s != nil {
		row(fmt.Sprintf("last word to final, %d chats stream", s.Chats), s.Final)
	}
	if s := b.Streams; s != nil && s.Note == "" {
		row("first event over the API", s.First)
		row(fmt.Sprintf("first event over the API, %d idle streams", s.Idle), s.FirstAmong)
	}
	t := b.Tools
	if t == nil {
		return
	}
	row("tool call in process", t.Process)
	row("tool call in process, bare client", t.Bare)
	if t.Note == "" {
		row("tool call in a fresh bubblewrap shell", t.Shell)
		row("bubblewrap alone, with echo", t.BareShell)
	}
}

func (b *Report) agentDetails(say func(string, ...any)) {
	d := &b.Result
	if t := d.Tools; t != nil {
		say("\nA tool call in process: processor time %s ms, %s commits.", short(t.CPU), short(t.Commits))
	}
	if w := d.Waiting; w != nil {
		say("\n%d runs that wait: %s MiB at %v, peak %s; %s goroutines, %s KiB of heap in use and %s KiB of stacks for each; %s of a core while they wait, a word each %v.",
			w.Runs, short(w.Now), b.WaitFor, short(w.Peak), short(w.Goroutines), short(w.Heap), short(w.Stack), short(w.CPU), b.WordEvery)
	}
	if s := d.Streaming; s != nil {
		stageTable(say, "streaming", s.Stages)
		say("\n%d chats stream, a word of %d bytes each %v: %.0f previews a second in all, %s of a core, %s MiB at most.", s.Chats, b.StreamWord, b.StreamEvery, s.Previews, short(s.CPU), short(s.Peak))
	}
	if s := d.Streams; s != nil && s.Note == "" {
		say("\nEvent streams: %s MiB before, %s with %d idle, %s with %d active beside; %.0f opened a second; %s goroutines for each; %.0f events a second read, %s of a core.",
			short(s.Before), short(s.IdleNow), s.Idle, short(s.Now), s.Active, s.Opened, short(s.Goroutines), s.Events, short(s.CPU))
	}
}
