package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core/beneath"
)

// TestAProgramDoesNotStartWhereAnotherFileWasMounted: another file takes the
// place of one that was decided on before the box opens it, or before it is
// mounted.
func TestAProgramDoesNotStartWhereAnotherFileWasMounted(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	open, closed := spaces(t)
	ids := map[string]beneath.ID{}
	for _, p := range []string{open, closed} {
		d, err := beneath.OpenDir(p)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.Self()
		if err := errors.Join(err, d.Close()); err != nil {
			t.Fatal(err)
		}
		ids[p] = info.ID
	}
	for name, id := range map[string]beneath.ID{"the same": ids[open], "another": ids[closed]} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			s := Spec{Writable: []string{open}, Dir: open, IDs: map[string]beneath.ID{open: id}, Env: []string{"PATH=/usr/bin:/bin"}}
			cmd, err := box.Command(ctx, s, "/bin/cat", "note")
			if started := err == nil && said(t, cmd) == "open\n"; started != (name == "the same") {
				t.Errorf("started: %t, %v", started, err)
			}
		})
	}
	t.Run("a mask that is not there", func(t *testing.T) {
		secret := filepath.Join(open, "note")
		if err := checkMounts(mountsOf(Spec{Masked: []string{secret}})); !errors.Is(err, errReplaced) {
			t.Errorf("%v", err)
		}
		if err := checkMounts(mountsOf(Spec{ReadOnly: []string{secret}})); err != nil {
			t.Error(err)
		}
		if err := os.Remove(secret); err != nil {
			t.Fatal(err)
		}
		if err := checkMounts([]mounted{{Path: secret}}); err == nil || strings.Contains(err.Error(), open) {
			t.Errorf("a file that is gone: %v", err)
		}
	})
}
