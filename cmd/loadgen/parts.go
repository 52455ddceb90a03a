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
)

// A bench is one run of the tool.
type bench struct {
	c    *runCmd
	dir  string
	data result
	say  func(format string, a ...any)
}

// Run is called by kong.
func (c *runCmd) Run(ctx context.Context) (err error) {
	b := &bench{c: c, say: func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }}
	if b.c.Program, err = filepath.Abs(c.Program); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(c.Dir, "loadgen-"); err != nil {
		return err
	}
	if !c.Keep {
		defer os.RemoveAll(b.dir)
	}
	began := time.Now()
	b.data = result{Machine: thisMachine(), Commit: commit(ctx), At: began.UTC().Truncate(time.Second), Chats: c.Chats, Each: c.Each, Build: c.Build.Seconds()}
	if b.data.Fsync, b.data.Datasync, err = bareSync(b.dir, 300); err != nil {
		return err
	}
	if err := b.parts(ctx); err != nil {
		return err
	}
	b.data.Took = time.Since(began).Round(time.Second).String()
	if err := b.report(); err != nil {
		return err
	}
	if v := b.data.Verdict; v.bad() {
		return fmt.Errorf("%d of %d messages lost, %d doubled, %d out of order", v.Lost, v.Messages, v.Doubled, v.Disorder)
	}
	return nil
}

func (b *bench) parts(ctx context.Context) error {
	run := map[string]func(context.Context) error{
		"start": b.start, "memory": b.memory, "latency": b.latency, "rate": b.rate, "burst": b.burst, "fsync": b.fsync, "scale": b.scale,
	}
	for _, name := range allParts {
		if len(b.c.Only) > 0 && !slices.Contains(b.c.Only, name) {
			continue
		}
		b.data.Busy = append(b.data.Busy, b.quiet(ctx))
		b.say("%s …", name)
		if err := run[name](ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), b.data.settling.gw.end())
		}
	}
	return b.lateMemory(ctx)
}

// quiet waits until others use less than a tenth of the machine, and says how much they use.
func (b *bench) quiet(ctx context.Context) float64 {
	for over := time.Now().Add(b.c.Quiet); ; {
		if share := busy(ctx); share < .1 || time.Now().After(over) || ctx.Err() != nil {
			return share
		}
	}
}

// blocks is how many turns the sides take, so that both meet the same machine.
const blocks = 10

func (b *bench) latency(ctx context.Context) (err error) {
	b.data.Latency, err = b.timed(ctx, func(s *side, n int) ([]time.Duration, error) { return s.oneByOne(ctx, n) })
	return err
}

func (b *bench) rate(ctx context.Context) (err error) {
	b.data.Rate, err = b.timed(ctx, func(s *side, n int) ([]time.Duration, error) { return s.openLoop(ctx, n, b.c.Rate) })
	return err
}

func (b *bench) timed(ctx context.Context, load func(*side, int) ([]time.Duration, error)) (*latencyData, error) {
	gw, bare, err := b.pair(ctx, 10, false)
	if err != nil {
		return nil, err
	}
	defer bare.end()
	var times [2][]time.Duration
	var used [2]time.Duration
	before, err := gw.series(ctx)
	if err != nil {
		return nil, errors.Join(err, gw.end())
	}
	for range blocks {
		for i, s := range []*side{gw, bare} {
			t, cpu, err := s.measured(func() ([]time.Duration, error) { return load(s, b.c.Messages/blocks) })
			if err != nil {
				return nil, errors.Join(err, gw.end())
			}
			times[i], used[i] = append(times[i], t...), used[i]+cpu
		}
	}
	after, err := gw.series(ctx)
	if err != nil {
		return nil, errors.Join(err, gw.end())
	}
	n := float64(b.c.Messages / blocks * blocks)
	d := &latencyData{Gateway: summary(times[0]), Bare: summary(times[1]), CPU: ms(used[0]) / n, BareCPU: ms(used[1]) / n, Stages: stages(before, after)}
	d.Commits, d.Group = commits(before, after, n)
	d.Verdict, err = b.settle(ctx, gw)
	return d, err
}

// measured runs load and says how much processor time the bot used.
func (s *side) measured(load func() ([]time.Duration, error)) ([]time.Duration, time.Duration, error) {
	before, err := s.cpu()
	if err != nil {
		return nil, 0, err
	}
	t, err := load()
	if err != nil {
		return nil, 0, err
	}
	after, err := s.cpu()
	return t, after - before, err
}

