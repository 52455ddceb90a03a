package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

func TestAKeyIsShownOnceAndStoredHashed(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	secret, row := h.key(NewKey{Label: "phone\x00 app", User: 7, Trust: core.Vault, Scopes: []string{ScopeRead, ScopeChat, ScopeChat}})
	if !regexp.MustCompile(`^gh_[A-Za-z0-9_-]{32}$`).MatchString(secret) {
		t.Errorf("key %q", secret)
	}
	if row.Label != "phone app" || fmt.Sprint(row.Scopes) != "[chat read]" {
		t.Errorf("row %+v", row)
	}
	for _, table := range []string{"api_keys", "audit_events"} {
		var rows []struct {
			All string `db:"x"`
		}
		columns := "id || label || sha256 || scopes || last_used_at"
		if table == "audit_events" {
			columns = "action || subject || coalesce(detail, '')"
		}
		if err := h.db.Select(context.Background(), &rows, `SELECT `+columns+` AS x FROM `+table); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if strings.Contains(r.All, secret) || strings.Contains(r.All, secret[3:]) {
				t.Errorf("%s holds the secret: %s", table, r.All)
			}
		}
	}
	found, ok, err := h.keys.Find(context.Background(), secret)
	if err != nil || !ok || found.ID != row.ID || found.User != 7 || found.Trust != core.Vault {
		t.Errorf("found %+v %v %v", found, ok, err)
	}
}

func TestWrongKeysAreNotFound(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	secret, row := h.key(NewKey{Label: "a", User: 7, Trust: core.Vault})
	for _, wrong := range []string{"", "gh_", secret[:len(secret)-1], secret + "x", strings.ToUpper(secret), row.ID, digest(secret), "gh_" + digest(secret), strings.Repeat("gh_", 1000), "gh_\xff"} {
		if _, ok, err := h.keys.Find(context.Background(), wrong); ok || err != nil {
			t.Errorf("%q: %v %v", wrong, ok, err)
		}
	}
}

func TestKeysWithoutTrustLabelOrWithUnknownScopeAreRefused(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	for _, n := range []NewKey{
		{Label: "a", User: 1}, {Label: "  ", User: 1, Trust: core.Vault}, {Label: "a", User: 1, Trust: core.Vault, Scopes: []string{"root"}}, {Label: "a", User: 1, Trust: core.Vault, Scopes: []string{"chat admin"}},
	} {
		if _, _, err := h.keys.Create(context.Background(), n, core.Actor{}); core.KindOf(err) != core.Invalid {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

// TestScopes holds the whole matrix: which key may do what, and that a key
// without scopes may nothing.
func TestScopes(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	for _, has := range [][]string{{}, {ScopeChat}, {ScopeRead}, {ScopeSend}, {ScopeMetrics}, {ScopeAdmin}, {ScopeChat, ScopeRead}, Scopes()} {
		secret, _ := h.key(NewKey{Label: "k", User: 7, Trust: core.Full, Scopes: has})
		r, err := h.door.Identify(request("POST", "Authorization", "Bearer "+secret))
		if err != nil {
			t.Fatal(err)
		}
		for _, need := range Scopes() {
			want := strings.Contains(" "+strings.Join(has, " ")+" ", " "+need+" ")
			_, err := Require(r, need)
			if (err == nil) != want {
				t.Errorf("key with %v asks for %s: %v", has, need, err)
			}
			if err != nil && core.KindOf(err) != core.Denied {
				t.Errorf("refusal of kind %v", core.KindOf(err))
			}
		}
	}
	if _, err := Require(request("GET"), Scopes()...); slug(err) != "unauthorized" {
		t.Errorf("nobody: %v", err)
	}
}

func TestTheDoorReadsBothHeadersAndRefusesWhatIsUnclear(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{Localhost: true, Local: yes})
	secret, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{ScopeChat}})
	other, _ := h.key(NewKey{Label: "o", User: 8, Trust: core.Vault})
	for _, ok := range [][]string{{"Authorization", "Bearer " + secret}, {"Authorization", "bearer  " + secret + " "}, {"X-API-Key", secret}, {"X-API-Key", secret, "Authorization", "Bearer " + secret}} {
		r, err := h.door.Identify(request("GET", ok...))
		if err != nil {
			t.Fatalf("%v: %v", ok[0], err)
		}
		if p, known := From(r.Context()); !known || p.Key != row.ID || p.User != 7 || p.Trust != core.Vault || p.Session {
			t.Errorf("%v: %+v", ok[0], p)
		}
	}
	for _, bad := range [][]string{
		{"Authorization", "Basic YWRtaW46YWRtaW4="}, {"Authorization", "Bearer"}, {"Authorization", "Bearer gh_wrong"}, {"Authorization", secret},
		{"X-API-Key", "wrong"}, {"X-API-Key", other, "Authorization", "Bearer " + secret},
	} {
		if _, err := h.door.Identify(request("GET", bad...)); slug(err) != "unauthorized" {
			t.Errorf("%v: %v; a bad key must not fall back to less", bad, err)
		}
	}
}

