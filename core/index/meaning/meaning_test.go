package meaning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/embed"
	"gatehouse/core/llm/embedtest"
)

// A model embeds by groups of characters, with a bias that all vectors share.
type model struct {
	mu     sync.Mutex
	clock  *coretest.Clock
	bias   float32
	takes  time.Duration
	err    error
	bad    map[string]int // the status of an answer about texts with a word in them
	during func()         // runs in a call
	calls  [][]string
	users  []int64
	vector func(text string) []float32
}

func (m *model) Vectors(_ context.Context, user int64, texts []string) (out [][]float32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.users = append(m.calls, texts), append(m.users, user)
	m.clock.Advance(m.takes)
	if m.during != nil {
		m.during()
	}
	for word, status := range m.bad {
		if strings.Contains(strings.Join(texts, " "), word) {
			return nil, &embed.Fault{Status: status}
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	for _, t := range texts {
		v := embedtest.Vector(t, 512)
		if m.vector != nil {
			v = m.vector(t)
		}
		length := 0.0
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		out = append(out, append(slices.Clone(v), m.bias*float32(math.Sqrt(length))))
	}
	return out, nil
}

func (m *model) last() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[len(m.calls)-1]
}

func (m *model) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

func newComparer(t *testing.T) (*Comparer, *model) {
	clock := coretest.NewClock(time.Time{})
	m := &model{clock: clock}
	return New(Options{Vectors: m.Vectors, Clock: clock, Log: slog.New(slog.DiscardHandler), Search: "q: ", Passage: "p: "}), m
}

var others = []string{"The gutters were repaired and the roof was repainted.", "Green tea wants water of eighty degrees."}

// Models differ in how near unrelated texts are: one in whose space all texts are at 0.8 finds
// the same as one in whose space they are at 0.
func TestNearIsAboveWhatUnrelatedTextsHaveInCommon(t *testing.T) {
	t.Parallel()
	var found [][]float64
	for _, bias := range []float32{0, 2} {
		c, m := newComparer(t)
		m.bias = bias
		got := c.Near(t.Context(), 7, 7, "repairing gutters and repainting the roof", others)
		if len(got) != 2 || got[0] < .35 || got[1] > .1 || got[0] > 1 || got[1] < 0 {
			t.Errorf("with a bias of %v: %v", bias, got)
		}
		found = append(found, got)
	}
	if d := math.Abs(found[0][0] - found[1][0]); d > .1 {
		t.Errorf("a bias moves what is found by %v: %v", d, found)
	}
}

func TestWhatWasEmbeddedIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	c.Near(t.Context(), 7, 7, "gutters", others)
	if n := len(m.last()); n != 1+len(anchors)+len(others) || m.last()[0] != "q: gutters" || m.last()[n-1] != "p: "+others[1] {
		t.Errorf("the first call has %q", m.last())
	}
	c.Near(t.Context(), 7, 7, "tea", others)
	if got := m.last(); !slices.Equal(got, []string{"q: tea"}) {
		t.Errorf("the second call has %q", got)
	}
	if c.Near(t.Context(), 8, 8, "tea", others); len(m.last()) != 1+len(others) || m.users[len(m.users)-1] != 8 {
		t.Errorf("another user's call has %q, of user %d", m.last(), m.users[len(m.users)-1])
	}
	c.Forget(7)
	if c.Near(t.Context(), 7, 7, "tea", others); len(m.last()) != 1+len(others) {
		t.Errorf("after the user was forgotten the call has %q", m.last())
	}
	if c.Near(t.Context(), 7, 7, "", others) != nil || c.Near(t.Context(), 7, 7, "tea", nil) != nil || m.asked() != 4 {
		t.Error("the model is asked about nothing")
	}
}

