package guard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files"
	"gatehouse/core/vault"
)

// Who is asked for a Write by way of a link reads the name of the file that
// would change.
func TestAWriteThroughALinkIsAskedForByTheNameOfItsTarget(t *testing.T) {
	s := newStation(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	s.ok(err)
	v, err := vault.Open(filepath.Join(base, "vault"))
	s.ok(err)
	defer v.Close()
	target := filepath.Join(base, "rc")
	s.ok(os.WriteFile(target, nil, 0o600))
	s.ok(os.Symlink(target, filepath.Join(v.Path(), "harmless.md")))
	dir, err := v.Dir("")
	s.ok(err)
	tools := files.New()
	write := tools[slices.IndexFunc(tools, func(x tool.Tool) bool { return x.Name == "Write" })]
	input := json.RawMessage(`{"file_path":"harmless.md","content":"x"}`)
	a, err := write.Touches(&tool.Turn{User: 1, Trust: core.Full, Vault: v, Dir: dir}, input)
	s.ok(err)
	done := make(chan verdict, 1)
	go func() {
		d, err := s.guard.Allow(ctx, ownersTurn, write, &tool.Call{ID: "call", Input: input, Access: a}, func(e core.Event) { s.events <- e }, func(on bool) { s.slots <- on })
		done <- verdict{d, err}
	}()
	r := s.asked()
	if r.Path != target {
		t.Errorf("asked for %q, want %q", r.Path, target)
	}
	for _, g := range r.SuggestedGrants {
		if g.Pattern == "harmless.md" {
			t.Errorf("a grant for the link is suggested: %+v", g)
		}
	}
	s.ok(s.guard.Deny(ctx, r.ID, owner))
	<-done
}
