package attachments

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

// A platform has one file, and counts how often it is fetched.
type platform struct{ asked int }

func (p *platform) Fetch(_ context.Context, _ string, _ core.File, to io.Writer) error {
	p.asked++
	_, err := io.WriteString(to, "\x89PNG\r\n\x1a\n0123")
	return err
}

func TestAFileIsStoredOnceHoweverOftenItsTurnIsTried(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	ledger := attach.NewLedger(storetest.Open(t, clock), nil, 0, 0)
	from := &platform{}
	in := NewIncoming(attach.New(v, clock, ledger), from, nil, slog.New(slog.DiscardHandler))
	fetch := func(run, ref string) core.File {
		t.Helper()
		f, err := in.Fetch(t.Context(), 7, run, "b", core.File{Name: "a.png", Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := fetch("r1", "ref")
	clock.Advance(20 * time.Hour)
	if again := fetch("r1", "ref"); again != first || from.asked != 1 {
		t.Errorf("%+v, then %+v; fetched %d times", first, again, from.asked)
	}
	for _, other := range []core.File{fetch("r1", "other"), fetch("r2", "ref"), fetch("", "ref"), fetch("", "ref")} {
		if other.Path == first.Path {
			t.Errorf("another file has the path of the first")
		}
	}
	if whole, _, err := ledger.Use(t.Context()); err != nil || whole != 5*first.Size || from.asked != 5 {
		t.Errorf("%d bytes are used for 5 files of %d, %v", whole, first.Size, err)
	}
	// One that is gone, or damaged, is fetched again.
	for what, change := range map[string]func() error{
		"gone":    func() error { return v.Remove(first.Path) },
		"damaged": func() error { return v.WriteFile(first.Path, []byte("x")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		f := fetch("r1", "ref")
		if st, err := fs.Stat(v.FS(), f.Path); err != nil || st.Size() != first.Size {
			t.Errorf("%s: %v", what, errors.Join(err))
		}
	}
}
