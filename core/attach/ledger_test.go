package attach_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

type house struct {
	t     *testing.T
	db    *store.DB
	vault *vault.Vault
	dir   string
	clock core.Clock
}

func open(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	clock := coretest.NewClock(time.Time{})
	return &house{t: t, db: storetest.Open(t, clock), vault: v, dir: dir, clock: clock}
}

func (h *house) tx(f func(ctx context.Context, tx *store.Tx) error) {
	h.t.Helper()
	if err := h.db.Tx(h.t.Context(), func(tx *store.Tx) error { return f(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) left(l *attach.Ledger, user int64) int64 {
	h.t.Helper()
	left, _, err := l.Room(h.t.Context(), user)
	if err != nil {
		h.t.Fatal(err)
	}
	return left
}

func (h *house) noted(l *attach.Ledger, user int64, name string, words string) core.File {
	h.t.Helper()
	f := core.File{Path: "Chat/assets/" + name, Size: int64(len(words))}
	if err := h.vault.WriteFile(f.Path, []byte(words)); err != nil {
		h.t.Fatal(err)
	}
	if fits, err := l.Note(h.t.Context(), user, f); err != nil || !fits {
		h.t.Fatal(fits, err)
	}
	return f
}

// What people's files take bounds what may still come, each their own and all
// together, without a look at the disk; the owner is bounded by the whole alone.
func TestTheRoomForFilesIsKeptAsTheyComeAndGo(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, nil, 100, 150)
	a := h.noted(l, 7, "a", string(make([]byte, 60)))
	h.noted(l, 8, "b", string(make([]byte, 30)))
	h.noted(l, core.Operator, "c", string(make([]byte, 20)))
	for user, want := range map[int64]int64{7: 40, 8: 40, 9: 40, core.Operator: 40} {
		if got := h.left(l, user); got != want {
			t.Errorf("user %d: %d left, want %d", user, got, want)
		}
	}
	if got := h.left(attach.NewLedger(h.db, nil, 100, 0), 7); got != 40 {
		t.Errorf("without a bound on the whole: %d", got)
	}
	if got := h.left(attach.NewLedger(h.db, nil, 0, 0), 7); got != math.MaxInt64 {
		t.Errorf("without a bound: %d", got)
	}
	if got := h.left(attach.NewLedger(h.db, nil, 10, 1000), core.Operator); got != 890 {
		t.Errorf("the owner: %d", got)
	}
	// The run that the file came to is noted later, and takes no more room.
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return attach.Record(ctx, tx, 7, "s", "r", []core.File{a})
	})
	if got := h.left(l, 7); got != 40 {
		t.Errorf("noted twice: %d", got)
	}
	if err := l.Drop(t.Context(), []core.File{a, a, {Path: "Chat/assets/none"}}); err != nil {
		t.Error(err)
	}
	if got := h.left(l, 7); got != 100 {
		t.Errorf("after one went: %d", got)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error { return l.Merge(ctx, tx, 8, 7) })
	if got := h.left(l, 7); got != 70 {
		t.Errorf("after two accounts became one: %d", got)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return l.Forget(ctx, tx, &core.Removal{Person: core.Person{User: 7}, Last: true})
	})
	if whole, most, err := l.Use(t.Context()); whole != 20 || most != 0 || err != nil {
		t.Errorf("after the person was forgotten: %d, %d, %v", whole, most, err)
	}
}

// A mount of its own may not be there yet when the gateway is; then files of that time are
// the only ones.
func TestWhileTheDiskOfTheFilesIsAwayNothingIsDeletedFromTheLedger(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, nil, 100, 0)
	h.noted(l, 7, "one", "12345")
	folder, files := filepath.Join(h.dir, attach.Folder), h.vault.Root().FS()
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(folder, folder+".away")
	for _, made := range []string{"", "/2026-01-02"} {
		if err := os.MkdirAll(folder+made, 0o700); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Recount(t.Context(), files); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if left := h.left(l, 7); left != 100 { // as after all were deleted by hand
		t.Errorf("%d left while no file is there", left)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	move(folder+".away", folder)
	if n, err := l.Recount(t.Context(), files); n != 0 || err != nil || h.left(l, 7) != 95 {
		t.Errorf("with the disk: %d, %v, %d left", n, err, h.left(l, 7))
	}
	if list, err := l.FilesOf(t.Context(), 7, ""); err != nil || len(list) != 1 {
		t.Errorf("the person's files: %q, %v", list, err)
	}
}

// Whatever a person deletes in the vault, and files from before sizes were kept.
func TestTheRoomOfFilesThatWereDeletedByHandComesBack(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, nil, 100, 0)
	gone, old := h.noted(l, 7, "gone", "12345"), h.noted(l, 7, "old", "1234567")
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE attachments SET size = NULL WHERE path = $1`, old.Path)
		return err
	})
	if err := os.Remove(filepath.Join(h.dir, gone.Path)); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Recount(t.Context(), h.vault.Root().FS()); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := h.left(l, 7); got != 93 {
		t.Errorf("%d left", got)
	}
	if n, err := l.Recount(t.Context(), h.vault.Root().FS()); n != 0 || err != nil || h.left(l, 7) != 93 {
		t.Errorf("once more: %d, %v", n, err)
	}
}

// Files of one moment have all seen the same room; those that fit take it, and
// the others are told so and leave nothing.
func TestFilesOfOneMomentDoNotPassTheBoundTogether(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, nil, 100, 0)
	k := attach.New(h.vault, h.clock, l)
	const at = 8
	var incoming [at]*attach.Incoming
	for i := range incoming { // each has looked before the first is kept
		in, err := k.Begin(t.Context(), 7, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte(strings.Repeat("x", 40))); err != nil {
			t.Fatal(err)
		}
		incoming[i] = in
	}
	var kept, told atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i, in := range incoming {
		wg.Go(func() {
			<-start
			_, err := in.Keep(fmt.Sprint(i, ".txt"), "")
			_, full := errors.AsType[*attach.Full](err)
			switch {
			case err == nil:
				kept.Add(1)
			case full && strings.Contains(core.TextOf(err), "does not fit any more: your files may take 100 bytes, and 20 bytes are left"):
				told.Add(1)
			default:
				t.Errorf("file %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
	files, err := os.ReadDir(filepath.Join(h.dir, attach.Folder, h.clock.Now().UTC().Format(time.DateOnly)))
	if kept.Load() != 2 || told.Load() != at-2 || len(files) != 2 || err != nil {
		t.Errorf("%d kept, %d refused, %d files on the disk, %v", kept.Load(), told.Load(), len(files), err)
	}
	if got := h.left(l, 7); got != 20 {
		t.Errorf("%d bytes are left", got)
	}
}
