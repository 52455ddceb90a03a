package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/permission/guard"
	"gatehouse/core/tool"
)

// odd fills the guest's folder with what makes tools fail in every way, and the
// place around the vault with what links lead to.
func odd(t *testing.T, b *bench) {
	own := filepath.Join(b.dir, "Guests/7")
	b.put("Guests/7/plain.md", "text\n")
	b.put("Guests/7/binary", "\x00\x01")
	b.put("Guests/7/broken.png", "\x89PNG\r\n\x1a\n broken")
	b.put("Guests/7/broken.pdf", "%PDF-1.7 broken")
	b.put("Guests/7/book.ipynb", `{"cells": 1}`)
	b.put("Guests/7/closed.md", "text")
	b.put("Guests/7/shut/in.md", "text")
	b.put("Guests/7/deep/"+strings.Repeat("d/", 40)+"in.md", "text")
	must(t, os.WriteFile(filepath.Join(b.dir, "../outside.md"), []byte("outside"), 0o600))
	for name, to := range map[string]string{
		"out.md": "../../../outside.md", "outdir": "../../..", "absolute.md": filepath.Join(filepath.Dir(b.dir), "outside.md"), "gone.md": filepath.Join(filepath.Dir(b.dir), "gone"),
		"loop": "loop", "home": os.Getenv("HOME"), "owner.md": "../../Owner/secret.md", "etc": "/etc/passwd", "self": own + "/plain.md",
	} {
		must(t, os.Symlink(to, filepath.Join(own, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(own, "pipe"), 0o600))
	must(t, os.Chmod(filepath.Join(own, "closed.md"), 0))
	must(t, os.Chmod(filepath.Join(own, "shut"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(own, "shut"), 0o700) })
}

// Whatever a guest's model calls the file tools with, neither a refusal nor an
// error nor a result names a path of the host.
func TestFileTools_NameNoPathOfTheHostToGuests(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	b := guest(t)
	odd(t, b)
	base := filepath.Dir(b.dir)
	hidden := []string{base, os.Getenv("HOME"), "/etc/passwd"}
	guard := guard.New(guard.Options{Vault: b.turn.Vault, Isolation: func() bool { return true }})
	names := rapid.SampledFrom([]string{
		"", ".", "..", "/", "plain.md", "plain.md/", "plain.md/x", "binary", "broken.png", "broken.pdf", "book.ipynb", "closed.md", "shut/in.md", "shut", "missing.md", "missing/a.md",
		"out.md", "outdir", "outdir/outside.md", "absolute.md", "gone.md", "loop", "loop/x", "home", "home/x", "owner.md", "etc", "self", "pipe", "deep", "../8/x.md", "../../Owner/secret.md", "../../../outside.md",
		strings.Repeat("n", 300), strings.Repeat("n/", 3000), "a\x00b", "a\nb", "~", "~/x", "CLAUDE.md", ".env", ".ssh/id_rsa",
		b.dir, b.dir + "/Guests/7/plain.md", b.dir + "/Guests/7/missing", b.dir + "/Owner/secret.md", b.dir + "/.parachute/x", base + "/outside.md", base + "/outside.md/", os.Getenv("HOME") + "/.ssh/id_rsa", "/proc/self/environ",
		strings.Repeat("../", 30) + base + "/outside.md", strings.Repeat("../", 30) + b.dir + "/Guests/7/plain.md", strings.Repeat("d/", 20) + "new.md",
	})
	for range 10 { // 1,000 calls
		rapid.Check(t, func(rt *rapid.T) { b.namesNoHostPath(rt, guard, names.Draw(rt, "path"), hidden) })
	}
}

func (b *bench) namesNoHostPath(rt *rapid.T, guard *guard.Guard, path string, hidden []string) {
	name := rapid.SampledFrom([]string{"Read", "Write", "Edit", "Glob", "Grep"}).Draw(rt, "tool")
	input := map[string]in{
		"Read":  {"file_path": path, "offset": rapid.IntRange(-1, 5).Draw(rt, "offset")},
		"Write": {"file_path": path, "content": "x"},
		"Edit":  {"file_path": path, "old_string": rapid.SampledFrom([]string{"", "text", "x"}).Draw(rt, "old"), "new_string": "y"},
		"Glob":  {"path": path, "pattern": rapid.SampledFrom([]string{"*", "**/*.md", "x", "[", "../*", path + "/*"}).Draw(rt, "glob")},
		"Grep":  {"path": path, "pattern": "t", "output_mode": rapid.SampledFrom([]string{"content", "count", "files_with_matches", "odd"}).Draw(rt, "mode")},
	}[name]
	said, err := b.guarded(guard, name, input)
	if err != nil {
		said += core.TextOf(err)
	}
	for _, h := range hidden {
		if strings.Contains(said, h) {
			rt.Errorf("%s %v names %s: %q", name, input, h, said)
		}
	}
}

// guarded makes a call as a run does: it is decided on first, and what is not
// allowed says why.
func (b *bench) guarded(g *guard.Guard, name string, input in) (string, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	x := b.tools[name]
	access, err := x.Touches(b.turn, raw)
	if err != nil {
		return "", err
	}
	p := permission.Profile{User: b.turn.User, Trust: b.turn.Trust, Configured: permission.ForGuest(b.turn.User)}
	d, err := g.Decide(b.t.Context(), nil, p, x, raw, access)
	if err != nil || d.Verdict != permission.Allow {
		return fmt.Sprint(d.Text, d.Suggested), err
	}
	r, err := x.Run(b.t.Context(), &tool.Call{ID: "1", Input: raw, Turn: b.turn, Access: access, Progress: func(string) {}})
	for _, m := range r.Media {
		r.Text += m.Name
	}
	return r.Text, err
}
