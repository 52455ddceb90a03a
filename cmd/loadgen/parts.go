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

// A result is the raw data of a run; parts that were not measured are nil.
type result struct {
	Machine  machine       `json:"machine"`
	Commit   string        `json:"commit"`
	At       time.Time     `json:"at"`
	Took     string        `json:"took"`
	Chats    int           `json:"chats"`
	Each     int           `json:"each"`
	Busy     []float64     `json:"busy_before_each_part"` // share of the processors that others used
	Fsync    percentiles   `json:"bare_fsync"`
	Datasync percentiles   `json:"bare_fdatasync"`
	Build    float64       `json:"cold_build_s,omitempty"`
	Start    *startData    `json:"start,omitempty"`
	Memory   *memoryData   `json:"memory,omitempty"`
	Latency  *latencyData  `json:"latency,omitempty"`
	Rate     *latencyData  `json:"rate,omitempty"`
	Burst    *burstData    `json:"burst,omitempty"`
	Syncs    *syncData     `json:"fsync,omitempty"`
	Scale    *scaleData    `json:"scale,omitempty"`
	Verdict  verdict       `json:"verdict"`
	settled  chan settling // the memory part's late reading
}

type startData struct {
	Fresh []float64 `json:"fresh_ms"`   // an empty vault: the database is made
	Again []float64 `json:"again_ms"`   // the same vault
	Bare  []float64 `json:"bare_ms"`    // the bare bot
	RSS   []float64 `json:"rss_mib"`    // 2 s after
	Base  float64   `json:"binary_mib"` // the program's file
}

type memoryData struct {
	Idle            float64 `json:"idle_mib"`
	Peak            float64 `json:"peak_under_burst_mib"`
	After           float64 `json:"after_mib"`
	Settle          string  `json:"settle"`
	GoroutinesIdle  float64 `json:"goroutines_idle"`
	GoroutinesAfter float64 `json:"goroutines_after"`
	HeapAfter       float64 `json:"heap_in_use_after_mib"`
	BarePeak        float64 `json:"bare_peak_mib"`
}

type latencyData struct {
	Gateway percentiles      `json:"gateway"`
	Bare    percentiles      `json:"bare"`
	CPU     float64          `json:"gateway_cpu_ms_per_message"`
	BareCPU float64          `json:"bare_cpu_ms_per_message"`
	Commits float64          `json:"commits_per_message"`
	Group   float64          `json:"writes_per_commit"`
	Stages  map[string]stage `json:"stages"`
	Verdict verdict          `json:"verdict"`
}

type burstData struct {
	First   burstRound       `json:"first"` // on chats that nobody knows yet
	Rounds  []burstRound     `json:"rounds"`
	Commits float64          `json:"commits_per_message"`
	Group   float64          `json:"writes_per_commit"`
	Calls   map[string]int   `json:"platform_calls"`
	Stages  map[string]stage `json:"stages"`
	Verdict verdict          `json:"verdict"`
}

type burstRound struct {
	Gateway float64 `json:"gateway_messages_per_s"`
	Bare    float64 `json:"bare_messages_per_s"`
	CPU     float64 `json:"gateway_cpu_ms_per_message"`
	BareCPU float64 `json:"bare_cpu_ms_per_message"`
	Ratio   float64 `json:"ratio"`
	Peak    float64 `json:"peak_rss_mib"`
}

type syncData struct {
	Idle  int     `json:"at_start_and_stop"`
	Alone float64 `json:"per_message_one_in_flight"`
	Burst float64 `json:"per_message_in_burst"`
	Note  string  `json:"note,omitempty"`
}

type scaleData struct {
	Rows    int          `json:"rows"`
	Lanes   int          `json:"lanes"`
	Bytes   int64        `json:"database_bytes"`
	Fill    string       `json:"fill_took"`
	Small   percentiles  `json:"latency_small"`
	Large   percentiles  `json:"latency_large"`
	P50     float64      `json:"ratio_p50"`
	P99     float64      `json:"ratio_p99"`
	Rounds  [][2]float64 `json:"burst_messages_per_s"` // small, large
	Ratio   float64      `json:"ratio_burst"`          // small by large
	CPU     [2]float64   `json:"cpu_ms_per_message"`
	Verdict verdict      `json:"verdict"`
}

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
			b.lateMemory()
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.lateMemory()
}

