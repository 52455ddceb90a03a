package access

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/pairing/codes"
)

func TestParseDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30s": 0, "0d": 0, "3651d": 0, "-1d": 0, "d": 0, "": 0} {
		if got, ok := parsePeriod(text); ok && got != want || ok != (want > 0) {
			t.Errorf("parsePeriod(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
}

// gate is a gate with some requests; it records what is asked of it.
type gate struct {
	requests []core.PairingRequest
	approved []string
	invited  []codes.Invitation
}

func (g *gate) Requests(_ context.Context, status string, limit int) (out []core.PairingRequest, err error) {
	for _, q := range g.requests {
		if q.Status == status && (limit == 0 || len(out) < limit) {
			out = append(out, q)
		}
	}
	return out, nil
}

func (g *gate) decide(ref string) (core.PairingRequest, error) {
	for _, q := range g.requests {
		if ref == q.ID || ref == q.Code {
			return q, nil
		}
	}
	return core.PairingRequest{}, core.Errorf(core.NotFound, "none")
}

func (g *gate) Approve(_ context.Context, ref string, a core.Approval, _ core.Actor) (core.PairingRequest, error) {
	q, err := g.decide(ref)
	if q.ApprovedTrustLevel = a.Trust; err == nil {
		g.approved = append(g.approved, ref)
	}
	return q, err
}

func (g *gate) Deny(_ context.Context, ref string, _ core.Actor) (core.PairingRequest, error) {
	return g.decide(ref)
}

func (g *gate) NewLink(context.Context, int64, core.Address) (string, time.Time, error) {
	return "ABCD-EFGH-JKLM", time.Date(2026, 1, 28, 12, 10, 0, 0, time.UTC), nil
}

func (g *gate) Invite(_ context.Context, inv codes.Invitation, _ core.Actor) (string, codes.Invitation, error) {
	g.invited = append(g.invited, inv)
	inv.UsesLeft, inv.Trust, inv.ExpiresAt = max(inv.UsesLeft, 1), core.Sandboxed, time.Date(2026, 2, 4, 12, 0, 0, 0, time.UTC)
	return "K7M2-Q9XT-ABCD-EFGH", inv, nil
}

func commands(t *testing.T, g *gate) *Commands {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return &Commands{Clock: coretest.NewClock(time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)), Pairings: g, Codes: g,
		Link: func(string, string) string { return "" }, Zone: func(context.Context, int64) (*time.Location, error) { return zone, nil }}
}

func said(t *testing.T, run func(context.Context, command.Request) (command.Outcome, error), args string) string {
	t.Helper()
	out, err := run(t.Context(), command.Request{User: 1, Role: core.RoleOwner, Call: command.Call{In: &core.Inbound{Text: args}}})
	if err != nil {
		return core.TextOf(err)
	}
	return out.Text
}

func TestAWrongArgumentIsNamedWithAnExample(t *testing.T) {
	g := &gate{requests: []core.PairingRequest{{ID: "r1", Code: "K7M2Q9XT", Status: "pending", Display: "Ada"}}}
	c := commands(t, g)
	for _, x := range []struct {
		run                  func(context.Context, command.Request) (command.Outcome, error)
		args, named, example string
	}{
		{c.Approve, "K7M2Q9XT vualt", "“vualt”", "/approve K7M2Q9XT vault 7d"},
		{c.Approve, "K7M2Q9XT vault sandboxed", "“sandboxed”", "/approve K7M2Q9XT vault 7d"},
		{c.Approve, "K7M2Q9XT vault 7d 30d", "“30d”", "/approve K7M2Q9XT vault 7d"},
		{c.Approve, "K7M2Q9XT 30s", "“30s”", "`30m`"},
		{c.Approve, "WRONGONE", "WRONGONE", "/pairing"},
		{c.Approve, "", "", "/approve K7M2Q9XT vault 7d"},
		{c.Deny, "K7M2Q9XT please", "“please”", "/deny K7M2Q9XT"},
		{c.Deny, "WRONGONE", "WRONGONE", "/pairing"},
		{c.Invite, "valut", "“valut”", "/invite sandboxed 5 30d"},
		{c.Invite, "5 6", "“6”", "/invite sandboxed 5 30d"},
		{c.Invite, "-3", "“-3”", "/invite sandboxed 5 30d"},
	} {
		if got := said(t, x.run, x.args); !strings.Contains(got, x.named) || !strings.Contains(got, x.example) {
			t.Errorf("%q is answered with %q, want %s and %s", x.args, got, x.named, x.example)
		}
	}
	if len(g.approved) != 0 || len(g.invited) != 0 {
		t.Errorf("approved %q, invited %+v", g.approved, g.invited)
	}
}

