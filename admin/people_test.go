package admin_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
	"gatehouse/web/auth"
)

// ---- the world's people: whoever has access, with the accounts it names

func (w *world) Persons(_ context.Context, limit int) ([]people.Person, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.persons()[:min(limit, len(w.persons()))], w.broken
}

func (w *world) persons() (out []people.Person) {
	for _, a := range w.access {
		i := slices.IndexFunc(out, func(p people.Person) bool { return p.User == a.User })
		if i < 0 {
			i = len(out)
			out = append(out, people.Person{User: a.User, Display: a.Display, Role: a.Role, Since: a.At})
		}
		account := people.Account{Platform: a.Platform, ID: a.PlatformUserID, Display: a.Display, Since: a.At}
		if !slices.ContainsFunc(out[i].Accounts, func(x people.Account) bool { return x.Platform == account.Platform && x.ID == account.ID }) {
			out[i].Accounts = append(out[i].Accounts, account)
		}
	}
	return append(out, w.others...)
}

func (w *world) PersonOf(_ context.Context, user int64) (people.Person, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.persons() {
		if p.User == user {
			return p, w.broken
		}
	}
	return people.Person{}, core.Errorf(core.NotFound, "no person has this number")
}

func (w *world) AccessOf(_ context.Context, user int64) (out []core.AccessRow, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.access {
		if a.User == user {
			out = append(out, a)
		}
	}
	return out, w.broken
}

func (w *world) PersonsWithAccess(ctx context.Context, limit int) (out []people.PersonWithAccess, err error) {
	rows, err := w.Persons(ctx, limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		x := people.PersonWithAccess{Person: row}
		for _, a := range w.access {
			if a.User == row.User {
				x.Access = append(x.Access, a)
			}
		}
		out = append(out, x)
	}
	return out, err
}

func (w *world) ChangeAccess(_ context.Context, id int64, a core.Approval, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.access {
		if w.access[i].ID == id {
			w.access[i].Trust, w.access[i].ExpiresAt = a.Trust, a.ExpiresAt
			w.note(by, "change %d %s %s", id, a.Trust, core.Stamp(a.ExpiresAt))
			return nil
		}
	}
	return core.Errorf(core.NotFound, "there is no such access")
}

func (w *world) GiveAccess(_ context.Context, user int64, bot, place string, a core.Approval, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "give %d %s %q %s", user, bot, place, a.Trust)
	return nil
}

func (w *world) Unlink(_ context.Context, user int64, platform string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "unlink %d %s", user, platform)
	return nil
}

func (w *world) Standing(_ context.Context, user int64) (usage.Standing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := usage.Standing{Today: usage.Budget{Tokens: 42_000, MicroUSD: 310_000}, Month: usage.Budget{Tokens: 1_204_000, MicroUSD: 8_120_000}, General: usage.Budget{Tokens: 200_000}}
	s.Budget = s.General
	if own, ok := w.budgets[user]; ok {
		s.Budget, s.Own = own, true
	}
	s.MonthBudget = w.monthly[user]
	return s, w.broken
}

func (w *world) SetBudget(_ context.Context, user int64, amount, month string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.budgets == nil {
		w.budgets = map[int64]usage.Budget{}
	}
	switch amount {
	case "":
		delete(w.budgets, user)
	case "off":
		w.budgets[user] = usage.Budget{}
	case "$2":
		w.budgets[user] = usage.Budget{MicroUSD: 2_000_000}
	default:
		return core.Errorf(core.Invalid, "amount: %q is neither a number of tokens (200k), nor dollars ($2), nor off", amount)
	}
	if w.monthly == nil {
		w.monthly = map[int64]usage.Budget{}
	}
	if delete(w.monthly, user); month == "5m" {
		w.monthly[user] = usage.Budget{Tokens: 5_000_000}
		amount += ", in a month " + month
	}
	w.note(by, "budget %d %s", user, amount)
	return nil
}

func (w *world) lastSeen(_ context.Context, people []people.Person) (map[int64]time.Time, error) {
	last := map[int64]time.Time{}
	for _, x := range people {
		last[x.User] = w.clock.Now().Add(-time.Duration(x.User) * 3 * time.Minute)
	}
	return last, nil
}

func (w *world) setPlace(_ context.Context, bot, place string, level core.Trust, mention string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "set %s %s %s %s", bot, place, level, mention)
	return nil
}