func TestARevokedKeyStopsAtOnce(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	secret, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{ScopeChat}})
	if _, err := h.door.Identify(request("GET", "X-API-Key", secret)); err != nil {
		t.Fatal(err)
	}
	if err := h.keys.Revoke(ctx, row.ID, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.door.Identify(request("GET", "X-API-Key", secret)); slug(err) != "unauthorized" {
		t.Errorf("after revoking: %v", err)
	}
	if err := h.keys.Revoke(ctx, row.ID, core.Actor{}); core.KindOf(err) != core.NotFound {
		t.Errorf("revoked twice: %v", err)
	}
	if err := h.keys.Flush(ctx); err != nil {
		t.Errorf("its last use: %v", err)
	}
}

func TestGuessingKeysIsSlowedButARightKeyGetsIn(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	secret, _ := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault})
	guess := func() string {
		_, err := h.door.Identify(request("GET", "X-API-Key", "gh_guess"))
		return slug(err)
	}
	for i := range 10 {
		if got := guess(); got != "unauthorized" {
			t.Fatalf("guess %d: %s", i, got)
		}
	}
	if got := guess(); got != "too-many-requests" {
		t.Errorf("guess 11: %s", got)
	}
	if _, err := h.door.Identify(request("GET", "X-API-Key", secret)); err != nil {
		t.Errorf("the right key was locked out by somebody else's guesses: %v", err)
	}
}

func TestLastUseIsWrittenInBatches(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	secret, _ := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault})
	used := func() time.Time {
		rows, err := h.keys.List(ctx, 10)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0].LastUsedAt
	}
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- h.keys.Run(run) }()
	h.clock.AwaitWaiters(1)
	before := h.db.Commits()
	for range 50 {
		if _, ok, err := h.keys.Find(ctx, secret); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if h.db.Commits() != before || !used().IsZero() {
		t.Error("each use was written")
	}
	h.clock.Advance(time.Minute)
	h.clock.AwaitWaiters(1) // the next round has begun
	if used().IsZero() {
		t.Error("the use was not written after a minute")
	}
	h.clock.Advance(time.Second)
	if _, _, err := h.keys.Find(ctx, secret); err != nil {
		t.Fatal(err)
	}
	now := h.clock.Now()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !used().Equal(now) {
		t.Errorf("last use %v, want %v: the stop must write what is left", used(), now)
	}
}

