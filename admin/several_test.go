package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/auth"
)

var personRow = regexp.MustCompile(`<li class="card person brief" id="u-(\d+)"`)

// people are the numbers of those whom the list shows.
func (a answer) people() (list []string) {
	for _, m := range personRow.FindAllStringSubmatch(a.body, -1) {
		list = append(list, m[1])
	}
	return list
}

// throng adds n people with one access each, and as many accounts.
func (s *site) throng(n int) {
	for i := range n {
		s.world.access = append(s.world.access, core.AccessRow{ID: int64(100 + i), Bot: []string{"telegram", "family"}[i%2], User: int64(100 + i), Display: fmt.Sprintf("Guest %04d", i), Role: "guest",
			Platform: "telegram", PlatformUserID: fmt.Sprint(90000 + i), Scope: core.ScopeDM, Trust: core.Sandboxed, By: "operator via panel", At: s.clock.Now()})
	}
}

func TestPeopleAreFilteredByStateTrustBotAndPlatform(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.post("/admin/people/3/block", nil)
	for query, want := range map[string][]string{
		"":                              {"1", "3", "2", "4"},
		"?state=access":                 {"1", "3", "2"},
		"?state=none":                   {"4"},
		"?state=blocked":                {"3"},
		"?trust=sandboxed":              {"3", "2"},
		"?trust=vault&bot=telegram":     {"1", "2"},
		"?trust=sandboxed&bot=telegram": nil, // one access has to be both
		"?bot=club":                     {"2"},
		"?platform=discord":             {"2"},
		"?platform=discord&state=none":  nil,
		"?q=INES&bot=family":            {"2"},
	} {
		if got := s.get("/admin/people" + query).people(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	s.get("/admin/people?trust=sandboxed&bot=family&platform=telegram").has(t, "<option selected>sandboxed</option>", "<option selected>family</option>", `<option value="telegram" selected>Telegram</option>`, "2 people match.")
}

// Ids are on demand: a closed row has names only, a group's access its name.
func TestARowOfPeopleIsCompactAndNamesGroups(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/people?q=ines")
	row := a.body[strings.Index(a.body, `id="u-2"`):]
	brief, more, _ := strings.Cut(row[:strings.Index(row, "</li>")], "<details")
	if strings.Contains(brief, "39902211") || !strings.Contains(brief, "telegram vault, family sandboxed, club vault") {
		t.Errorf("the closed row says %s", brief)
	}
	for _, want := range []string{"39902211", "881204417730001", `<bdi title="-1001882734410">Allotment 14</bdi>`} {
		if !strings.Contains(more, want) {
			t.Errorf("the open row lacks %q: %s", want, more)
		}
	}
}

func TestSeveralPeopleAreBlockedOrLoseAccessAfterAQuestionThatNamesThem(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	ask := s.get("/admin/people/several?verb=block&id=2&id=3&id=1&id=999")
	ask.has(t, "<h1>Block 2 people?</h1>", "<bdi>Ines Carvalho</bdi>", "<bdi>Jun-ho Park", `name="ids" value="3,2"`, `<button class="danger" name="verb" value="block">Block 2 people</button>`)
	ask.lacks(t, "<bdi>Matteo</bdi>") // the owner
	if did := w.done(); len(did) > 0 {
		t.Errorf("the question did %q", did)
	}
	a := s.post("/admin/people/several", url.Values{"verb": {"block"}, "ids": {"3,2"}})
	a.has(t, "Blocked 2 people.", `action="/admin/people/3/undo"`, `action="/admin/people/2/undo"`, `<option value="blocked" selected>`)
	did := w.done()
	slices.Sort(did)
	if want := []string{"block * discord 881204417730001", "block * telegram 39902211", "block * telegram 7700431189"}; !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
	if by := w.lastActor(); by != (core.Actor{User: core.Operator, Via: "panel"}) {
		t.Errorf("by %+v", by)
	}
	s.get("/admin/people/several?verb=revoke&id=2").has(t, "<h1>Revoke all access of 1 person?</h1>", "This cannot be undone")
	before := len(w.done())
	s.post("/admin/people/several", url.Values{"verb": {"revoke"}, "ids": {"2,4,x"}}).has(t, "Revoked the access of 1 person. Unchanged: 2 (no access, or gone).")
	if did, want := w.done()[before:], []string{"revoke telegram 39902211", "revoke family 39902211", "revoke club 881204417730001"}; !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
	s.post("/admin/people/several", url.Values{"verb": {"block"}, "ids": {"1"}}).has(t, "flash bad", "The owner cannot be blocked")
	s.post("/admin/people/several", url.Values{"verb": {"approve"}, "ids": {"3"}}).has(t, "There is no such decision")
	if a := s.do("GET", "/admin/people/several?verb=block&id=1&q=x&state=access", nil); a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/people?q=x&state=access" {
		t.Errorf("of nobody: %d to %q", a.status, a.header.Get("Location"))
	}
	s.get("/admin/people").has(t, "Nobody was selected who can be blocked")
}

func TestPeopleAreFoundAndBlockedAmongAThousand(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.throng(1000)
	a := s.get("/admin/people")
	a.has(t, "All 1000", `rel="next" href="/admin/people?page=2"`)
	if n := len(a.body); n > 60_000 {
		t.Errorf("the page has %d bytes", n)
	}
	s.get("/admin/people?q=guest+0777").has(t, `id="u-877"`, "All 1 found", "1 person matches.")
	s.get("/admin/people?bot=family&page=3").has(t, `href="/admin/people?bot=family&amp;page=2"`, `href="/admin/people?bot=family&amp;page=4"`)
	ask := s.get("/admin/people/several?verb=block&all=1&bot=family")
	ask.has(t, "<h1>Block 500 people?</h1>", "and 470 more")
	ids := regexp.MustCompile(`name="ids" value="([^"]*)"`).FindStringSubmatch(ask.body)
	s.post("/admin/people/several", url.Values{"verb": {"block"}, "ids": {ids[1]}}).has(t, "Blocked 500 people.", "500 people match.")
	if n := len(s.world.done()); n != 500 {
		t.Errorf("%d decisions, want 500", n)
	}
}

func TestAViewerSelectsNobody(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin/people").has(t, `class="mark-it"`, `action="/admin/people/several"`)
	s.enterAs("vera", auth.RoleViewer)
	s.get("/admin/people").lacks(t, "mark-it", `action="/admin/people/several"`)
	s.get("/admin/people/several?verb=block&id=2").has(t, `<fieldset class="viewing" disabled>`)
}
