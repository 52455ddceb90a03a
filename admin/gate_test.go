package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	adminpeople "gatehouse/admin/people"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/queue/outbox"

	"gatehouse/admin"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/pairing"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
)

// The panel's sources as the program joins them.
var (
	_ adminpeople.Requests  = (*pairing.Gate)(nil)
	_ adminpeople.Decisions = (*pairing.Gate)(nil)
	_ adminpeople.Access    = (*people.Store)(nil)
	_ adminpeople.Persons   = (*people.Store)(nil)
	_ adminpeople.Terms     = (*people.Store)(nil)
	_ adminpeople.Blocks    = (*people.Store)(nil)
	_ adminpeople.Places    = (*places.Store)(nil)
	_ operations.Lanes      = (*inspect.Reader)(nil)
	_ operations.Dead       = (*queue.Queue)(nil)
	_ operations.Sends      = (*outbox.Outbox)(nil)
	_ page.Bell             = (*bus.Bus)(nil)
)

// mail counts what the gate would send and free.
type mail struct{ freed, discarded int }

func (m *mail) Post(context.Context, *store.Tx, core.Reply) error { return nil }
func (m *mail) Free(context.Context, *store.Tx, string, core.Trust) (int, error) {
	m.freed++
	return 1, nil
}
func (m *mail) Discard(context.Context, *store.Tx, string) (int, error) {
	m.discarded++
	return 1, nil
}
func (m *mail) Reword(context.Context, *store.Tx, string, *core.Inbound) ([]core.Inbound, error) {
	return nil, nil
}

// withGate is a site whose people and requests are the real gate's.
func withGate(t *testing.T) (*site, *store.DB, *pairing.Gate, *coretest.Clock) {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	gate := pairing.New(db, pairing.Options{Clock: clock, Bots: bots.New(func() []bots.Bot { return []bots.Bot{{Name: "telegram", Platform: "telegram"}} }, nil)}, &mail{}, nil, nil)
	if err := gate.People.EnsureOperator(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, clock, func(o *admin.Options) {
		o.People.Requests, o.People.Decisions, o.People.Access, o.People.Persons, o.People.Terms, o.People.Blocks, o.People.Places, o.People.Invites = gate, gate, gate.People, gate.People, gate.People, gate.People, gate.Places, gate.Codes
		o.People.InviteLink = func(bot, code string) string { return "https://t.example/" + bot + "?start=" + code }
	})
	return s.enter(), db, gate, clock
}

// knock has a stranger write to the bot, and returns the request's id.
func knock(t *testing.T, db *store.DB, gate *pairing.Gate, clock core.Clock, id, name string) string {
	t.Helper()
	var v core.Admission
	err := db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		v, err = gate.Admit(t.Context(), tx, &core.Inbound{
			UpdateID: "u" + id, Address: core.Address{Bot: "telegram", Chat: id}, Kind: core.KindMessage, MessageID: "m" + id,
			From: core.Peer{Platform: "telegram", ID: id, Name: name}, At: clock.Now(), Text: "hello, I am " + name, Addressed: true,
		})
		return err
	})
	if err != nil || v.Request == "" {
		t.Fatalf("Admit: %+v, %v", v, err)
	}
	return v.Request
}