// What is many is read over several messages, so that none waits long.
func TestManyTextsAreEmbeddedOverSeveralCalls(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf("The number %d is about chimneys of the kind %d.", i, i*7919))
	}
	got := c.Near(t.Context(), 7, 7, many[149], many)
	if len(got) != 150 || got[149] != 0 || len(m.last()) != 1+len(anchors)+batch {
		t.Errorf("the first call has %d texts, and found %v", len(m.last()), got[149])
	}
	m.takes = slow + time.Millisecond
	c.Near(t.Context(), 7, 7, many[149], many)
	if c.Near(t.Context(), 7, 7, many[149], many); len(m.last()) != 1+150-2*batch {
		t.Errorf("the third call has %d texts", len(m.last()))
	}
	if got = c.Near(t.Context(), 7, 7, many[149], many); got[149] < .95 {
		t.Errorf("a text is %v near to itself", got[149])
	}
	if c.Near(t.Context(), 8, 8, many[149], many); len(m.last()) != 1+batch/8 {
		t.Errorf("after slow calls one has %d texts", len(m.last()))
	}
	m.takes = 0
	c.Near(t.Context(), 9, 9, many[149], many)
	if c.Near(t.Context(), 9, 9, many[149], many); len(m.last()) <= 1+batch/16 {
		t.Errorf("after fast calls one has %d texts", len(m.last()))
	}
	long := strings.Repeat("word ", 4000)
	if c.Near(t.Context(), 9, 9, long, []string{long}); len(m.last()[0]) > maxText+10 || len(m.last()[1]) > maxText+10 {
		t.Errorf("texts of %d and %d bytes are sent", len(m.last()[0]), len(m.last()[1]))
	}
}

func TestAfterAFailureTheModelIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	near := func() []float64 { return c.Near(t.Context(), 7, 7, "tea", others) }
	m.err = errors.New("no route to host")
	for range 2 {
		if near() != nil || m.asked() != 1 {
			t.Fatalf("asked %d times", m.asked())
		}
	}
	m.clock.Advance(firstQuiet)
	if near() != nil || m.asked() != 2 {
		t.Fatalf("asked %d times", m.asked())
	}
	m.clock.Advance(firstQuiet)
	if near() != nil || m.asked() != 2 {
		t.Fatal("a second failure does not double the time")
	}
	m.err = nil
	m.clock.Advance(firstQuiet)
	if near() == nil {
		t.Fatal("it is not asked again")
	}
	m.err = core.Errorf(core.Busy, "the budget is used up")
	if near() != nil {
		t.Fatal("a refused budget found something")
	}
	m.err = nil
	if near() == nil {
		t.Error("the budget of one user keeps others from asking")
	}
}

// A text that the model does not take costs the others nothing, nor other users.
func TestATextThatIsRefusedIsNotAskedAboutAgain(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413, 422, 500, 502} {
		c, m := newComparer(t)
		m.bad = map[string]int{"BAD": status}
		var many []string
		for i := range 40 {
			many = append(many, fmt.Sprintf("The number %d is about chimneys of the kind %d.", i, i*7919))
		}
		bad := slices.Insert(slices.Clone(many), 20, "BAD")
		for range 40 {
			c.Near(t.Context(), 7, 7, "chimneys", bad)
			if got := c.Near(t.Context(), 8, 8, many[39], many); len(got) != 40 || got[39] < .95 {
				t.Fatalf("%d: another user finds %v", status, got)
			}
		}
		if got := c.Near(t.Context(), 7, 7, many[39], bad); len(got) != 41 || got[40] < .95 || got[20] != 0 || len(m.last()) != 1 {
			t.Errorf("%d: %v, asked about %d texts", status, got, len(m.last()))
		}
	}
}

// Whether it is the message or what is remembered that the model refuses is not known at first.
func TestARefusedMessageMarksNoText(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	m.bad = map[string]int{"BAD": 400}
	if c.Near(t.Context(), 7, 7, "a BAD message", others) != nil {
		t.Fatal("found")
	}
	c.Near(t.Context(), 7, 7, "tea", others[:1])
	if c.Near(t.Context(), 7, 7, "a BAD message", others) != nil {
		t.Fatal("found")
	}
	if got := c.Near(t.Context(), 7, 7, "tea", others); len(got) != 2 || got[1] < .2 {
		t.Errorf("%v, asked about %q", got, m.last())
	}
}

