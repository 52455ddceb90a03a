package embedding_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/embedding"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embed"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dimensions = 64

func everything(string) bool { return true }

type world struct {
	t      *testing.T
	clock  *coretest.Clock
	db     *store.DB
	docs   *document.Store
	server *embedtest.Server
	log    *coretest.Log
	o      embedding.Options
}

func open(t *testing.T) *world {
	w := &world{t: t, clock: coretest.NewClock(time.Time{}), server: embedtest.New(t, dimensions), log: &coretest.Log{}}
	w.db = storetest.Open(t, w.clock)
	w.docs = document.New(w.db, func(context.Context, store.Queryer, int64) (bool, error) { return true, nil })
	c, err := embed.New(embed.Options{URL: w.server.URL, Model: "small"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w.o = embedding.Options{Model: c, Name: "small", Library: w.docs, Memory: w.db, MayRead: func() func(string) bool { return everything }, Clock: w.clock, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	return w
}

func (w *world) put(name string, texts ...string) {
	w.t.Helper()
	d := document.Document{File: document.File{Path: name, Hash: "h"}, Title: name}
	for i, text := range texts {
		d.Chunks = append(d.Chunks, chunk.Chunk{Text: text, Line: i + 1})
	}
	if err := w.docs.Put(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

// run runs an embedder until the test ends or the result is called. It waits once it has
// nothing to do.
func (w *world) run() (e *embedding.Embedder, stop func()) {
	e = embedding.New(w.o)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	w.clock.AwaitWaiters(1)
	return e, stop
}

// later moves the clock until the embedder waits again.
func (w *world) later(d time.Duration) {
	w.clock.Advance(d)
	w.clock.AwaitWaiters(1)
}

func (w *world) want(e *embedding.Embedder, done, all int64, fault string) {
	w.t.Helper()
	s, err := e.Status(w.t.Context())
	if err != nil || s.Done != done || s.All != all || (s.Err != "") != (fault != "") || !strings.Contains(s.Err, fault) {
		w.t.Errorf("%d of %d passages, %q, %v; want %d of %d, %q", s.Done, s.All, s.Err, err, done, all, fault)
	}
}

func (w *world) found(near *search.Near, text string) (out []string) {
	w.t.Helper()
	q, _ := search.Parse(text)
	q.Near = near
	hits, _, err := w.docs.Find(w.t.Context(), q, search.Reader{User: 1, Trust: core.Full, MayRead: func(string) bool { return true }}, 10, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range hits {
		out = append(out, h.Path)
	}
	return out
}

func TestRun_EmbedsAllPassagesAndThoseThatAreNew(t *testing.T) {
	w := open(t)
	var texts []string
	for i := range 70 { // more than two batches
		texts = append(texts, fmt.Sprintf("passage %d", i))
	}
	w.put("a.md", texts...)
	e, _ := w.run()
	w.want(e, 70, 70, "")
	if asked := w.server.Asked(); len(asked) != 70 || asked[0] != "a.md\n\npassage 0" {
		t.Errorf("the server got %d texts, the first is %q", len(asked), asked[0])
	}
	w.put("b.md", "one more")
	w.later(31 * time.Second)
	w.want(e, 71, 71, "")
	if asked := w.server.Asked(); len(asked) != 1 {
		t.Errorf("for one new passage the server got %q", asked)
	}
}

func TestRun_GoesOnAfterARestartWithoutAskingAgain(t *testing.T) {
	w := open(t)
	w.put("a.md", "one", "two")
	_, stop := w.run()
	stop()
	w.server.Asked()
	w.clock.Advance(time.Hour)
	e, _ := w.run()
	w.want(e, 2, 2, "")
	if asked := w.server.Asked(); len(asked) != 0 {
		t.Errorf("after a restart it asks for %q", asked)
	}
}

func TestRun_EmbedsAllAgainWithAnotherModelWhileTheSearchGoesOn(t *testing.T) {
	w := open(t)
	w.put("gutters.md", "The gutters were repaired.")
	w.put("tea.md", "Green tea.")
	_, stop := w.run()
	stop()
	w.clock.Advance(time.Hour)

	w.server.SetDimensions(2 * dimensions)
	w.server.Fail(func([]string) int { return 503 })
	w.o.Name = "large"
	e, _ := w.run()
	w.want(e, 0, 2, "503")
	if got := w.found(e.Near(t.Context(), 1, "gutters"), "gutters"); !slices.Equal(got, []string{"gutters.md"}) {
		t.Errorf("while nothing is embedded by the new model, words find %v", got)
	}
	w.server.Fail(nil)
	w.later(3 * time.Second)
	w.want(e, 2, 2, "")
	if got := w.found(e.Near(t.Context(), 1, "guttering repairs"), "guttering repairs"); len(got) != 1 || got[0] != "gutters.md" {
		t.Errorf("by the new model's vectors %v is found", got)
	}
	if n := w.number(`SELECT count(*) FROM chunk_signs`); n != 1 {
		t.Errorf("%d blocks of vectors, want one: those of the old model are gone", n)
	}
}

func (w *world) number(query string) (n int) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), &n, query); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestRun_TriesAgainLaterAndLaterWhenTheServerFails(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	tries := 0
	w.server.Fail(func([]string) int { tries++; return 503 })
	e, _ := w.run()
	for _, wait := range []time.Duration{2, 4, 8, 16} {
		before := tries
		w.later(wait*time.Second - time.Millisecond)
		if tries != before {
			t.Errorf("it asks again before %v s", wait)
		}
		w.later(time.Millisecond)
		if tries != before+1 {
			t.Errorf("after %v s it has asked %d times", wait, tries-before)
		}
	}
	w.want(e, 0, 1, "503")
	if n := strings.Count(w.log.String(), "passages are not embedded"); n != 1 {
		t.Errorf("the failure was logged %d times", n)
	}
	w.server.Fail(nil)
	w.later(time.Minute)
	w.want(e, 1, 1, "")
}

func TestRun_PassesOverWhatTheServerRefuses(t *testing.T) {
	w := open(t)
	w.put("a.md", "one", "poison", "three")
	w.server.Fail(func(texts []string) int {
		if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "poison") }) {
			return 400
		}
		return 0
	})
	e, _ := w.run()
	w.want(e, 3, 3, "")
	if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 2 {
		t.Errorf("%d passages have vectors, want 2", n)
	}
	w.put("b.md", "four")
	w.server.Fail(func([]string) int { return 400 }) // whatever it gets: that is no matter of a passage
	w.later(31 * time.Second)
	w.want(e, 3, 4, "400")
}

func TestRun_StoresNoVectorsOfOtherDimensions(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	e, _ := w.run()
	w.server.SetDimensions(dimensions / 2)
	w.put("b.md", "two")
	w.later(31 * time.Second)
	w.want(e, 1, 2, "gives 32 dimensions, and gave 64")
	if near := e.Near(t.Context(), 1, "two"); near != nil {
		t.Error("a search is compared with vectors of other dimensions")
	}
}

func TestRun_StaysWithinTheBudget(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	var users []int64
	full := errors.New("the budget is used up")
	w.o.Spend = func(_ context.Context, user, tokens int64, call func() (int64, error)) error {
		if users = append(users, user); tokens <= 0 || full != nil {
			return full
		}
		took, err := call()
		if took <= 0 {
			t.Errorf("a call took %d tokens", took)
		}
		return err
	}
	e, _ := w.run()
	w.want(e, 0, 1, "used up")
	if asked := w.server.Asked(); len(asked) != 0 {
		t.Errorf("without a budget the server got %q", asked)
	}
	full = nil
	w.later(time.Minute)
	w.want(e, 1, 1, "")
	if e.Near(t.Context(), 7, "one") == nil || users[len(users)-1] != 7 || users[0] != 0 {
		t.Errorf("calls are counted for the users %v", users)
	}
}

func TestNear_IsNilWhereTheModelDoesNotAnswer(t *testing.T) {
	w := open(t)
	e, _ := w.run()
	if e.Near(t.Context(), 1, "one") != nil || len(w.server.Asked()) != 0 {
		t.Error("it asks although nothing is embedded")
	}
	w.put("a.md", "one")
	w.later(31 * time.Second)
	w.server.Asked()
	w.server.Fail(func([]string) int { return 503 })
	if e.Near(t.Context(), 1, "one") != nil || e.Near(t.Context(), 1, "two") != nil {
		t.Error("a search has a vector that nobody gave")
	}
	if n := strings.Count(w.log.String(), "words alone"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	w.server.Fail(nil)
	w.later(30 * time.Second)
	first := e.Near(t.Context(), 1, "one")
	if first == nil || e.Near(t.Context(), 1, "one") != first || len(w.server.Asked()) != 1 {
		t.Error("the same search is embedded twice")
	}
	for i := range 70 {
		e.Near(t.Context(), 1, fmt.Sprint("search ", i))
	}
	if e.Near(t.Context(), 1, "one") == first {
		t.Error("more searches are kept than 64")
	}
}

func TestRun_SendsNothingThatWasClosedSinceItWasIndexed(t *testing.T) {
	w := open(t)
	for i := range 50 { // more than one batch
		w.put(fmt.Sprintf("Diary/%02d.md", i), "a secret")
	}
	w.put("open.md", "open")
	var closed, ready atomic.Bool
	closed.Store(true)
	w.o.MayRead = func() func(string) bool {
		return func(name string) bool { return !closed.Load() || !strings.HasPrefix(name, "Diary/") }
	}
	w.o.Ready = ready.Load
	e, stop := w.run()
	if asked := w.server.Asked(); len(asked) != 0 {
		t.Errorf("before the vault was read the server got %q", asked)
	}
	ready.Store(true)
	w.later(time.Second)
	w.want(e, 1, 51, "")
	if asked := w.server.Asked(); !slices.Equal(asked, []string{"open.md\n\nopen"}) {
		t.Errorf("the server got %q", asked)
	}
	closed.Store(false)
	w.later(31 * time.Second)
	w.want(e, 51, 51, "")
	ready.Store(false)
	stop()
	w.clock.Advance(time.Hour)
	if e, _ = w.run(); e.Near(t.Context(), 1, "a search") == nil {
		t.Error("after a restart searches compare words alone until the vault was read")
	}
}

// broken is a model that fails on texts with a word.
type broken struct {
	embedtest.Model
	word  string
	fault error
	most  int // bytes of the longest text that it takes; 0: any
}

func (m broken) Embed(ctx context.Context, texts []string) ([][]float32, int64, error) {
	for _, s := range texts {
		if strings.Contains(s, m.word) && len(s) > m.most {
			return nil, 0, m.fault
		}
	}
	return m.Model.Embed(ctx, texts)
}

func TestRun_GoesOnWhereTheModelFailsOnOnePassage(t *testing.T) {
	for name, fault := range map[string]error{
		"it is refused": &embed.Fault{Text: "bad request", Status: 400},
		"it breaks":     &embed.Fault{Text: "input is too large to process", Status: 500, Again: true},
		"no vector":     &embed.Fault{Text: "a vector is zero", Status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.put("a.md", "poison")
			var texts []string
			for i := range 70 {
				texts = append(texts, fmt.Sprintf("passage %d", i))
			}
			texts[40], texts[41] = "poison too", "more poison"
			w.put("b.md", texts...)
			w.o.Model = broken{Model: embedtest.Model{Dimensions: dimensions}, word: "poison", fault: fault}
			e, _ := w.run()
			for range 6 {
				w.later(time.Minute)
			}
			w.want(e, 71, 71, "")
			if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 68 {
				t.Errorf("%d passages have vectors, want 68", n)
			}
			if log := w.log.String(); strings.Count(log, "on which the model fails") != 1 || !strings.Contains(log, "passages=3") {
				t.Errorf("three passages are logged as\n%s", log)
			}
		})
	}
}

func TestRun_TriesPassagesOnWhichTheModelFailedAgainTheNextDayAndAfterAStart(t *testing.T) {
	w := open(t)
	w.put("a.md", "poison", "other")
	w.o.Model = broken{Model: embedtest.Model{Dimensions: dimensions}, word: "poison", fault: &embed.Fault{Text: "NaN", Status: 500, Again: true}}
	e, stop := w.run()
	w.later(time.Minute)
	w.want(e, 2, 2, "")
	tries := 0
	w.o.Model = broken{Model: embedtest.Model{Dimensions: dimensions}, word: "poison", most: 1 << 20}
	stop()
	w.clock.Advance(time.Hour)
	w.server.Asked()
	e, stop = w.run()
	w.want(e, 2, 2, "")
	if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 2 {
		t.Errorf("after a start %d passages have vectors, want 2", n)
	}
	stop()
	w.clock.Advance(time.Hour)

	w.put("b.md", "poison once")
	w.o.Model = &counted{Model: embedtest.Model{Dimensions: dimensions}, tries: &tries}
	_, _ = w.run()
	w.later(time.Minute)
	if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 2 {
		t.Fatalf("%d passages have vectors, want 2", n)
	}
	w.later(23 * time.Hour)
	before := tries
	w.later(time.Hour)
	w.later(time.Minute)
	if tries == before {
		t.Error("a day later the passage is not tried again")
	}
}

// counted fails on each text but the probe.
type counted struct {
	embedtest.Model
	tries *int
}

func (m *counted) Embed(ctx context.Context, texts []string) ([][]float32, int64, error) {
	if strings.Contains(texts[0], "poison") {
		*m.tries++
		return nil, 0, &embed.Fault{Text: "NaN", Status: 500, Again: true}
	}
	return m.Model.Embed(ctx, texts)
}

func TestRun_EmbedsTheBeginningOfAPassageThatIsTooLongForTheModel(t *testing.T) {
	for _, status := range []int{400, 500} {
		w := open(t)
		w.put("a.md", "short", strings.Repeat("long ", 500))
		w.o.Model = broken{Model: embedtest.Model{Dimensions: dimensions}, word: "long", most: 1500, fault: &embed.Fault{Text: "input is too large", Status: status, Again: status == 500}}
		w.run()
		w.later(time.Minute)
		if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 2 {
			t.Errorf("%d: %d passages have vectors, want 2", status, n)
		}
	}
}

func TestRun_DropsNoPassageWhileTheServerFails(t *testing.T) {
	w := open(t)
	w.put("a.md", "one", "two")
	w.server.Fail(func([]string) int { return 500 })
	e, _ := w.run()
	for range 5 {
		w.later(10 * time.Minute)
	}
	w.want(e, 0, 2, "500")
	w.server.Fail(nil)
	w.later(10 * time.Minute)
	w.want(e, 2, 2, "")
}

func TestNear_AsksAServerThatFailsLaterAndLater(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	e, _ := w.run()
	asked, status := 0, 503
	w.server.Fail(func([]string) int { asked++; return status })
	for i, wait := range []time.Duration{0, 30, 60, 120, 240, 480, 600, 600} {
		if wait > 0 {
			w.later(wait*time.Second - time.Millisecond)
			before := asked
			if e.Near(t.Context(), 1, "search") != nil || asked != before {
				t.Errorf("it is asked again before %d s", wait)
			}
			w.later(time.Millisecond)
		}
		before := asked
		if e.Near(t.Context(), 1, "search") != nil || e.Near(t.Context(), 1, "another") != nil || asked != before+1 {
			t.Errorf("round %d: two searches have asked %d times", i, asked-before)
		}
	}
	status = 0
	w.later(10 * time.Minute)
	if e.Near(t.Context(), 1, "search") == nil {
		t.Error("the model answers again, and is not asked")
	}
	status = 400
	if e.Near(t.Context(), 1, "refused") != nil {
		t.Error("a search has a vector that nobody gave")
	}
	status = 0
	if e.Near(t.Context(), 2, "other") == nil {
		t.Error("after a text that is refused the model is not asked about others")
	}
}

// slowly is a model that takes two seconds.
type slowly struct {
	embedtest.Model
	clock *coretest.Clock
	sizes []int
}

func (m *slowly) Embed(ctx context.Context, texts []string) ([][]float32, int64, error) {
	m.sizes = append(m.sizes, len(texts))
	m.clock.Advance(2 * time.Second)
	return m.Model.Embed(ctx, texts)
}

func TestRun_SendsFewPassagesAtATimeToAServerThatIsSlow(t *testing.T) {
	w := open(t)
	var texts []string
	for i := range 66 {
		texts = append(texts, fmt.Sprintf("passage %d", i))
	}
	w.put("a.md", texts...)
	m := &slowly{Model: embedtest.Model{Dimensions: dimensions}, clock: w.clock}
	w.o.Model = m
	e, _ := w.run()
	w.want(e, 66, 66, "")
	if want := []int{32, 16, 8, 4, 2, 1, 1, 1, 1}; !slices.Equal(m.sizes, want) {
		t.Errorf("it gets %v passages, want %v", m.sizes, want)
	}
}

func TestNear_KeepsSearchesByUserUntilTheyAreForgotten(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	e, _ := w.run()
	w.server.Asked()
	mine := e.Near(t.Context(), 1, "my illness")
	theirs := e.Near(t.Context(), 2, "my illness")
	if mine == nil || theirs == nil || mine == theirs || len(w.server.Asked()) != 2 {
		t.Error("one user's search is answered from what another has searched for")
	}
	e.Forget(1)
	if e.Near(t.Context(), 2, "my illness") != theirs {
		t.Error("another user's searches are forgotten")
	}
	if e.Near(t.Context(), 1, "my illness") == mine {
		t.Error("a search of a user who was forgotten is kept")
	}
}

// hanging is a model that embeds passages, and answers no search in time.
type hanging struct {
	embedtest.Model
	asked int
}

func (m *hanging) Embed(ctx context.Context, texts []string) ([][]float32, int64, error) {
	if _, search := ctx.Deadline(); search {
		m.asked++
		return nil, 0, context.DeadlineExceeded
	}
	return m.Model.Embed(ctx, texts)
}

func TestNear_WaitsOnceForAServerThatHangs(t *testing.T) {
	w := open(t)
	w.put("a.md", "one")
	m := &hanging{Model: embedtest.Model{Dimensions: dimensions}}
	w.o.Model = m
	e, _ := w.run()
	for i := range 3 {
		if e.Near(t.Context(), 1, fmt.Sprint("search ", i)) != nil {
			t.Error("a search has a vector that nobody gave")
		}
	}
	if m.asked != 1 {
		t.Errorf("three searches wait %d times", m.asked)
	}
}

func TestRun_MetricsCountPassagesAndRequests(t *testing.T) {
	w := open(t)
	reg := prometheus.NewRegistry()
	w.o.Metrics = embedding.NewMetrics(reg)
	want := func(when string, embedded, pending, ok, failed int) {
		t.Helper()
		text := fmt.Sprintf(`# HELP gatehouse_index_embedding_requests_total Requests to the embedding server, by outcome.
# TYPE gatehouse_index_embedding_requests_total counter
gatehouse_index_embedding_requests_total{outcome="error"} %d
gatehouse_index_embedding_requests_total{outcome="ok"} %d
# HELP gatehouse_index_passages Passages of the index, by whether the embedding model has read them. Zero without one.
# TYPE gatehouse_index_passages gauge
gatehouse_index_passages{state="embedded"} %d
gatehouse_index_passages{state="pending"} %d
`, failed, ok, embedded, pending)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	want("at start", 0, 0, 0, 0)
	var texts []string
	for i := range 70 {
		texts = append(texts, fmt.Sprintf("passage %d", i))
	}
	w.put("a.md", texts...)
	w.server.Fail(func([]string) int { return 503 })
	w.run()
	want("while the server fails", 0, 70, 0, 1)
	answered := 0
	w.server.Fail(func([]string) int { answered++; return 0 })
	w.later(time.Minute)
	want("when it answers", 70, 0, answered, 1)
	w.put("b.md", "one more")
	w.later(31 * time.Second)
	want("after one more", 71, 0, answered, 1)
	if answered < 4 {
		t.Errorf("%d requests, of at most 32 passages", answered)
	}
}
