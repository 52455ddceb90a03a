package admin_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/bus"
	"gatehouse/core/council/ledger"
	"gatehouse/core/permission/raise"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/report"
	"gatehouse/core/session"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
	"gatehouse/pairing/people"
)

// lede is the first sentence of a page.
var lede = regexp.MustCompile(`(?s)<header class="head">.*?</header>`)

// failing has each source that is not the world's fail.
type failing struct{ err error }

func (f failing) Last() (report.Crash, bool)                          { return report.Crash{}, false }
func (f failing) Runs(context.Context, int) ([]report.Run, error)     { return nil, f.err }
func (f failing) Faults(context.Context, int) ([]report.Fault, error) { return nil, f.err }

// closedLedger returns a ledger that reads nothing: its database is closed.
func closedLedger(t *testing.T) *ledger.Store {
	t.Helper()
	db := storetest.Open(t, core.System{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return ledger.New(ledger.Options{DB: db, Clock: core.System{}})
}

func TestTheFirstSentenceOfAPageWhoseSourceFailsClaimsNothing(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) {
		bad := failing{errors.New("disk I/O error")}
		o.Council.Store, o.Reports.Reports = closedLedger(t), bad
	}).enter()
	s.world.full()
	s.world.setBroken(errors.New("disk I/O error"))
	for path, untrue := range map[string][]string{
		"/admin":                 {"All is well", "No requests are pending", "Nothing."},
		"/admin/pairing":         {"No requests are pending"},
		"/admin/approvals":       {"No tool call waits"},
		"/admin/people":          {"No one has access"},
		"/admin/chats":           {"No one has talked"},
		"/admin/queue":           {"Nothing is stuck"},
		"/admin/gateways":        {"No gateway stands by", "nobody is answered", "None is noted"},
		"/admin/council":         {"0 questions", "No council was asked", "Nothing is known of a model", "No question yet"},
		"/admin/council/domains": {"0 domains", "No name is a candidate"},
		"/admin/reports":         {"0 crashes", "No error reached the log", "No run is recorded"},
	} {
		a := s.get(path)
		if head := lede.FindString(a.body); !strings.Contains(head, "can’t be") {
			t.Errorf("GET %s begins with %s", path, head)
		}
		a.lacks(t, untrue...)
	}
}

func TestTheOverviewIsNotWellWhenQuestionsAboutTrustCannotBeRead(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) { o.Approvals.Raises = brokenRaises{o.Approvals.Raises.(raiseWorld)} }).enter()
	a := s.get("/admin")
	a.has(t, "uestions about trust can’t be read", "The list of trust for a time can’t be read right now.")
	a.lacks(t, "All is well")
}

// brokenRaises cannot be listed.
type brokenRaises struct{ raiseWorld }

func (brokenRaises) Raises(context.Context) ([]raise.Raise, error) {
	return nil, errors.New("disk I/O error")
}

func TestFirstSentencesCountAllAndNotWhatAPageLists(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) { o.Reports.Reports = manyFaults{} }).enter()
	w := s.world
	w.full()
	now := w.clock.Now()
	w.depths = []inspect.Depth{{Bot: "family", Dead: 300}, {Bot: "telegram", Dead: 100, OutboxUnknown: 20, OutboxFailed: 30}}
	w.dead, w.sends = nil, nil
	for i := range int64(20) {
		w.dead = append(w.dead, inspect.DeadRow{Seq: i, Bot: "telegram", Kind: "message", ReceivedAt: now})
		w.sends = append(w.sends, inspect.SendRow{Seq: i, Bot: "telegram", State: "unknown", CreatedAt: now})
	}
	s.get("/admin/queue").has(t, "400 messages were given up, and 50 replies need your decision.", "The first 15 are shown.")

	w.active = nil
	for i := range 40 {
		id := w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: fmt.Sprint("busy", i)}, User: 2, Trust: core.Vault, Source: "telegram"}, "", fmt.Sprint("busy-", i), transcript.Message{Role: "user", Blocks: []core.Block{text("hello")}})
		w.active = append(w.active, bus.Info{Run: fmt.Sprint("busy-", i), Session: id})
	}
	s.get("/admin/chats").has(t, "40 conversations are being answered right now.")
	s.get("/admin/chats?bot=telegram").has(t, "What matches, newest first.") // the others are not of it

	s.get("/admin/reports").has(t, "more than 100 kinds of errors in 90 days", "Only those that were last are shown.")
}