// round is one burst: messages a second, processor time per message, peak memory.
func (s *side) round(ctx context.Context, each int) (rate, cpu, peak float64, err error) {
	if err := s.resetPeak(); err != nil {
		return 0, 0, 0, err
	}
	n := float64(len(s.users) * each)
	var took time.Duration
	_, used, err := s.measured(func() (_ []time.Duration, err error) {
		took, err = s.field.burst(ctx, each)
		return nil, err
	})
	if err != nil {
		return 0, 0, 0, err
	}
	_, peak, err = s.memory()
	return n / took.Seconds(), ms(used) / n, peak, err
}

func (b *bench) burst(ctx context.Context) error {
	gw, bare, err := b.pair(ctx, b.c.Chats, true)
	if err != nil {
		return err
	}
	defer bare.end()
	d := &burstData{}
	var before map[string]float64
	for i := range b.c.Rounds + 1 {
		if i == 1 || before == nil { // commits are counted on known chats
			if before, err = gw.series(ctx); err != nil {
				return errors.Join(err, gw.end())
			}
		}
		r, err := b.bout(ctx, gw, bare)
		if err != nil {
			return errors.Join(err, gw.end())
		}
		if i == 0 {
			d.First = r
		} else {
			d.Rounds = append(d.Rounds, r)
		}
	}
	after, err := gw.series(ctx)
	if err != nil {
		return errors.Join(err, gw.end())
	}
	d.Stages = stages(before, after)
	d.Commits, d.Group = commits(before, after, float64(b.c.Rounds*b.c.Chats*b.c.Each))
	d.Calls = map[string]int{}
	for _, m := range []string{"getUpdates", "sendMessage", "editMessageText", "sendChatAction", "sendMessageDraft"} {
		d.Calls[m] = gw.sim.Count(m)
	}
	if v := bare.countAnswers(); v.bad() {
		err = fmt.Errorf("the bare bot answered %d of %d messages: its figures mean nothing", v.Answers, v.Messages)
	}
	b.data.Burst = d
	v, err2 := b.settle(ctx, gw)
	d.Verdict = v
	return errors.Join(err, err2)
}

// bout is a burst on each side.
func (b *bench) bout(ctx context.Context, gw, bare *side) (r burstRound, err error) {
	if r.Gateway, r.CPU, r.Peak, err = gw.round(ctx, b.c.Each); err != nil {
		return r, err
	}
	if r.Bare, r.BareCPU, _, err = bare.round(ctx, b.c.Each); err != nil {
		return r, err
	}
	r.Ratio = r.Gateway / r.Bare
	return r, nil
}

func (b *bench) start(ctx context.Context) error {
	d := &startData{}
	if st, err := os.Stat(b.c.Program); err == nil {
		d.Base = float64(st.Size()) / (1 << 20)
	}
	for range 5 {
		dir, err := os.MkdirTemp(b.dir, "start-")
		if err != nil {
			return err
		}
		for _, list := range []*[]float64{&d.Fresh, &d.Again} {
			s, err := b.gateway(ctx, 1, dir)
			if err != nil {
				return err
			}
			first := s.sim.Requests(0, "getUpdates")
			if len(first) == 0 {
				return errors.Join(errors.New("the gateway never polled"), s.end())
			}
			*list = append(*list, ms(first[0].At.Sub(s.begun)))
			time.Sleep(2 * time.Second)
			rss, _, err := s.child.memory()
			d.RSS = append(d.RSS, rss)
			if err := errors.Join(err, s.end()); err != nil {
				return err
			}
		}
		s, err := b.bare(ctx, 1)
		if err != nil {
			return err
		}
		d.Bare = append(d.Bare, ms(time.Since(s.begun)))
		if err := s.end(); err != nil {
			return err
		}
	}
	b.data.Start = d
	return nil
}

func (b *bench) fsync(ctx context.Context) error {
	d := &syncData{}
	b.data.Syncs = d
	if traced("") == nil {
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
		s, err := b.side(ctx, users, dir, func(s *side) (*child, error) {
			return startGateway(ctx, b.c.Program, s.sim, s.dir, traced(file)...)
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
			_, err = s.oneByOne(ctx, alone)
		case 2:
			_, err = s.field.burst(ctx, b.c.Each)
		}
		if err != nil {
			return errors.Join(err, s.end())
		}
		if _, err := b.settleTraced(ctx, s); err != nil {
			return err
		}
		if counts[i], err = syncs(file); err != nil {
			return err
		}
		_ = os.RemoveAll(dir)
	}
	d.Idle = counts[0]
	d.Alone = float64(counts[1]-counts[0]) / alone
	d.Burst = float64(counts[2]-counts[0]) / float64(b.c.Chats*b.c.Each)
	return nil
}
