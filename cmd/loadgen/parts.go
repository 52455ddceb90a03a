package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/floor"
	"gatehouse/cmd/loadgen/model"
	"gatehouse/cmd/loadgen/report"
	"gatehouse/cmd/loadgen/schemas"
)

// A bench is one run of the tool.
type bench struct {
	c        *runCmd
	dir      string
	model    *model.Server // that both sides ask; nil: --quote
	data     report.Result
	settling settling
	schemas  schemas.Schemas // of the gateways, with --database
	say      func(format string, a ...any)
}

// Run is called by kong.
func (c *runCmd) Run(ctx context.Context) (err error) {
	b := &bench{c: c, schemas: schemas.Schemas{Address: c.Database}, say: func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }}
	if b.c.Program, err = filepath.Abs(c.Program); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(c.Dir, "loadgen-"); err != nil {
		return err
	}
	if !c.Keep {
		defer os.RemoveAll(b.dir)
	}
	if c.Database != "" && !c.Keep {
		defer func() { err = errors.Join(err, b.schemas.Drop()) }()
	}
	began := time.Now()
	b.data = report.Result{Machine: report.ThisMachine(), Commit: report.Commit(ctx), At: began.UTC().Truncate(time.Second), Chats: c.Chats, Each: c.Each, Discord: c.Discord, Judged: report.Judgement{}, Build: c.Build.Seconds()}
	if !c.Quote {
		if b.model, err = model.Open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.model.Close()) }()
	}
	if b.data.Fsync, b.data.Datasync, err = floor.Sync(b.dir, 300); err != nil {
		return err
	}
	if err := b.parts(ctx); err != nil {
		return err
	}
	b.data.Took = time.Since(began).Round(time.Second).String()
	if err := b.report(); err != nil {
		return err
	}
	if v := b.data.Verdict; v.Bad() {
		return fmt.Errorf("%d of %d messages lost, %d doubled, %d out of order", v.Lost, v.Messages, v.Doubled, v.Disorder)
	}
	return nil
}

func (b *bench) parts(ctx context.Context) error {
	run := map[string]func(context.Context) error{
		"start": b.start, "memory": b.memory, "latency": b.latency, "rate": b.rate, "burst": b.burst, "thinking": b.thinking, "fsync": b.fsync,
		"tools": b.tools, "waiting": b.waiting, "streaming": b.streaming, "streams": b.streams, "council": b.councils, "scale": b.scale, "index": b.index,
	}
	for _, name := range allParts {
		if len(b.c.Only) > 0 && !slices.Contains(b.c.Only, name) {
			continue
		}
		b.data.Busy = append(b.data.Busy, b.quiet(ctx))
		b.say("%s …", name)
		if err := run[name](ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), b.settling.gw.end())
		}
	}
	return b.lateMemory(ctx)
}

// quiet waits until others use less than a tenth of the machine, and returns how much
// they use.
func (b *bench) quiet(ctx context.Context) float64 {
	for over := time.Now().Add(b.c.Quiet); ; {
		if share := floor.Busy(ctx); share < .1 || time.Now().After(over) || ctx.Err() != nil {
			return share
		}
	}
}

// blocks is how many turns the sides take, so that both meet the same machine.
const blocks = 10

func (b *bench) latency(ctx context.Context) (err error) {
	b.data.Latency, err = b.timed(ctx, func(s *side, n int) ([]field.Sample, error) { return s.OneByOne(ctx, n) })
	return err
}

func (b *bench) rate(ctx context.Context) (err error) {
	b.data.Rate, err = b.timed(ctx, func(s *side, n int) ([]field.Sample, error) { return s.OpenLoop(ctx, n, b.c.Rate) })
	return err
}