func TestTheKeyFileIsPrivateAndWorks(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "run", "key")
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	ensure := func() string {
		t.Helper()
		if err := h.keys.EnsureFile(ctx, path); err != nil {
			t.Fatal(err)
		}
		return read()
	}
	first := ensure()
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	row, ok, err := h.keys.Find(ctx, first)
	if err != nil || !ok || row.User != core.Operator || row.Trust != core.Vault || len(row.Scopes) != len(Scopes()) {
		t.Errorf("key %+v %v %v", row, ok, err)
	}
	if second := ensure(); second != first {
		t.Error("a working file was replaced at the next start")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	third := ensure()
	if third == first {
		t.Error("a key that others could read was kept")
	}
	if _, ok, _ := h.keys.Find(ctx, first); ok {
		t.Error("the key before still works")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(target, []byte(third), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	ensure()
	if st, err := os.Lstat(path); err != nil || st.Mode()&os.ModeSymlink != 0 {
		t.Error("a planted link was followed")
	}
	if b, _ := os.ReadFile(target); string(b) != third {
		t.Error("the key was written through a link")
	}
	rows, err := h.keys.List(ctx, 10)
	if err != nil || len(rows) != 1 {
		t.Errorf("%d keys for local tools, want one: %v", len(rows), err)
	}
}

func TestLocalhostMayChatOnlyWhereItIsOpen(t *testing.T) {
	for _, c := range []struct{ open, local, want bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		h := open(t, AdminOptions{}, AuthenticatorOptions{Localhost: c.open, Local: func(r *httpRequest) bool { return c.local }})
		r, err := h.door.Identify(request("POST"))
		if err != nil {
			t.Fatal(err)
		}
		p, known := From(r.Context())
		if known != c.want {
			t.Errorf("%+v: known %v", c, known)
		}
		if known && (p.Trust != core.Sandboxed || fmt.Sprint(p.Scopes) != "[chat]" || p.User == core.Operator || p.Session) {
			t.Errorf("keyless principal %+v", p)
		}
	}
}

func TestTheGateLooksAtTheKeyAsItIsNow(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	_, key := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{ScopeChat}})
	_, mute := h.key(NewKey{Label: "m", User: 7, Trust: core.Vault, Scopes: []string{ScopeRead}})
	turn := func(o core.Options) *core.Inbound {
		return &core.Inbound{Address: core.Address{Bot: core.APIBot}, Turn: &o}
	}
	trust := func(g Gate, in *core.Inbound) (got core.Trust) {
		t.Helper()
		if err := h.db.Tx(ctx, func(tx *store.Tx) (err error) {
			got, err = g.Trust(ctx, tx, in)
			run, stamped, err2 := g.Admit(ctx, tx, in)
			if run != (got > core.Stranger) || stamped != got || err2 != err {
				t.Errorf("Admit %v %v %v, Trust %v %v", run, stamped, err2, got, err)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if _, err := h.admins.Reset(ctx, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		gate Gate
		in   *core.Inbound
		want core.Trust
	}{
		{"key", Gate{}, turn(core.Options{Key: key.ID, User: 7}), core.Vault},
		{"tightened", Gate{}, turn(core.Options{Key: key.ID, User: 7, Trust: core.Sandboxed}), core.Sandboxed},
		{"asks for more", Gate{}, turn(core.Options{Key: key.ID, User: 7, Trust: core.Full}), core.Vault},
		{"somebody else's key", Gate{}, turn(core.Options{Key: key.ID, User: 1}), core.Stranger},
		{"key without chat", Gate{}, turn(core.Options{Key: mute.ID, User: 7}), core.Stranger},
		{"unknown key", Gate{}, turn(core.Options{Key: "nope", User: 7}), core.Stranger},
		{"no account", Gate{}, turn(core.Options{User: 7}), core.Stranger},
		{"account with a one-time password", Gate{}, turn(core.Options{User: core.Operator}), core.Stranger},
		{"localhost closed", Gate{}, turn(core.Options{Key: LocalKey, User: LocalUser}), core.Stranger},
		{"localhost open", Gate{Localhost: true}, turn(core.Options{Key: LocalKey, User: LocalUser}), core.Sandboxed},
		{"localhost as the operator", Gate{Localhost: true}, turn(core.Options{Key: LocalKey, User: core.Operator}), core.Stranger},
		{"a chat's update", Gate{}, &core.Inbound{Address: core.Address{Bot: "b"}, Turn: &core.Options{Key: key.ID, User: 7}}, core.Stranger},
		{"no turn", Gate{}, &core.Inbound{Address: core.Address{Bot: core.APIBot}}, core.Stranger},
	} {
		if got := trust(c.gate, c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if err := h.keys.Revoke(ctx, key.ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	if got := trust(Gate{}, turn(core.Options{Key: key.ID, User: 7})); got != core.Stranger {
		t.Errorf("a queued turn of a revoked key runs at %q", got)
	}
}

func TestSecretsAreNeverLogged(t *testing.T) {
	var log bytes.Buffer
	h := open(t, AdminOptions{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Password: "configured-secret"}, AuthenticatorOptions{})
	if _, err := h.admins.Prepare(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		h.signIn("guessed-secret")
	}
	h.signIn("configured-secret")
	if log.Len() == 0 || strings.Contains(log.String(), "secret") {
		t.Errorf("log: %s", log.String())
	}
}

// Whoever calls Forget: the operator's keys and sign-in stay.
func TestForget_LeavesTheOperators(t *testing.T) {
	h := open(t, AdminOptions{Password: "configured-secret"}, AuthenticatorOptions{})
	h.key(NewKey{Label: "script", User: core.Operator, Trust: core.Vault})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	h.signIn("configured-secret")
	err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
		return h.keys.Forget(t.Context(), tx, core.Operator)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"api_keys"} {
		var n int
		if err := h.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table); err != nil || n != 1 {
			t.Errorf("%s: %d rows are left, %v", table, n, err)
		}
	}
}

// A transport that only the operator can reach has its requests taken as theirs,
// whatever key they carry; the audit log names its way.
func TestARequestAsTheOperatorStaysTheirs(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	r, err := h.door.Identify(AsOperator(request("POST", "X-API-Key", "gh_wrong"), "cli"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Require(r, ScopeAdmin)
	if err != nil || p.User != core.Operator || p.Trust != core.Full || p.Actor() != (core.Actor{User: core.Operator, Via: "cli"}) {
		t.Errorf("%+v %v", p, err)
	}
	if r, err := h.door.Identify(request("POST")); err != nil {
		t.Error(err)
	} else if _, err := Require(r, ScopeAdmin); err == nil {
		t.Error("without a key it is let in")
	}
}

// Otherwise "gatehouse keys revoke ID" would refuse one key in 64.
func TestNoKeysIDLooksLikeAFlag(t *testing.T) {
	for range 10_000 {
		if id := keyID(); len(id) != 12 || id[0] == '-' {
			t.Fatal(id)
		}
	}
}