func TestTimesAreOfTheReadersTimeZone(t *testing.T) {
	g := &gate{requests: []core.PairingRequest{{ID: "r1", Code: "K7M2Q9XT", Status: "pending", Display: "Ada"}}}
	c := commands(t, g)
	for _, x := range []struct {
		run        func(context.Context, command.Request) (command.Outcome, error)
		args, want string
	}{
		{c.Approve, "K7M2Q9XT Vault 7d", "at trust vault, until Wednesday, 4 February, 13:00 CET."},
		{c.Approve, "K7M2Q9XT 24h", "until Thursday, 29 January, 13:00 CET."},
		{c.MakeLink, "", "before 13:10 CET:"},
		{c.Invite, "5 30d", "for 30 days each, until Wednesday, 4 February, 13:00 CET."},
	} {
		if got := said(t, x.run, x.args); !strings.Contains(got, x.want) {
			t.Errorf("%q is answered with %q, want %q", x.args, got, x.want)
		}
	}
}

func TestPairingSaysThatMoreWait(t *testing.T) {
	const more = "More requests wait. They are in the admin panel under Pairing."
	g := &gate{}
	for i := range maxPending {
		g.requests = append(g.requests, core.PairingRequest{ID: fmt.Sprint("r", i), Status: "pending", Display: "Ada"})
	}
	c := commands(t, g)
	if got := said(t, c.Pending, ""); strings.Contains(got, more) || strings.Count(got, "Ada") != maxPending {
		t.Errorf("of as many as are listed: %q", got)
	}
	g.requests = append(g.requests, core.PairingRequest{ID: "oldest", Status: "pending", Display: "Ada"})
	if got := said(t, c.Pending, ""); !strings.Contains(got, more) || strings.Count(got, "Ada") != maxPending {
		t.Errorf("of one more: %q", got)
	}
}

func TestPairingListsWhoWasRevokedWithHowToApproveThemAgain(t *testing.T) {
	g := &gate{}
	c := commands(t, g)
	if got := said(t, c.Pending, ""); got != "No request is pending." {
		t.Errorf("of none: %q", got)
	}
	at := time.Date(2026, 1, 28, 9, 0, 0, 0, time.UTC)
	g.requests = []core.PairingRequest{
		{ID: "k3j2", Status: "denied", Revoked: true, Display: "Ada", Bot: "tg", PlatformUserID: "7", ResolvedAt: at},
		{ID: "m4n5", Status: "denied", Revoked: true, Display: "Ada", Bot: "tg", PlatformUserID: "7", Scope: core.ScopeGroup, ResolvedAt: at},
		{ID: "zzzz", Status: "denied", Display: "Eve", Bot: "tg", PlatformUserID: "8", ResolvedAt: at},
	}
	if got := said(t, c.Pending, ""); !strings.Contains(got, "Ada, id `7` on tg, 10:00 CET. To approve again: `/approve k3j2`") || !strings.Contains(got, "on tg, in a group, 10:00 CET. To approve again: `/approve m4n5`") || strings.Contains(got, "Eve") {
		t.Errorf("/pairing: %q", got)
	}
	if got := said(t, c.Approve, "k3j2 vault"); !strings.Contains(got, "Approved Ada at trust vault") {
		t.Errorf("/approve: %q", got)
	}
}

// They are accesses, not users: one user may have several.
func TestPairingListsTheLatestFiveAccessesThatWereRevoked(t *testing.T) {
	g := &gate{}
	for _, id := range []string{"r1", "r2", "r3", "r4", "r5", "r6"} {
		g.requests = append(g.requests, core.PairingRequest{ID: id, Status: "denied", Revoked: true, Display: "Ada", PlatformUserID: "7", Scope: core.ScopeGroup})
	}
	got := said(t, commands(t, g).Pending, "")
	if n := strings.Count(got, "/approve r"); n != 5 || strings.Contains(got, "/approve r6") {
		t.Errorf("%d accesses are listed: %q", n, got)
	}
}
