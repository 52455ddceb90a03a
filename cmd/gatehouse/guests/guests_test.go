package guests_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/guests"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

type house struct {
	*testing.T
	guests.Folders
	dir string
}

// open returns the folders of a vault in which guest 5 has a file and another in the trash, and
// users 7 and 50.
func open(t *testing.T) *house {
	t.Helper()
	h := &house{t, guests.Folders{DB: storetest.Open(t, nil), Log: slog.New(slog.DiscardHandler)}, filepath.Join(t.TempDir(), "vault")}
	v, err := vault.Open(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	h.Vault = v
	for _, name := range []string{"Guests/5/Daily/a.md", "Guests/7/b.md", ".parachute/trash/20260101T000000.000000Z-guest-5-5/c.md", ".parachute/trash/20260101T000000.000000Z-1-guest-5-d.md",
		".parachute/trash/20260101T000000.000000Z-guest-50-e.md"} {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.tx(func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO users (id, display, role, created_at) VALUES (7, 'Olga', 'guest', ''), (50, 'Ada', 'guest', '')`)
		return err
	})
	return h
}

func (h *house) tx(f func(tx *store.Tx) error) {
	h.Helper()
	if err := h.DB.Tx(h.Context(), f); err != nil {
		h.Fatal(err)
	}
}

func (h *house) has(names ...string) {
	h.Helper()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(h.dir, name)); err != nil {
			h.Error(err)
		}
	}
}

func (h *house) lacks(names ...string) {
	h.Helper()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(h.dir, name)); err == nil {
			h.Errorf("%s is there", name)
		}
	}
}

func (h *house) upkeep(want int) {
	h.Helper()
	for _, c := range h.Chores() {
		if n, err := c.Run(h.Context()); err != nil || n != want {
			h.Errorf("%s: %d, %v", c.Name, n, err)
		}
	}
}

// moved is where all of guest 5 is once it is user 7's.
var moved = []string{"Guests/7/linked-5/Daily/a.md", "Guests/7/b.md", ".parachute/trash/20260101T000000.000000Z-guest-7-5/c.md",
	".parachute/trash/20260101T000000.000000Z-1-guest-7-d.md", ".parachute/trash/20260101T000000.000000Z-guest-50-e.md"}

func TestTheFolderOfALinkedUserIsMoved(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return h.Merge(t.Context(), tx, 5, 7) })
	h.has(moved...)
	h.lacks("Guests/5")
	h.upkeep(1) // the note
	h.has(moved...)
	h.upkeep(0)
}

func TestAMoveThatWasCutShortIsFinished(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "guest-folder:5", "7") }) // and a kill
	h.upkeep(1)
	h.has(moved...)
	h.lacks("Guests/5")
	h.upkeep(0)
}

func TestAFolderIsDeletedIfItsUserWasForgottenBeforeTheMove(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "guest-folder:5", "7") })
	h.tx(func(tx *store.Tx) error {
		return h.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}, Last: true}) // whose row stays
	})
	h.upkeep(1)
	h.lacks("Guests/5", "Guests/7/linked-5", ".parachute/trash/20260101T000000.000000Z-guest-5-5", ".parachute/trash/20260101T000000.000000Z-1-guest-5-d.md")
	h.has(".parachute/trash/20260101T000000.000000Z-guest-50-e.md", core.GuestDir(7))
}

func TestALinkOfTheRemainingUserTakesTheFolderAlong(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "guest-folder:5", "7") })
	h.tx(func(tx *store.Tx) error { return h.Merge(t.Context(), tx, 7, 50) })
	h.upkeep(2)
	h.has("Guests/50/linked-7/b.md", "Guests/50/linked-5/Daily/a.md", ".parachute/trash/20260101T000000.000000Z-guest-50-5/c.md")
	h.lacks("Guests/5", "Guests/7")
}

func TestAFolderThatWasMadeAgainIsMovedBesideTheFirst(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return h.Merge(t.Context(), tx, 5, 7) })
	if err := h.Vault.WriteFile("Guests/5/late.md", nil); err != nil {
		t.Fatal(err)
	}
	h.upkeep(1)
	h.has(append(moved, "Guests/7/linked-5-2/late.md")...)
	h.lacks("Guests/5")
}

func TestAFolderThatCannotBeMovedStopsNoOther(t *testing.T) {
	h := open(t)
	h.tx(func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "guest-folder:5", "7") })
	h.tx(func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "guest-folder:x", "7") })
	for _, c := range h.Chores() {
		if n, err := c.Run(t.Context()); err == nil || n != 1 {
			t.Errorf("%d, %v", n, err)
		}
	}
	h.has(moved...)
}
