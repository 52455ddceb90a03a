package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A house is everything of this package over one database.
type house struct {
	t      *testing.T
	clock  *coretest.Clock
	db     *store.DB
	keys   *Keys
	admins *Admins
	door   *Authenticator
}

func open(t *testing.T, o AdminOptions, d AuthenticatorOptions) *house {
	t.Helper()
	h := &house{t: t, clock: coretest.NewClock(time.Time{})}
	h.db = storetest.Open(t, h.clock)
	o.Clock, d.Clock = h.clock, h.clock
	if o.Address == nil {
		o.Address = func(r *http.Request) string { return r.RemoteAddr }
	}
	d.Address = o.Address
	h.keys = NewKeys(h.db, h.clock, nil)
	h.admins = NewAdmins(h.db, o)
	h.admins.hasher.Memory = 64 // KiB: what these tests claim doesn't depend on it
	h.door = NewAuthenticator(h.keys, h.admins, d)
	return h
}

func (h *house) key(n NewKey) (string, KeyRow) {
	h.t.Helper()
	secret, row, err := h.keys.Create(context.Background(), n, core.Actor{User: core.Operator, Via: "cli"})
	if err != nil {
		h.t.Fatal(err)
	}
	return secret, row
}

// request is one with these headers, name and value in turn.
func request(method string, header ...string) *http.Request {
	r := httptest.NewRequest(method, "/api/chat", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func slug(err error) string {
	if r, ok := err.(*Refusal); ok {
		return r.slug
	}
	return ""
}
