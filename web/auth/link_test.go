package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// follows opens a link and returns the session's cookie; nil where it was refused.
func (h *house) follows(token string) *http.Cookie {
	h.t.Helper()
	w := httptest.NewRecorder()
	err := h.admins.FollowLink(w, request("GET"), token)
	if _, refused := err.(*Refusal); err != nil && !refused {
		h.t.Fatal(err)
	}
	for _, c := range w.Result().Cookies() {
		if c.Name == CookieName {
			if err != nil {
				h.t.Error("a refused link begins a session")
			}
			return c
		}
	}
	return nil
}

func TestALinkSignsInOnceAndForAShortTime(t *testing.T) {
	h := open(t, AdminOptions{}, DoorOptions{})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if h.follows("") != nil {
		t.Error("without a link, none signs in")
	}
	old, token := h.admins.NewLink(), h.admins.NewLink()
	if h.follows(old) != nil || h.follows(token+"x") != nil || h.follows(token[1:]) != nil {
		t.Error("another token signs in")
	}
	c := h.follows(token)
	if c == nil {
		t.Fatal("the link is refused")
	}
	if _, p, ok := h.as(c, "GET"); !ok || p.User != 1 || p.MustChange || len(p.Scopes) == 0 {
		t.Errorf("the link's session is of %+v", p)
	}
	if h.follows(token) != nil {
		t.Error("the link works twice")
	}
	late := h.admins.NewLink()
	h.clock.Advance(LinkTime)
	if h.follows(late) != nil {
		t.Error("the link works after its time")
	}
	late = h.admins.NewLink()
	h.clock.Advance(LinkTime - time.Second)
	if h.follows(late) == nil {
		t.Error("the link does not work within its time")
	}
}

// The next start offers a one-time password: none was chosen.
func TestALinkUsesUpNoOneTimePassword(t *testing.T) {
	h := open(t, AdminOptions{}, DoorOptions{})
	once, err := h.admins.Prepare(t.Context(), true)
	if err != nil || h.follows(h.admins.NewLink()) == nil {
		t.Fatal("the link is refused", err)
	}
	if _, err := h.signIn(once); err != nil {
		t.Errorf("the one-time password: %v", err)
	}
}