func (b *bench) timed(ctx context.Context, load func(*side, int) ([]field.Sample, error)) (*report.Latency, error) {
	gw, bare, err := b.pair(ctx, 10, false)
	if err != nil {
		return nil, err
	}
	defer bare.end()
	var got [2][]field.Sample
	var used [2]time.Duration
	before, err := gw.Series(ctx)
	if err != nil {
		return nil, errors.Join(err, gw.end())
	}
	for range blocks {
		for i, s := range []*side{gw, bare} {
			t, cpu, err := s.measured(func() ([]field.Sample, error) { return load(s, b.c.Messages/blocks) })
			if err != nil {
				return nil, errors.Join(err, gw.end())
			}
			got[i], used[i] = append(got[i], t...), used[i]+cpu
		}
	}
	after, err := gw.Series(ctx)
	if err != nil {
		return nil, errors.Join(err, gw.end())
	}
	n := float64(b.c.Messages / blocks * blocks)
	d := &report.Latency{Gateway: report.Summary(field.Times(got[0], "")), Bare: report.Summary(field.Times(got[1], "")), Platforms: map[string]report.TwoSides{}, CPU: report.MS(used[0]) / n, BareCPU: report.MS(used[1]) / n, Stages: report.Stages(before, after)}
	for _, p := range gw.Platforms {
		d.Platforms[p.Name] = report.TwoSides{Gateway: report.Summary(field.Times(got[0], p.Name)), Bare: report.Summary(field.Times(got[1], p.Name))}
	}
	d.Commits, d.Group = report.Commits(before, after, n)
	d.Verdict, err = b.settle(ctx, gw)
	return d, err
}

// measured runs load and returns how much processor time the bot used.
func (s *side) measured(load func() ([]field.Sample, error)) ([]field.Sample, time.Duration, error) {
	before, err := s.CPU()
	if err != nil {
		return nil, 0, err
	}
	t, err := load()
	if err != nil {
		return nil, 0, err
	}
	after, err := s.CPU()
	return t, after - before, err
}

// A load is what one burst showed.
type load struct {
	rate, cpu, peak float64            // messages a second, processor time per message, peak memory
	rates           map[string]float64 // by platform
}

// round returns one burst.
func (s *side) round(ctx context.Context, each int) (l load, err error) {
	if err := s.ResetPeak(); err != nil {
		return l, err
	}
	n := float64(len(s.Chats) * each)
	var took map[string]time.Duration
	_, used, err := s.measured(func() (_ []field.Sample, err error) {
		took, err = s.Field.Burst(ctx, each)
		return nil, err
	})
	if err != nil {
		return l, err
	}
	l.cpu, l.rates = report.MS(used)/n, map[string]float64{}
	var whole time.Duration
	for _, p := range s.Platforms {
		whole = max(whole, took[p.Name])
		l.rates[p.Name] = float64(len(p.Chats)*each) / took[p.Name].Seconds()
	}
	l.rate = n / whole.Seconds()
	_, l.peak, err = s.Memory()
	return l, err
}

func (b *bench) burst(ctx context.Context) (err error) {
	b.data.Burst, err = b.bursts(ctx)
	return err
}

// thinkingTime is how long the model of the part "thinking" takes until its first word.
const thinkingTime = 200 * time.Millisecond

// thinking is the burst with a model that takes its time; there is none without a model.
func (b *bench) thinking(ctx context.Context) (err error) {
	if b.model == nil {
		return nil
	}
	b.model.Set(model.Plan{Delay: thinkingTime})
	defer b.model.Set(model.Plan{})
	b.data.Thinking, err = b.bursts(ctx)
	return err
}

func (b *bench) bursts(ctx context.Context) (*report.Burst, error) {
	gw, bare, err := b.pair(ctx, b.c.Chats, true)
	if err != nil {
		return nil, err
	}
	defer bare.end()
	d := &report.Burst{}
	var before map[string]float64
	for i := range b.c.Rounds + 1 {
		if i == 1 || before == nil { // commits are counted on known chats
			if before, err = gw.Series(ctx); err != nil {
				return nil, errors.Join(err, gw.end())
			}
		}
		r, err := b.bout(ctx, gw, bare)
		if err != nil {
			return nil, errors.Join(err, gw.end())
		}
		if i == 0 {
			d.First = r
		} else {
			d.Rounds = append(d.Rounds, r)
		}
	}
	after, err := gw.Series(ctx)
	if err != nil {
		return nil, errors.Join(err, gw.end())
	}
	d.Stages = report.Stages(before, after)
	d.Commits, d.Group = report.Commits(before, after, float64(b.c.Rounds*b.c.Chats*b.c.Each))
	d.Calls = map[string]int{}
	for _, p := range gw.Platforms {
		for _, m := range p.Methods {
			d.Calls[m] += p.Count(m)
		}
	}
	if v := bare.CountAnswers(); v.Bad() {
		err = fmt.Errorf("the bare bot answered %d of %d messages: its figures mean nothing", v.Answers, v.Messages)
	}
	v, err2 := b.settle(ctx, gw)
	d.Verdict = v
	return d, errors.Join(err, err2)
}

