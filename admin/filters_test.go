package admin_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing/places"
)

var chatTitle = regexp.MustCompile(`<tr id="s-[^"]*"><th scope="row"><a [^>]*>([^<]*)</a>`)

// titles are those of the list's conversations, sorted.
func (a answer) titles() (list []string) {
	for _, m := range chatTitle.FindAllStringSubmatch(a.body, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return list
}

func TestChatsAreFilteredByPersonBotAndState(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	club := w.club()
	w.places = append(w.places, places.Row{Bot: "telegram", Place: "-100188", Name: "Allotment club", Enabled: true})
	w.asks[0].Payload = strings.Replace(w.asks[0].Payload, "7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0", club, 1)
	late := w.talk(session.Ref{Address: core.Address{Bot: "family", Chat: "9"}, User: 3, Trust: core.Sandboxed, Source: "telegram"}, "Late bus", "r12")
	again := w.talk(session.Ref{Address: core.Address{Bot: "family", Chat: "10"}, User: 3, Trust: core.Sandboxed, Source: "telegram"}, "Second try", "r13")
	must(w.chats.db.Tx(t.Context(), func(tx *store.Tx) error {
		for i, r := range []struct{ id, state string }{{late, "done"}, {late, "error"}, {again, "error"}, {again, "done"}} {
			at := core.Stamp(s.clock.Now().Add(time.Duration(i) * time.Second))
			if _, err := tx.Exec(t.Context(), `INSERT INTO runs (id, session_id, attempt, state, started, ended) VALUES ($1, $2, 1, $3, $4, $4)`, fmt.Sprint("f", i), r.id, r.state, at); err != nil {
				return err
			}
		}
		return nil
	}))
	for query, want := range map[string][]string{
		"":                                  {"Allotment meeting", "Late bus", "Second try", "Untitled", "Who waters"},
		"?bot=telegram":                     {"Allotment meeting", "Who waters"},
		"?bot=family":                       {"Late bus", "Second try"},
		"?bot=family&state=all":             {"Homework help", "Late bus", "Second try"},
		"?bot=api":                          {"Untitled"},
		"?bot=telegram&place=-100188":       {"Who waters"},
		"?user=3":                           {"Late bus", "Second try"},
		"?user=3&state=archived":            {"Homework help"},
		"?state=running":                    {"Untitled"},
		"?state=waiting":                    {"Who waters"},
		"?state=failed":                     {"Late bus"},
		"?state=failed&user=2":              nil,
		"?state=failed&q=bus":               {"Late bus"},
		"?state=waiting&bot=family":         nil,
		"?bot=telegram&q=potatoes":          {"Allotment meeting"},
		"?bot=family&q=potatoes":            nil,
		"?state=all&source=telegram&user=3": {"Homework help", "Late bus", "Second try"},
	} {
		if got := s.get("/admin/chats" + query).titles(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	s.get("/admin/chats?bot=telegram&place=-100188").has(t, "In the group <b><bdi>Allotment club</bdi></b> of telegram.")
	// The address keeps the filter, also behind a page of the list.
	for i := range 40 {
		w.talk(session.Ref{Address: core.Address{Bot: "family", Chat: fmt.Sprint("m", i)}, User: 3, Trust: core.Sandboxed, Source: "telegram"}, fmt.Sprint("More ", i), fmt.Sprint("m", i))
	}
	a := s.get("/admin/chats?bot=family&user=3&state=all")
	a.has(t, `<option selected>family</option>`, `<option value="3" selected>Jun-ho Park`, `<option value="all" selected>All</option>`)
	_, next, _ := strings.Cut(a.body, `rel="next" href="`)
	next, _, _ = strings.Cut(next, `"`)
	more := s.get(strings.ReplaceAll(next, "&amp;", "&"))
	if n := len(a.titles()) + len(more.titles()); n != 43 {
		t.Errorf("both pages have %d conversations, want 43", n)
	}
	more.has(t, `<option selected>family</option>`, `<option value="3" selected>Jun-ho Park`)
}

func TestTheSearchOfChatsFindsPeopleAndGroupsToo(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/chats?q=ALLOTMENT")
	a.has(t, `<h2 id="hits-h">People and groups</h2>`, `<a href="/admin/chats?bot=family&amp;place=-1001882734410&amp;state=all"><bdi>Allotment 14</bdi></a> <small>Group of family</small>`, "Allotment meeting")
	s.get("/admin/chats?q=ines").has(t, `<a href="/admin/chats?state=all&amp;user=2"><bdi>Ines Carvalho</bdi></a> <small>Person</small>`)
	s.get("/admin/chats?q=neighbour").has(t, "<bdi>Old Neighbour</bdi>", "Nothing matches") // who may talk to no bot now
	s.get("/admin/chats?q=potatoes").lacks(t, "People and groups")
	for i := range 1000 {
		s.world.access = append(s.world.access, core.AccessRow{ID: int64(100 + i), Bot: "telegram", User: int64(100 + i), Display: fmt.Sprintf("Guest %04d", i), Role: "guest", Platform: "telegram", PlatformUserID: fmt.Sprint(9000 + i)})
	}
	a = s.get("/admin/chats?q=guest")
	if n := strings.Count(a.body, "<small>Person</small>"); n != 8 {
		t.Errorf("%d people are found, want the first 8", n)
	}
	if n := strings.Count(s.get("/admin/chats?user=3").body, `<option value="`); n > 230 {
		t.Errorf("%d choices", n)
	}
	s.get("/admin/chats?user=3").has(t, `<option value="3" selected>Jun-ho Park`)
}
