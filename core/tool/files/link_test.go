package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// At full trust a Write or Edit by way of a link is decided on by the name of
// the file that would change, and changes that file or none.
func TestAtFullTrustAChangeThroughALinkNamesItsTarget(t *testing.T) {
	for what, target := range map[string]string{
		"a link to a file": "outside/rc", "a link to a folder on the way": "outside/rc", "a link to a missing file": "outside/new", "a link to a link": "outside/rc", "a link inside of the vault": "vault/real.md",
	} {
		for _, name := range []string{"Write", "Edit"} {
			for _, swap := range []bool{false, true} {
				b := newBench(t, core.Full)
				base := filepath.Dir(b.dir)
				at := func(name string) string { return filepath.Join(base, name) }
				must(t, os.Mkdir(at("outside"), 0o700))
				must(t, os.Mkdir(at("elsewhere"), 0o700))
				for _, file := range []string{"outside/rc", "elsewhere/rc", "vault/real.md"} {
					must(t, os.WriteFile(at(file), []byte("old"), 0o600))
				}
				path, link, other := "link", filepath.Join(b.dir, "link"), at("elsewhere/rc")
				to := at(target)
				switch what {
				case "a link to a folder on the way":
					path, to, other = "link/rc", at("outside"), at("elsewhere")
				case "a link to a link":
					must(t, os.Symlink(at("outside/rc"), at("outside/second")))
					to = at("outside/second")
				}
				must(t, os.Symlink(to, link))
				input := in{"file_path": path, "content": "new"}
				if name == "Edit" {
					if what == "a link to a missing file" {
						continue
					}
					input = in{"file_path": path, "old_string": "old", "new_string": "new"}
				}
				if what != "a link to a missing file" {
					b.ok("Read", in{"file_path": path})
					if swap { // the other file has been read too: it is not refused for that
						b.ok("Read", in{"file_path": at("elsewhere/rc")})
					}
				}
				raw, err := json.Marshal(input)
				must(t, err)
				access, err := b.tools[name].Touches(b.turn, raw)
				must(t, err)
				want := at(target)
				if target == "vault/real.md" {
					want = "real.md"
				}
				if len(access.Write) != 1 || access.Write[0] != want {
					t.Errorf("%s by %s: %v is decided on, want %s", what, name, access.Write, want)
				}
				if swap {
					must(t, second(os.Remove(link), os.Symlink(other, link)))
				}
				_, err = b.tools[name].Run(t.Context(), &tool.Call{ID: "1", Input: raw, Turn: b.turn, Access: access, Progress: func(string) {}})
				got, readErr := os.ReadFile(at(target))
				if err != nil || readErr != nil || string(got) != "new" {
					t.Errorf("%s by %s, swapped %v: %v; the target holds %q", what, name, swap, err, got)
				}
				if got, _ := os.ReadFile(at("elsewhere/rc")); string(got) != "old" {
					t.Errorf("%s by %s, swapped %v: a file that was not decided on holds %q", what, name, swap, got)
				}
			}
		}
	}
}

// What was decided on and is a link by the time of the change is refused.
func TestAtFullTrustATargetThatBecomesALinkIsNotFollowed(t *testing.T) {
	b := newBench(t, core.Full)
	base := filepath.Dir(b.dir)
	target, other := filepath.Join(base, "target"), filepath.Join(base, "other")
	must(t, os.WriteFile(target, []byte("old"), 0o600))
	must(t, os.WriteFile(other, []byte("old"), 0o600))
	must(t, os.Symlink(target, filepath.Join(b.dir, "link")))
	b.ok("Read", in{"file_path": "link"})
	raw, err := json.Marshal(in{"file_path": "link", "content": "new"})
	must(t, err)
	access, err := b.tools["Write"].Touches(b.turn, raw)
	must(t, err)
	must(t, second(os.Remove(target), os.Symlink(other, target)))
	r, err := b.tools["Write"].Run(t.Context(), &tool.Call{ID: "1", Input: raw, Turn: b.turn, Access: access, Progress: func(string) {}})
	if got, _ := os.ReadFile(other); string(got) != "old" || err == nil && !r.IsError {
		t.Errorf("%v, %+v; the other file holds %q", err, r, got)
	}
}
