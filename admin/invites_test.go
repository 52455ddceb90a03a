package admin_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/core"
	"gatehouse/pairing"
)

var _ admin.Invites = (*pairing.Book)(nil)

func TestAnInvitationIsMadeShownOnceAndTakenBack(t *testing.T) {
	s, _, book, clock := withBook(t)
	s.get("/admin/pairing/invites").has(t, "No bot is set up", "None.")
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running}}
	s.get("/admin/pairing").has(t, `href="/admin/pairing/invites"`)
	form := func() url.Values {
		return url.Values{"bot": {"telegram"}, "trust": {"vault"}, "end": {"24h"}, "uses": {"2"}, "days": {"3"}}
	}
	for field, value := range map[string]string{"trust": "full", "end": "100y", "uses": "0", "days": "9999", "bot": "none"} {
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
	a.has(t, "It is shown this once.", "https://t.example/")
	list, err := book.Invites(t.Context())
	if err != nil || len(list) != 1 || code == nil || list[0].Trust != core.Vault || list[0].UsesLeft != 2 || list[0].Lasts != 24*time.Hour || !list[0].ExpiresAt.Equal(clock.Now().Add(72*time.Hour)) {
		t.Fatalf("%+v %v, code %q", list, err, code)
	}
	page := s.get("/admin/pairing/invites")
	page.lacks(t, code[1])
	page.has(t, "<small>for 24 h</small>")
	s.post("/admin/pairing/invites/"+list[0].ID+"/revoke", nil).has(t, "The invitation is taken back.", "None.")
	s.post("/admin/pairing/invites/"+list[0].ID+"/revoke", nil).has(t, `class="flash note"`)
}