// careWorld has long orders that end when the test says so.
type careWorld struct{ *world }

func (w careWorld) order(kind string, user int64, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs == nil {
		w.jobs = map[string]page.Job{}
	}
	w.jobs[kind+string(rune('0'+user))] = page.Job{Running: true, Tell: "3 of 12 conversations"}
	w.note(by, "%s %d", kind, user)
	return nil
}

func (w careWorld) Forget(_ context.Context, user int64, by core.Actor) error {
	return w.order("forget", user, by)
}
func (w careWorld) Export(_ context.Context, user int64, by core.Actor) error {
	return w.order("export", user, by)
}

func (w careWorld) Job(kind string, user int64) (page.Job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j, ok := w.jobs[kind+string(rune('0'+user))]
	return j, ok
}

// settle ends an order; whoever was forgotten is gone.
func (w *world) settle(kind string, user int64, j page.Job) {
	w.mu.Lock()
	w.jobs[kind+string(rune('0'+user))] = j
	if kind == "forget" && j.Error == "" {
		w.access = slices.DeleteFunc(w.access, func(a core.AccessRow) bool { return a.User == user })
	}
	w.mu.Unlock()
	w.ring(core.TopicPeople)
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (w careWorld) OpenExport(_ context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs["export"+string(rune('0'+user))]; j.Size == 0 {
		return nil, time.Time{}, core.Errorf(core.NotFound, "there is no such file any more: have it made again")
	}
	w.note(by, "download %d", user)
	return file{bytes.NewReader([]byte("PK a zip"))}, w.clock.Now(), nil
}

// ---- the pages

func TestLinkedAccountsAreShownAsOnePerson(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/people")
	if n := strings.Count(a.body, `id="u-2"`); n != 1 {
		t.Errorf("Ines is shown %d times", n)
	}
	a.has(t, `Telegram <span class="num">39902211</span> · Discord <span class="num">881204417730001</span>`, "6 min ago", "3 people may talk to a bot; 1 more did once.", "They may talk to no bot now.")
	one := s.get("/admin/people/2")
	one.has(t, "Ines Carvalho", "39902211", "881204417730001", `action="/admin/people/2/unlink"`, `name="platform" value="discord"`,
		"42,000 tokens, $0.31", "1,204,000 tokens, $8.12", "200,000 tokens", "21 %", `action="/admin/people/access/3/change"`,
		`<option value="keep" selected>As it is</option>`, `<option value="telegram ">telegram: direct messages</option>`, "family: group Allotment 14")
	one.lacks(t, `value="full"`)
	s.get("/admin/people/3").lacks(t, "/unlink") // one account: nothing to part
	if a := s.get("/admin/people/77"); a.status != http.StatusNotFound {
		t.Errorf("nobody: status %d", a.status)
	}
	s.get("/admin/people/1").lacks(t, "/forget", "/block") // the owner stays
}

// keysOf returns a key of everyone but the owner.
func (*world) keysOf(_ context.Context, user int64) ([]auth.KeyRow, error) {
	if user == core.Operator {
		return nil, nil
	}
	return []auth.KeyRow{{ID: "k1", Label: "phone <b>", User: user, Trust: core.Vault, Scopes: []string{"chat", "read"}}}, nil
}

// A person's page shows their API keys, which a block leaves, with what revokes each.
func TestAPersonsPageShowsTheirKeysWithRevoke(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin/people/2").has(t, "phone &lt;b&gt;", "chat, read", `action="/admin/settings/keys/k1/revoke"`, "These keep working when you revoke or block this person on bots")
	s.get("/admin/people/1").lacks(t, "API keys")
}

// Whoever is about to block or revoke somebody reads that their API keys keep working.
func TestTheQuestionBeforeABlockSaysWhatAPIKeysDo(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	const keeps = "Their API key keeps working until you revoke it, on this page."
	person := s.get("/admin/people/2").body
	for what, form := range map[string]string{"block": "on every bot? Their messages are neither kept nor answered, and they are not notified. " + keeps, "revoke": "they can ask again after 7 days. " + keeps} {
		if !strings.Contains(person, form) {
			t.Errorf("%s on a person's page: no %q", what, form)
		}
	}
	s.get("/admin/people").has(t, "An API key of theirs keeps working until you revoke it, under Details.")
	for _, verb := range []string{"block", "revoke"} {
		s.get("/admin/people/several?verb="+verb+"&id=2&id=3").has(t, "Their API keys keep working until you revoke them, on their pages.")
	}
}

func TestEveryDecisionAboutAPersonWorksWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	in7 := core.Stamp(s.clock.Now().Add(7 * 24 * time.Hour))
	keep := core.Stamp(w.access[2].ExpiresAt)
	for _, c := range []struct {
		path string
		form url.Values
		did  []string
		says string
	}{
		{"/admin/people/access/3/change", url.Values{"from": {"2"}, "trust": {"vault"}, "end": {"7d"}, "ends": {keep}}, []string{"change 3 vault " + in7}, "Changed to vault, for 7 days."},
		{"/admin/people/access/3/change", url.Values{"from": {"2"}, "trust": {"sandboxed"}, "end": {"keep"}, "ends": {keep}}, []string{"change 3 sandboxed " + keep}, "Changed to sandboxed, for 5 days."},
		{"/admin/people/access/3/change", url.Values{"from": {"2"}, "trust": {"sandboxed"}, "end": {""}, "ends": {keep}}, []string{"change 3 sandboxed "}, "without end"},
		{"/admin/people/2/give", url.Values{"where": {"family -1001882734410"}, "trust": {"vault"}, "end": {"24h"}}, []string{`give 2 family "-1001882734410" vault`}, "for 24 h"},
		{"/admin/people/2/unlink", url.Values{"platform": {"discord"}}, []string{"unlink 2 discord"}, "The account on Discord has no person now"},
		{"/admin/people/2/budget", url.Values{"mode": {"own"}, "amount": {"$2"}}, []string{"budget 2 $2"}, "Their budget is $2 a day."},
		{"/admin/people/2/budget", url.Values{"mode": {"off"}, "amount": {"$2"}}, []string{"budget 2 off"}, "without bound"},
		{"/admin/people/2/budget", url.Values{"mode": {"own"}, "amount": {"$2"}, "month": {"5m"}}, []string{"budget 2 $2, in a month 5m"}, "In a month: 5m."},
		{"/admin/people/2/budget", url.Values{"mode": {"general"}}, []string{"budget 2 "}, "the default ones"},
		{"/admin/people/2/block", url.Values{"from": {"2"}}, []string{"block * telegram 39902211", "block * discord 881204417730001"}, "Blocked on every bot."},
		{"/admin/people/2/undo", url.Values{"from": {"2"}}, []string{"undo block * telegram 39902211", "undo block * discord 881204417730001"}, "Undone: they are not blocked"},
		{"/admin/people/places/set", url.Values{"bot": {"family"}, "place": {"-1001882734410"}, "trust": {"vault"}, "mention": {"context"}}, []string{"set family -1001882734410 vault context"}, "The group’s settings are changed."},
	} {
		before := len(w.done())
		page := s.post(c.path, c.form)
		if did := w.done()[before:]; !slices.Equal(did, c.did) {
			t.Errorf("%s did %q, want %q", c.path, did, c.did)
		}
		page.has(t, `<p class="flash good"`, c.says)
		if w.lastActor() != (core.Actor{User: core.Operator, Via: "panel"}) {
			t.Errorf("%s was done by %+v", c.path, w.lastActor())
		}
	}
}