// A model that fails with the texts of one user may answer another's.
func TestAFailureOfTextsQuietsTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	m.bad = map[string]int{"BAD": 500}
	if c.Near(t.Context(), 7, 7, "a BAD message", others) != nil || m.asked() != 2 {
		t.Fatalf("asked %d times", m.asked())
	}
	if c.Near(t.Context(), 7, 7, "tea", others) != nil || m.asked() != 2 {
		t.Errorf("the owner's next message is asked about")
	}
	if got := c.Near(t.Context(), 8, 8, "tea", others); len(got) != 2 {
		t.Errorf("another user finds %v", got)
	}
	m.clock.Advance(firstQuiet)
	if got := c.Near(t.Context(), 7, 7, "tea", others); len(got) != 2 {
		t.Errorf("after the pause the owner finds %v", got)
	}
}

// A call that was made before a user was forgotten ends after it.
func TestWhatIsForgottenDuringACallIsNotKept(t *testing.T) {
	t.Parallel()
	for _, known := range [][]string{nil, others[:1]} {
		c, m := newComparer(t)
		if known != nil {
			c.Near(t.Context(), 7, 7, "tea", known)
		}
		m.during = func() { c.Forget(7) }
		c.Near(t.Context(), 7, 7, "tea", others)
		m.during = nil
		if s := c.kept[7]; s != nil {
			t.Errorf("%d texts are kept of a forgotten user", len(s.vectors))
		}
		if c.Near(t.Context(), 7, 7, "tea", others); len(m.last()) < 1+len(others) {
			t.Errorf("after it the model is asked about %q", m.last())
		}
	}
}

func TestVectorsOfAnotherLengthAreNotCompared(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	c.Near(t.Context(), 7, 7, "tea", others)
	m.vector = func(string) []float32 { return make([]float32, 3) }
	if got := c.Near(t.Context(), 7, 7, "tea", others); got != nil {
		t.Errorf("without a length: %v", got)
	}
	m.clock.Advance(lastQuiet)
	m.vector = func(string) []float32 { return []float32{1, 0} }
	if got := c.Near(t.Context(), 7, 7, "tea", others); got != nil {
		t.Errorf("of a model that has changed: %v", got)
	}
}

// The vectors of all users have a limit in common.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	m.vector = func(text string) []float32 {
		v := make([]float32, embed.MaxDimensions)
		v[len(text)%len(v)] = 1
		return v
	}
	for user := range int64(30) {
		var many []string
		for i := range batch {
			many = append(many, fmt.Sprintf("%d of %d", i, user))
		}
		if got := c.Near(t.Context(), user+1, user+1, "text", many); len(got) != batch {
			t.Fatal(len(got))
		}
	}
	sum := 0
	for _, s := range c.kept {
		for _, v := range s.vectors {
			sum += len(v)
		}
	}
	if sum != c.floats || sum > maxFloats || len(c.kept) < 10 || c.kept[Common] == nil {
		t.Errorf("%d numbers of %d users are kept, %d are counted", sum, len(c.kept), c.floats)
	}
}

// Also of those of whom nothing is kept, since the model has failed.
func TestTheOwnersAreBounded(t *testing.T) {
	t.Parallel()
	c, m := newComparer(t)
	m.err = core.Errorf(core.Busy, "the budget is used up")
	for user := range int64(maxOwners + 50) {
		c.Near(t.Context(), user+1, user+1, "text", others)
	}
	if n := len(c.kept); n > maxOwners || c.kept[Common] == nil || c.kept[maxOwners+50] == nil {
		t.Errorf("%d owners are kept", n)
	}
}

func TestItIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c, _ := newComparer(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for user := range int64(4) {
				c.Near(t.Context(), user, user, fmt.Sprint("text ", i), others)
				c.Forget(user)
			}
		})
	}
	all.Wait()
}