// quiet waits until others use less than a tenth of the machine, and says how much they use.
func (b *bench) quiet(ctx context.Context) float64 {
	for over := time.Now().Add(b.c.Quiet); ; {
		if share := busy(ctx); share < .1 || time.Now().After(over) || ctx.Err() != nil {
			return share
		}
	}
}

// A side is one bot under load, on its own platform.
type side struct {
	*field
	*child
	dir string
}

func (b *bench) gateway(ctx context.Context, users int, dir string) (*side, error) {
	return b.side(ctx, users, dir, func(s *side) (*child, error) { return startGateway(ctx, b.c.Program, s.sim, s.dir) })
}

func (b *bench) bare(ctx context.Context, users int) (*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.side(ctx, users, "", func(s *side) (*child, error) {
		return start(ctx, s.sim, s.dir, []string{"LOADGEN_TOKEN=" + s.sim.Token()}, []string{self, "bare", s.sim.URL()})
	})
}

func (b *bench) side(_ context.Context, users int, dir string, start func(*side) (*child, error)) (*side, error) {
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp(b.dir, "bot-"); err != nil {
			return nil, err
		}
	}
	s := &side{dir: dir}
	if s.field, err = newField(users); err != nil {
		return nil, err
	}
	if s.child, err = start(s); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// end stops the bot and its platform.
func (s *side) end() error {
	if s == nil {
		return nil
	}
	err := s.child.stop()
	s.close()
	return err
}

// settle ends a gateway and judges what it did.
func (b *bench) settle(ctx context.Context, s *side) (verdict, error) {
	if err := s.child.stop(); err != nil {
		return verdict{}, errors.Join(err, s.end())
	}
	v, err := s.check(ctx, s.dir)
	s.close()
	b.data.Verdict.add(v)
	if !b.c.Keep && err == nil && !v.bad() {
		_ = os.RemoveAll(s.dir)
	}
	return v, err
}