// bout returns a burst on each side.
func (b *bench) bout(ctx context.Context, gw, bare *side) (r report.Round, err error) {
	g, err := gw.round(ctx, b.c.Each)
	if err != nil {
		return r, err
	}
	f, err := bare.round(ctx, b.c.Each)
	if err != nil {
		return r, err
	}
	r = report.Round{Gateway: g.rate, Bare: f.rate, CPU: g.cpu, BareCPU: f.cpu, Ratio: g.rate / f.rate, Peak: g.peak, Platforms: map[string][2]float64{}}
	for platform := range g.rates {
		r.Platforms[platform] = [2]float64{g.rates[platform], f.rates[platform]}
	}
	return r, nil
}

func (b *bench) start(ctx context.Context) error {
	d := &report.Start{}
	if st, err := os.Stat(b.c.Program); err == nil {
		d.Base = float64(st.Size()) / (1 << 20)
	}
	for range 5 {
		s, err := b.gateway(ctx, 1, "")
		if err != nil {
			return err
		}
		err = readStart(d, s, &d.Fresh)
		if err == nil {
			err = b.again(ctx, s)
		}
		if err == nil {
			err = readStart(d, s, &d.Again)
		}
		s.Close()
		if err != nil {
			return err
		}
		if s, err = b.bare(ctx, 1); err != nil {
			return err
		}
		d.Bare = append(d.Bare, report.MS(time.Since(s.Begun)))
		if err := s.end(); err != nil {
			return err
		}
	}
	b.data.Start = d
	return nil
}

// readStart notes how long a gateway took to turn to all platforms, and what memory it
// has then, and stops it.
func readStart(d *report.Start, s *side, list *[]float64) error {
	time.Sleep(2 * time.Second)
	at := s.SeenAt(s.Begun)
	if at.IsZero() {
		return errors.Join(errors.New("the gateway never turned to a platform"), s.Child.Stop())
	}
	*list = append(*list, report.MS(at.Sub(s.Begun)))
	rss, _, err := s.Child.Memory()
	d.RSS = append(d.RSS, rss)
	return errors.Join(err, s.Child.Stop())
}

func (b *bench) fsync(ctx context.Context) error {
	d := &report.Syncs{}
	b.data.Syncs = d
	if floor.Traced("") == nil {
		d.Note = "not measured: this machine has no strace"
		return nil
	}
	const alone = 200
	var counts [3]int
	for i, users := range []int{1, 10, b.c.Chats} {
		dir, err := os.MkdirTemp(b.dir, "traced-")
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "strace")
		s, err := b.side(ctx, users, dir, func(s *side) (*child.Child, error) {
			return child.Gateway(ctx, b.c.Program, s.Field, s.dir, s.settings, floor.Traced(file)...)
		})
		if err != nil {
			if strings.Contains(err.Error(), "ptrace") || strings.Contains(err.Error(), "tracer") {
				d.Note = "not measured: tracing is not allowed here"
				return nil
			}
			return err
		}
		switch i {
		case 1:
			_, err = s.OneByOne(ctx, alone)
		case 2:
			_, err = s.Field.Burst(ctx, b.c.Each)
		}
		if err != nil {
			return errors.Join(err, s.end())
		}
		if _, err := b.judge(ctx, s); err != nil {
			return err
		}
		if counts[i], err = floor.Syncs(file); err != nil {
			return err
		}
		_ = os.RemoveAll(dir)
	}
	d.Idle = counts[0]
	d.Alone = float64(counts[1]-counts[0]) / alone
	d.Burst = float64(counts[2]-counts[0]) / float64(b.c.Chats*b.c.Each)
	return nil
}

// report prints, and writes the files that were asked for.
func (b *bench) report() error {
	r := report.Report{Result: b.data, Model: "local/quote", Rate: b.c.Rate, Thinking: thinkingTime,
		WaitFor: waitFor, WordEvery: wordEvery, StreamEvery: streamEvery, StreamWord: len(streamWord)}
	if b.model != nil {
		r.Model = "openai/" + model.Name
	}
	return r.Write(os.Stdout, b.c.JSON, b.c.Report)
}
