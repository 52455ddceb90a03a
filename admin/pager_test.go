package admin_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// pagesOf returns the answers with the pages of a list, the first from an address.
func (s *site) pagesOf(from, label string) (all []answer) {
	s.t.Helper()
	next := regexp.MustCompile(`aria-label="` + label + `">[^\n]*rel="next" href="([^"]*)"`)
	for range 100 {
		a := s.get(from)
		all = append(all, a)
		m := next.FindStringSubmatch(a.body)
		if m == nil {
			return all
		}
		from, _, _ = strings.Cut(html.UnescapeString(m[1]), "#")
	}
	s.t.Fatalf("%s does not end", label)
	return nil
}

// Anyone can add a bot to groups: those that no one decided about take no place from the
// groups that the operator has enabled.
func TestEnabledGroupsStayReachableBehindUndecidedOnes(t *testing.T) {
	s, db, gate, clock := withGate(t)
	operator := core.Actor{User: core.Operator, Via: "panel"}
	for i := range 22 {
		if err := gate.Places.Enable(t.Context(), "telegram", fmt.Sprint("on", i), "Enabled", core.Sandboxed, operator); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 45 {
		clock.Advance(time.Second)
		in := core.Inbound{Address: core.Address{Bot: "telegram", Chat: fmt.Sprint("new", i), Place: fmt.Sprint("new", i)}, PlaceName: "Undecided"}
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return gate.Places.Seen(t.Context(), tx, &in) }); err != nil {
			t.Fatal(err)
		}
	}
	s.get("/admin/people?q=x").has(t, `href="/admin/people?groups=2&amp;q=x#groups-h"`) // what is filtered stays so
	var found []string
	row := regexp.MustCompile(`<tr id="g-telegram-([^"]*)"`)
	for _, a := range s.pagesOf("/admin/people", "Pages of groups") {
		a.has(t, `<a href="/admin/people?groups=2#groups-h">45 groups wait for a decision</a>`)
		for _, m := range row.FindAllStringSubmatch(a.body, -1) {
			found = append(found, m[1])
		}
	}
	if len(found) != 67 || !slices.ContainsFunc(found[:22], func(id string) bool { return id == "on0" }) || slices.ContainsFunc(found[:22], func(id string) bool { return strings.HasPrefix(id, "new") }) || found[22] != "new44" {
		t.Errorf("%d groups: %q", len(found), found)
	}
	if slices.Sort(found); len(slices.Compact(found)) != 67 {
		t.Errorf("a group is on two pages: %q", found)
	}
	s.get("/admin/people?groups=5").has(t, "Page 5")
	s.get("/admin/people?groups=99").has(t, "Page 5")

	// One that is to stay silent waits no longer.
	s.get("/admin/people?groups=2").has(t, `value="new44"><button class="quiet">Dismiss`)
	s.post("/admin/people/places/disable", url.Values{"bot": {"telegram"}, "place": {"new44"}}).has(t, "44 groups wait for a decision")
	s.get("/admin/people?groups=2").lacks(t, "new44")
}

// A block from a request has no person's page: it is ended where blocks are listed, or by
// the account's id when that list is too short for it.
func TestEveryBlockCanBeLiftedInThePanel(t *testing.T) {
	s, db, gate, clock := withGate(t)
	for i := range 21 {
		clock.Advance(time.Second)
		s.post("/admin/pairing/"+knock(t, db, gate, clock, fmt.Sprint(100+i), "Flood")+"/block", nil).has(t, "is blocked")
	}
	clock.Advance(time.Minute)
	lift := regexp.MustCompile(`action="/admin/people/unblock".*name="user" value="([^"]*)"><button class="quiet">Unblock`)
	var found []string
	for _, a := range s.pagesOf("/admin/people", "Pages of blocks") {
		for _, m := range lift.FindAllStringSubmatch(a.body, -1) {
			found = append(found, m[1])
		}
	}
	if len(found) != 21 || found[20] != "100" {
		t.Errorf("%d blocks can be lifted: %q", len(found), found)
	}
	s.post("/admin/people/unblock", url.Values{"bot": {"telegram"}, "platform": {"telegram"}, "user": {found[len(found)-1]}}).has(t, "Unblocked.")

	err := db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		for i := 0; i < 1001 && err == nil; i++ {
			_, err = tx.Exec(t.Context(), `INSERT INTO blocks (platform, platform_user_id, bot, "by", at) VALUES ('telegram', $1, 'telegram', 'operator', $2)`, fmt.Sprint(9000+i), core.Stamp(clock.Now()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := s.pagesOf("/admin/people", "Pages of blocks")
	last := pages[len(pages)-1]
	last.lacks(t, `value="101"`)
	last.has(t, "Older blocks of strangers may not be listed.", `<button class="quiet" formaction="/admin/people/unblock">Unblock</button>`)
	s.post("/admin/people/unblock", url.Values{"bot": {"telegram"}, "platform": {" Telegram "}, "user": {" 101 "}}).has(t, "Unblocked.")
}