func TestWhatCanNotBeDoneAboutAPersonNamesItsField(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for name, c := range map[string]struct {
		path string
		form url.Values
		says string
	}{
		"full":      {"/admin/people/access/3/change", url.Values{"trust": {"full"}, "end": {""}}, "cannot be granted"},
		"an end":    {"/admin/people/access/3/change", url.Values{"trust": {"vault"}, "end": {"100y"}}, "offered ends"},
		"no time":   {"/admin/people/access/3/change", url.Values{"trust": {"vault"}, "end": {"keep"}, "ends": {"soon"}}, "Until: that is no time."},
		"nowhere":   {"/admin/people/2/give", url.Values{"trust": {"vault"}, "end": {""}}, "Where: choose"},
		"amount":    {"/admin/people/2/budget", url.Values{"mode": {"own"}, "amount": {"lots"}}, "Amount: &#34;lots&#34; is neither"},
		"none":      {"/admin/people/2/budget", url.Values{"mode": {"own"}}, "Amount: give tokens"},
		"no choice": {"/admin/people/2/budget", nil, "Budget: choose"},
		"the owner": {"/admin/people/1/block", nil, "The owner cannot be blocked"},
		"not typed": {"/admin/people/2/forget", url.Values{"sure": {"yes"}}, "Confirmation: type"},
		"a group":   {"/admin/people/places/set", url.Values{"bot": {"family"}, "trust": {"full"}}, "cannot have trust full"},
	} {
		a := s.post(c.path, c.form)
		if !strings.Contains(a.body, `class="flash bad"`) || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: the page does not say %q\n%s", name, c.says, a.main())
		}
	}
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("was done: %q", did)
	}
}