func TestTheBooksRequestsAreDecidedInThePanel(t *testing.T) {
	s, db, gate, clock := withGate(t)
	ada := knock(t, db, gate, clock, "7214450193", "Ada <i>Okafor</i>")
	s.get("/admin/pairing").has(t, "Ada &lt;i&gt;Okafor&lt;/i&gt;", "Telegram id <span class=\"num\">7214450193</span>", "hello, I am Ada")

	s.post("/admin/pairing/"+ada+"/approve", url.Values{"trust": {"vault"}, "end": {"24h"}}).has(t, "may talk to telegram now, as vault", "/revoke")
	rows, err := gate.People.Access(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].Trust != core.Vault || !rows[0].ExpiresAt.Equal(clock.Now().Add(24*time.Hour)) {
		t.Fatalf("access after approving: %+v, %v", rows, err)
	}
	s.post("/admin/pairing/"+ada+"/deny", nil).has(t, `class="flash note"`, "Already approved by operator via panel")
	s.post("/admin/pairing/"+ada+"/undo", nil).has(t, `class="flash note"`, "An approval cannot be undone", "revoke the access instead")
	eve := knock(t, db, gate, clock, "66", "Eve")
	s.post("/admin/pairing/"+eve+"/deny", nil).has(t, "Eve receives one denial", "/undo")
	s.post("/admin/pairing/"+eve+"/undo", nil).has(t, "waits for a decision again", `action="/admin/pairing/`+eve+`/approve"`)
	s.post("/admin/pairing/"+eve+"/block", nil)
	clock.Advance(11 * time.Second)
	s.post("/admin/pairing/"+eve+"/undo", nil).has(t, `class="flash note"`, "can be undone for 10 seconds")

	people := s.get("/admin/people")
	people.has(t, "Ada &lt;i&gt;Okafor&lt;/i&gt;", "vault", "<bdi>Eve</bdi> <small>Telegram")
	s.post("/admin/people/revoke", url.Values{"bot": {"telegram"}, "user": {"7214450193"}}).has(t, "Revoked: 1 access on telegram.")
	s.get("/admin/people").has(t, "They may talk to no bot now.", "No one has access yet.")
	s.get("/admin/pairing").has(t, `<span class="pill bad">Revoked</span>`)
	s.get("/admin/pairing").lacks(t, "/undo") // a revocation is not a decision on the request

	bo := knock(t, db, gate, clock, "99", "Bo")
	s.post("/admin/pairing/"+bo+"/block", nil).has(t, "Bo is blocked")
	s.get("/admin/people").has(t, `Telegram <span class="num">99</span>`)
	s.post("/admin/people/unblock", url.Values{"bot": {"telegram"}, "platform": {"telegram"}, "user": {"99"}}).has(t, "Unblocked.")
	s.post("/admin/people/unblock", url.Values{"bot": {"telegram"}, "platform": {"telegram"}, "user": {"99"}}).has(t, `class="flash note"`, "This person is not blocked there.")
	s.post("/admin/people/access/4711/remove", nil).has(t, `class="flash note"`)

	s.post("/admin/people/places/enable", url.Values{"bot": {"telegram"}, "place": {"-100"}, "name": {"Allotment <14>"}, "trust": {"vault"}}).has(t, "Allotment &lt;14&gt;", "enabled as vault")
	s.post("/admin/people/places/disable", url.Values{"bot": {"telegram"}, "place": {"-100"}}).has(t, `<span class="pill idle">Silent</span>`)
}

func TestARevocationIsAmongTheRecentDecisionsHoweverManyAskedSince(t *testing.T) {
	s, db, gate, clock := withGate(t)
	ada := knock(t, db, gate, clock, "1", "Ada")
	s.post("/admin/pairing/"+ada+"/approve", url.Values{"trust": {"vault"}, "end": {"24h"}})
	err := db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		for i := 0; i < 500 && err == nil; i++ {
			_, err = tx.Exec(t.Context(), `INSERT INTO pairing_requests (id, bot, platform, platform_user_id, platform_chat_id, status, created_at, resolved_at)
				VALUES ($1, 'telegram', 'telegram', $1, '', 'expired', $2, $3)`, fmt.Sprint("expired", i), core.Stamp(clock.Now().Add(time.Minute)), core.Stamp(clock.Now().Add(2*time.Minute)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	s.post("/admin/people/revoke", url.Values{"bot": {"telegram"}, "user": {"1"}})
	s.get("/admin/pairing").has(t, `id="ag-`+ada+`"`, "Approve again…")
}

func TestEveryDecisionInThePanelIsAuditedAsTheOperators(t *testing.T) {
	s, db, gate, clock := withGate(t)
	ada := knock(t, db, gate, clock, "1", "Ada")
	s.post("/admin/pairing/"+ada+"/deny", nil)
	s.post("/admin/people/block", url.Values{"bot": {"telegram"}, "platform": {"telegram"}, "user": {"5"}})
	var got []string
	if err := db.Select(t.Context(), &got, `SELECT action || ' ' || user_id || ' ' || via FROM audit_events WHERE user_id <> 0 AND action NOT LIKE 'admin.%' ORDER BY id`); err != nil {
		t.Fatal(err)
	}
	if want := "pairing.deny 1 panel, access.block 1 panel"; strings.Join(got, ", ") != want {
		t.Errorf("audited %q, want %q", strings.Join(got, ", "), want)
	}
}

func TestWhatSomeoneWouldSeeIsSaidBeforeTheyGetAccess(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/pairing")
	a.has(t, "2 files of yours, like Public/allotment.md, Public/seeds.md; and a folder of their own.", "At least 18,402 files of yours", "vault-agent, with anthropic/claude-sonnet-4-5",
		"Read, Glob, Grep, Write, Edit, Bash, WebFetch", "Read Public/allotment.md, write in a folder of their own.", "Change notes of yours.", "In this one group, when they address family; not in direct messages.")
	requests := s.world.requests
	broken := newSite(t, nil, func(o *admin.Options) {
		o.People.Preview = func(context.Context, core.Trust) (core.AccessPreview, error) {
			return core.AccessPreview{}, errors.New("disk I/O error")
		}
	}).enter()
	broken.world.requests = requests
	broken.get("/admin/pairing").has(t, "What they would see can’t be read right now.", `action="/admin/pairing/r1/approve"`)
}