// manyFaults is a log with 400 kinds of errors.
type manyFaults struct{ failing }

func (manyFaults) Faults(_ context.Context, limit int) ([]report.Fault, error) {
	return slices.Repeat([]report.Fault{{ID: "f", Type: "error", Message: "upkeep", Count: 1}}, min(limit, 400)), nil
}

func TestPeopleAreListedWithTheirAccessHoweverMuchThereIs(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	for i := range int64(1200) { // of each of 600 people two
		w.access = append(w.access, core.AccessRow{ID: i, Bot: []string{"telegram", "family"}[i%2], User: 2 + i/2, Display: fmt.Sprint("Person ", i/2), Role: "guest", Platform: "telegram", PlatformUserID: fmt.Sprint(1000 + i/2), Scope: core.ScopeDM, Trust: core.Vault})
	}
	s.get("/admin/people").has(t, "600 people may talk to a bot.")
	s.get("/admin/people?state=none").has(t, "0 people match")
	s.get("/admin/people?q=Person+599").has(t, "telegram vault, family vault")

	w.access = w.access[:600]
	for i := range int64(1000) {
		w.others = append(w.others, people.Person{User: 5000 + i, Display: fmt.Sprint("Old ", i), Role: "guest"})
	}
	s.get("/admin/people").has(t, "At least 300 people may talk to a bot; ", "The first 1000 people are looked through.")
}

func TestAPersonsPageDoesNotSayNeverOrNoneOfWhatCannotBeRead(t *testing.T) {
	var seen, blocks error
	s := newSite(t, nil, func(o *admin.Options) {
		last := o.People.LastSeen
		o.People.LastSeen = func(ctx context.Context, list []people.Person) (map[int64]time.Time, error) {
			if seen != nil {
				return nil, seen
			}
			return last(ctx, list)
		}
		o.People.Blocks = brokenBlocks{o.People.Blocks.(*world), &blocks}
	}).enter()
	s.world.full()
	seen = errors.New("disk I/O error")
	for _, path := range []string{"/admin/people", "/admin/people/2"} {
		a := s.get(path)
		a.has(t, "not known")
		a.lacks(t, ">never<")
	}
	seen, blocks = nil, errors.New("disk I/O error")
	a := s.get("/admin/people/2")
	a.has(t, "The list of blocked people can’t be read right now.", "39902211")
	a.lacks(t, "not known")
	blocks = nil
	s.world.setBroken(errors.New("disk I/O error"))
	s.get("/admin/people/2").lacks(t, "No account on any platform", "They may talk to no bot now")
}

// brokenBlocks cannot be listed while there is an error.
type brokenBlocks struct {
	*world
	err *error
}

func (b brokenBlocks) Blocks(ctx context.Context) ([]people.Blocked, error) {
	list, err := b.world.Blocks(ctx)
	return list, errors.Join(err, *b.err)
}

func TestTheFilterOfWhatWaitsClaimsNothingWhenToolCallsCannotBeRead(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) { o.Approvals.Asks = brokenAsks{o.Approvals.Asks.(askWorld)} }).enter()
	s.world.full()
	a := s.get("/admin/chats?state=waiting")
	a.has(t, "The list of conversations can’t be read right now. The list of tool calls can’t be read")
	a.lacks(t, "No conversation matches", "Nothing matches")
	s.get("/admin/chats").has(t, "Allotment meeting")
}

// brokenAsks cannot be listed.
type brokenAsks struct{ askWorld }

func (brokenAsks) Pending(context.Context, int) ([]ask.Waiting, error) {
	return nil, errors.New("disk I/O error")
}
