package client_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// restoredFrom returns a server as it is when a backup of Thursday was restored, and more was
// changed since than a device had synced on Friday.
func restoredFrom(t *testing.T, thursday map[string]string, since map[string]string) *server {
	t.Helper()
	s := serve(t, t.TempDir())
	for name, text := range thursday {
		write(t, s.dir, name, text)
	}
	s.device(t, "phone", s.key(t, core.Operator, core.Vault, auth.ScopeSync)).sync(t)
	for name, text := range since {
		write(t, s.dir, name, text)
	}
	for i := range 20 {
		write(t, s.dir, fmt.Sprintf("since/%02d.md", i), "new there\n")
	}
	return s
}

// moveTo has a device sync with another server under the same address.
func (d *device) moveTo(t *testing.T, s *server) {
	t.Helper()
	listening, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	d.o.Key = s.key(t, core.Operator, core.Vault, auth.ScopeSync)
	d.o.HTTP = &http.Client{Transport: elsewhere(listening.Host)}
}

// friday syncs a device with what it edited since Thursday.
func friday(t *testing.T) (s *server, a *device, thursday map[string]string) {
	t.Helper()
	s, a, _ = pair(t)
	thursday = map[string]string{"m.md": "old m\n", "n.md": "old\n"}
	for name, text := range thursday {
		write(t, a.dir, name, text)
	}
	a.sync(t)
	for _, name := range []string{"a.md", "b.md", "c.md", "m.md", "n.md"} {
		write(t, a.dir, name, "new\n")
	}
	a.sync(t)
	a.sync(t)
	return s, a, thursday
}

func keptBeside(t *testing.T, s *server, a *device, n string) {
	t.Helper()
	same(t, s.dir, a.dir)
	got := tree(t, a.dir)
	for name, want := range map[string]string{
		"n.md": n, "n (conflict laptop 2026-01-28).md": "new\n", "m.md": "since\n", "m (conflict laptop 2026-01-28).md": "new\n", "a.md": "new\n",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q in\n%s", name, got[name], want, listed(got))
		}
	}
}

// The cursor of the device is none of the future there any more, since other changes have got
// its numbers.
func TestOnce_AServerThatWasRestoredAndChangedSinceDoesNotTakeBackWhatWasEdited(t *testing.T) {
	_, a, thursday := friday(t)
	restored := restoredFrom(t, thursday, map[string]string{"m.md": "since\n", "n.md": "since\n"})
	a.moveTo(t, restored)
	a.sync(t)
	keptBeside(t, restored, a, "since\n")
	if r := a.sync(t); r.Sent+r.Fetched != 0 || len(r.Copies) != 0 {
		t.Errorf("it is over: %+v", r)
	}
}

// A snapshot of the disk, which the server does not know of, or a server that tells no epoch.
func TestOnce_AnUnnoticedRestoreDoesNotTakeBackWhatWasEdited(t *testing.T) {
	s, a, thursday := friday(t)
	restored := restoredFrom(t, thursday, map[string]string{"m.md": "since\n"})
	epoch, _, err := store.Metadata(t.Context(), s.db, "sync_epoch")
	if err == nil {
		err = restored.db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "sync_epoch", epoch) })
	}
	if err != nil {
		t.Fatal(err)
	}
	a.moveTo(t, restored)
	a.sync(t)
	keptBeside(t, restored, a, "old\n")
}

// What a key may not see any more, or sees again, is no sign of a restore: what was changed on
// the server meanwhile is fetched, without a copy.
func TestOnce_AFileThatIsHiddenMeanwhileMakesNoCopies(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "n.md", "one\n")
	write(t, a.dir, "hidden.md", "one\n")
	a.sync(t)
	b.sync(t)
	b.sync(t)
	write(t, a.dir, "n.md", "two\n")
	a.sync(t)
	for _, hide := range []bool{true, false} {
		s.hidden.Store(hide)
		write(t, s.dir, "n.md", fmt.Sprintln("hidden:", hide))
		if r := b.sync(t); r.Fetched != 1 || r.Sent != 0 || len(r.Copies) != 0 {
			t.Errorf("hidden %v: %+v", hide, r)
		}
	}
	if got := tree(t, b.dir); len(got) != 2 {
		t.Errorf("%s", listed(got))
	}
}