// pair starts a gateway and a bare bot, each with n people, who have been
// answered once unless cold.
func (b *bench) pair(ctx context.Context, n int, cold bool) (gw, bare *side, err error) {
	if gw, err = b.gateway(ctx, n, ""); err != nil {
		return nil, nil, err
	}
	if bare, err = b.bare(ctx, n); err != nil {
		return nil, nil, errors.Join(err, gw.end())
	}
	for _, s := range []*side{gw, bare} {
		if cold {
			break
		}
		if _, err := s.oneByOne(ctx, 2*n); err != nil {
			return nil, nil, errors.Join(err, gw.end(), bare.end())
		}
	}
	return gw, bare, nil
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

// A settling is the memory part's last reading, taken while other parts go on.
type settling struct {
	gw  *side
	due time.Time
}

func (b *bench) memory(ctx context.Context) error {
	gw, bare, err := b.pair(ctx, b.c.Chats, true)
	if err != nil {
		return err
	}
	d := &memoryData{Settle: b.c.Settle.String()}
	time.Sleep(2 * time.Second)
	if d.Idle, _, err = gw.child.memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	before, err := gw.series(ctx)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.GoroutinesIdle = before["go_goroutines"]
	r, err := b.bout(ctx, gw, bare)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.Peak = r.Peak
	if _, d.BarePeak, err = bare.child.memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	b.data.Memory = d
	b.data.settled = make(chan settling, 1)
	b.data.settled <- settling{gw, time.Now().Add(b.c.Settle)}
	return bare.end()
}

// lateMemory waits for the rest of the settling time and reads.
func (b *bench) lateMemory() error {
	if b.data.settled == nil {
		return nil
	}
	s := <-b.data.settled
	b.data.settled = nil
	ctx, cancel := context.WithDeadline(context.Background(), s.due.Add(time.Minute))
	defer cancel()
	if wait := time.Until(s.due); wait > 0 {
		b.say("waiting %v for the memory after the burst …", wait.Round(time.Second))
		time.Sleep(wait)
	}
	d := b.data.Memory
	var err error
	if d.After, _, err = s.gw.child.memory(); err != nil {
		return errors.Join(err, s.gw.end())
	}
	after, err := s.gw.series(ctx)
	if err != nil {
		return errors.Join(err, s.gw.end())
	}
	d.GoroutinesAfter, d.HeapAfter = after["go_goroutines"], after["go_memstats_heap_inuse_bytes"]/(1<<20)
	_, err = b.settle(ctx, s.gw)
	return err
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

// settleTraced is settle without removing the folder, which holds the trace.
func (b *bench) settleTraced(ctx context.Context, s *side) (verdict, error) {
	if err := s.child.stop(); err != nil {
		return verdict{}, errors.Join(err, s.end())
	}
	v, err := s.check(ctx, s.dir)
	s.close()
	b.data.Verdict.add(v)
	return v, err
}

func (b *bench) scale(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.dir, "large-")
	if err != nil {
		return err
	}
	s, err := b.gateway(ctx, 1, dir) // makes the tables
	if err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	d := &scaleData{Rows: b.c.Rows, Lanes: b.c.Lanes}
	took, bytes, err := fill(ctx, dir, b.c.Rows, b.c.Lanes)
	if err != nil {
		return err
	}
	d.Fill, d.Bytes = took.Round(time.Second).String(), bytes
	b.say("  filled in %s, %d MiB", d.Fill, bytes>>20)
	sides, err := b.twins(ctx, b.c.Chats, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(b.scaleLatency(ctx, sides, d), b.scaleBurst(ctx, sides, d)); err != nil {
		return errors.Join(err, sides[0].end(), sides[1].end())
	}
	b.data.Scale = d
	return b.endTwins(ctx, sides, d)
}

// twins are a gateway with a fresh database and one with the filled one.
func (b *bench) twins(ctx context.Context, users int, dir string) (list [2]*side, err error) {
	if list[0], err = b.gateway(ctx, users, ""); err != nil {
		return list, err
	}
	if list[1], err = b.gateway(ctx, users, dir); err != nil {
		return list, errors.Join(err, list[0].end())
	}
	return list, nil
}

func (b *bench) scaleLatency(ctx context.Context, sides [2]*side, d *scaleData) error {
	var times [2][]time.Duration
	for k := range blocks + 1 {
		for i, s := range sides {
			t, err := s.oneByOne(ctx, b.c.Messages/2/blocks)
			if err != nil {
				return err
			}
			if k > 0 { // the first warms up
				times[i] = append(times[i], t...)
			}
		}
	}
	d.Small, d.Large = summary(times[0]), summary(times[1])
	d.P50, d.P99 = d.Large.P50/d.Small.P50, d.Large.P99/d.Small.P99
	return nil
}

func (b *bench) scaleBurst(ctx context.Context, sides [2]*side, d *scaleData) error {
	var cpus [2][]float64
	var ratios []float64
	for k := range b.c.Rounds + 1 {
		var r [2]float64
		for i, s := range sides {
			rate, cpu, _, err := s.round(ctx, b.c.Each)
			if err != nil {
				return err
			}
			r[i] = rate
			if k > 0 {
				cpus[i] = append(cpus[i], cpu)
			}
		}
		if k > 0 {
			d.Rounds, ratios = append(d.Rounds, r), append(ratios, r[0]/r[1])
		}
	}
	d.Ratio, d.CPU = median(ratios), [2]float64{median(cpus[0]), median(cpus[1])}
	return nil
}

func (b *bench) endTwins(ctx context.Context, sides [2]*side, d *scaleData) error {
	for i, s := range sides {
		v, err := b.settleTraced(ctx, s)
		if err != nil {
			if i == 0 {
				err = errors.Join(err, sides[1].end())
			}
			return err
		}
		d.Verdict.add(v)
	}
	return nil
}