func TestABlockAndItsEndCanBeUndoneForTenSeconds(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := newSite(t, clock, nil).enter()
	s.world.full()
	s.post("/admin/people/3/block", nil).has(t, `<span class="pill bad">Blocked</span>`, `action="/admin/people/3/undo" data-left="10"`, `action="/admin/people/3/unblock"`)
	clock.Advance(7 * time.Second)
	s.get("/admin/people/3").has(t, `data-left="3"`, "Blocked")
	clock.Advance(3 * time.Second)
	s.get("/admin/people/3").lacks(t, "/undo")
	clock.Advance(time.Second)
	s.post("/admin/people/3/undo", nil).has(t, "flash note", "Too late to undo")

	// Its end, too, and that by the row of somebody without a card.
	known := url.Values{"bot": {"*"}, "platform": {"telegram"}, "user": {"611003377"}}
	s.post("/admin/people/unblock", known).has(t, `<span class="pill idle">Unblocked</span>`, `name="was" value="unblocked"`)
	known.Set("was", "unblocked")
	s.post("/admin/people/undo", known).has(t, "they are blocked as before")
	s.post("/admin/people/undo", known).has(t, "flash note", "Too late to undo")
	clock.Advance(11 * time.Second)
	known.Set("was", "blocked")
	s.post("/admin/people/undo", known).has(t, "flash note")
	if did := s.world.done(); !slices.Equal(did, []string{"block * telegram 7700431189", "unblock * telegram 611003377", "block * telegram 611003377"}) {
		t.Errorf("did %q", did)
	}
}

func TestForgettingWantsItsWordShowsProgressAndReportsWhatWasDone(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.post("/admin/people/2/forget", url.Values{"sure": {" Forget "}})
	a.has(t, "Forgetting this person", "3 of 12 conversations", `data-every="1"`)
	a.lacks(t, `action="/admin/people/2/forget"`)
	s.world.settle("forget", 2, page.Job{Error: "something of this person still runs <b>"})
	s.get("/admin/people/2").has(t, "They are not forgotten", "still runs &lt;b&gt;", `action="/admin/people/2/forget"`)
	s.post("/admin/people/2/forget", url.Values{"sure": {"forget"}})
	s.world.settle("forget", 2, page.Job{Said: []string{"Erased: 12 conversations, 3 files, and 4 turns in groups."}})
	a = s.get("/admin/people/2")
	a.has(t, "<h1>Forgotten</h1>", "Erased: 12 conversations", "Older backups still hold this person’s data.")
	a.lacks(t, "Ines", "39902211")
	s.get("/admin/people").lacks(t, "Ines")
}

func TestAnExportIsMadeWhileThePageIsReadAndDownloaded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	if a := s.get("/admin/people/2/export"); a.status != http.StatusNotFound {
		t.Errorf("before it is made: status %d", a.status)
	}
	a := s.post("/admin/people/2/export", nil)
	a.has(t, "3 of 12 conversations", `data-every="1"`)
	a.lacks(t, "Download the export")
	s.world.settle("export", 2, page.Job{Size: 8, At: s.clock.Now()})
	s.get("/admin/people/2").has(t, `href="/admin/people/2/export" download`, "Make it anew")
	a = s.get("/admin/people/2/export")
	if a.body != "PK a zip" || a.header.Get("Content-Disposition") != `attachment; filename="person-2.zip"` || a.header.Get("Content-Type") != "application/zip" {
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	}
	if did := s.world.done(); !slices.Equal(did, []string{"export 2", "download 2"}) {
		t.Errorf("did %q", did)
	}
}
