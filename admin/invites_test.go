package admin_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/people"
	"gatehouse/core"
	"gatehouse/pairing/codes"
)

var _ people.Invites = (*codes.Store)(nil)

func TestAnInvitationIsMadeShownOnceAndRevoked(t *testing.T) {
	s, _, gate, clock := withGate(t)
	s.get("/admin/pairing/invites").has(t, "No bot is set up", "None.")
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running}}
	s.get("/admin/pairing").has(t, `href="/admin/pairing/invites"`)
	form := func() url.Values {
		return url.Values{"where": {"telegram"}, "trust": {"vault"}, "end": {"24h"}, "uses": {"2"}, "days": {"3"}}
	}
	for field, value := range map[string]string{"trust": "full", "end": "100y", "uses": "0", "days": "9999", "where": "none"} {
		f := form()
		f.Set(field, value)
		if a := s.postForm("/admin/pairing/invites", f); a.status < 400 {
			t.Errorf("%s=%s: status %d", field, value, a.status)
		}
	}
	a := s.postForm("/admin/pairing/invites", form())
	if a.status != http.StatusOK {
		t.Fatalf("status %d\n%s", a.status, a.main())
	}
	code := regexp.MustCompile(`/pair ([^<]+)</pre>`).FindStringSubmatch(a.body)
	a.has(t, "It is shown only once.", "https://t.example/")
	list, err := gate.Codes.Invites(t.Context())
	if err != nil || len(list) != 1 || code == nil || list[0].Trust != core.Vault || list[0].UsesLeft != 2 || list[0].Lasts != 24*time.Hour || !list[0].ExpiresAt.Equal(clock.Now().Add(72*time.Hour)) {
		t.Fatalf("%+v %v, code %q", list, err, code)
	}
	page := s.get("/admin/pairing/invites")
	page.lacks(t, code[1])
	page.has(t, "<small>for 24 h</small>")
	s.post("/admin/pairing/invites/"+list[0].ID+"/revoke", nil).has(t, "The invitation is revoked.", "None.")
	s.post("/admin/pairing/invites/"+list[0].ID+"/revoke", nil).has(t, `class="flash note"`)
}

// An invitation may be to a group that the bot answers in, and to no other.
func TestAnInvitationIsToAGroupThatTheBotAnswersIn(t *testing.T) {
	s, _, gate, _ := withGate(t)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running}}
	if err := gate.Places.Enable(t.Context(), "telegram", "-1001", "Tea <b>club</b>", core.Sandboxed, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	s.get("/admin/pairing/invites").has(t, `<option value="telegram/-1001">telegram: the group Tea &lt;b&gt;club&lt;/b&gt;</option>`, `<option value="telegram">telegram: direct messages</option>`)
	form := url.Values{"where": {"telegram/-1001"}, "trust": {"sandboxed"}, "end": {""}, "uses": {"5"}, "days": {"7"}}
	if a := s.postForm("/admin/pairing/invites", form); a.status != http.StatusOK {
		t.Fatalf("status %d\n%s", a.status, a.main())
	}
	list, err := gate.Codes.Invites(t.Context())
	if err != nil || len(list) != 1 || list[0].Scope != core.ScopeGroup || list[0].Place != "-1001" || list[0].Bot != "telegram" {
		t.Fatalf("%+v %v", list, err)
	}
	s.get("/admin/pairing/invites").has(t, "group <bdi>Tea &lt;b&gt;club&lt;/b&gt;</bdi>")
	for _, where := range []string{"telegram/-1002", "other/-1001", "telegram/"} {
		form.Set("where", where)
		if a := s.postForm("/admin/pairing/invites", form); a.status < 400 || !strings.Contains(a.body, "answers in no such group") {
			t.Errorf("%q: status %d", where, a.status)
		}
	}
}

// The bounds of the form are those of every other way to invite.
func TestTheFormOfAnInvitationHasTheBoundsOfEveryWay(t *testing.T) {
	s, _, _, _ := withGate(t)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running}}
	s.get("/admin/pairing/invites").has(t, `name="uses" type="number" min="1" max="1000"`, `name="days" type="number" min="1" max="365"`)
	for form, accepted := range map[[2]string]bool{{"1000", "365"}: true, {"1001", "7"}: false, {"1", "366"}: false, {"0", "7"}: false, {"1", "0"}: false, {"1", "99999999999"}: false} {
		a := s.postForm("/admin/pairing/invites", url.Values{"where": {"telegram"}, "trust": {"vault"}, "end": {""}, "uses": {form[0]}, "days": {form[1]}})
		if (a.status == http.StatusOK) != accepted || !accepted && !strings.Contains(a.body, "1 to 1000 people and works for 1 to 365 days") {
			t.Errorf("%s people and %s days: status %d", form[0], form[1], a.status)
		}
	}
}
