package permission

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
)

// mayRead asks Bounds, with no .parachuteignore.
func mayRead(globs []string, trust core.Trust, user int64, name string) bool {
	may, _ := Profile{User: user, Trust: trust, GuestRead: globs}.Bounds(nil)
	return may(name)
}

func TestMayRead(t *testing.T) {
	globs := []string{"Public/**", "Blogs/*.md", "./Notes/today.md", "[broken"}
	all := []string{"**", "**/*", "Daily/**", "Guests/**", ".parachute/**"}
	const guest = 7
	type row struct {
		name         string
		guest, vault bool
	}
	for _, c := range []row{
		{"Public/a.md", true, true},
		{"Public/deep/er/a.md", true, true},
		{"Public//a.md", true, true},
		{"Public/./a.md", true, true},
		{"PublicPrivate/a.md", false, true},
		{"public/a.md", false, true}, // case differs
		{"Blogs/a.md", true, true},
		{"Blogs/drafts/a.md", false, true}, // * does not cross /
		{"BlogsPrivate/a.md", false, true},
		{"Notes/today.md", true, true},
		{"Notes/yesterday.md", false, true},
		{"Guests/7/a.md", true, true},
		{"Guests/7", true, true},
		{"Guests/77/a.md", false, true},
		{"Guests/8/a.md", false, true},
		{"guests/7/a.md", false, true},
		{".", false, true},
		{"CLAUDE.md", false, true},
		{".parachute/agents/a.md", false, true},
		{".parachute/skills/s.md", false, true},
		{".claude/settings.json", false, true},
		// Never, for anybody.
		{"", false, false},
		{"..", false, false},
		{"../x", false, false},
		{"Public/../Daily/x.md", false, false},
		{"Public/..", false, false},
		{`Public\..\x`, false, false},
		{"Public/a\x00.md", false, false},
		{"Public/a\nb.md", false, false},
		{".env", false, false},
		{"Public/.env", false, false},
		{"Public/.env.local", false, false},
		{"Public/.ENV", false, false},
		{"Public/.e\u200bnv", false, false},
		{"Public/.env. ", false, false},
		{"Public/prod.env", false, false},
		{"Public/credentials.json", false, false},
		{"Public/Credentials.JSON", false, false},
		{"Public/server.pem", false, false},
		{"Public/server.key", false, false},
		{"Public/id_ed25519", false, false},
		{"Public/id_rsa.pub", false, false},
		{"Public/a.p12", false, false},
		{"Public/a.PFX", false, false},
		{"Public/.ssh/known_hosts", false, false},
		{"Public/.git/hooks/post-commit", false, false},
		{"Public/.ſsh/config", false, false},
		{"Public/.git/objects/aa/bb", false, false},
		{"Public/.netrc", false, false},
		{".parachute", false, false},
		{".parachute/bots.yaml", false, false},
		{".Parachute/sessions/x.json", false, false},
		{".parachute/agentsX", false, false},
		{"Chat/sessions.db", false, false},
		{"Chat/sessions.db-wal", false, false},
		{"chat/Sessions.DB.before-1002", false, false},
		{".claude/projects/x/y.jsonl", false, false},
		{".claude/.credentials.json", false, false},
		{"Public/.gitignore", true, true},
		{"Public/keynote.md", true, true},
		{"Public/environment.md", true, true},
	} {
		if got := mayRead(globs, core.Sandboxed, guest, c.name); got != c.guest {
			t.Errorf("a guest reads %q: %v", c.name, got)
		}
		for _, level := range []core.Trust{core.Vault, core.Full} {
			if got := mayRead(nil, level, 1, c.name); got != c.vault {
				t.Errorf("%v reads %q: %v", level, c.name, got)
			}
		}
		for _, level := range []core.Trust{core.Stranger, core.Trust(9)} {
			if mayRead(all, level, guest, c.name) {
				t.Errorf("a stranger (%d) reads %q", level, c.name)
			}
		}
	}
	for _, name := range []string{"Daily/2026.md", "Chat/notes.md", ".claude/settings.json", ".mcp.json", ".parachute/agents/a.md", "Guests/8/a.md"} {
		if mayRead(all, core.Sandboxed, guest, name) {
			t.Errorf("with globs %q a guest reads %q", all, name)
		}
	}
	if mayRead(nil, core.Sandboxed, 0, "Guests/0/a.md") || mayRead(nil, core.Sandboxed, -1, "Guests/-1/a.md") {
		t.Error("a user without a number has a guest directory")
	}
	for level, want := range map[core.Trust]bool{core.Sandboxed: false, core.Vault: false, core.Full: true} {
		if mayRead(all, level, guest, "/etc/passwd") != want {
			t.Errorf("%v reads outside the vault: %v", level, !want)
		}
	}
}

func TestNoPathLeadsAGuestOutOfWhatIsOpen(t *testing.T) {
	part := rapid.SampledFrom([]string{"Public", "Guests", "7", "8", "Daily", "..", ".", "", ".env", "a.md", "Chat", ".parachute", "agents", "x.db", "*", "**"})
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), "/")
		if !mayRead([]string{"Public/**"}, core.Sandboxed, 7, name) {
			return
		}
		clean := path.Clean(name)
		inside := clean == "Public" || strings.HasPrefix(clean, "Public/") || clean == "Guests/7" || strings.HasPrefix(clean, "Guests/7/")
		if !inside || strings.Contains(name, "..") || strings.Contains(name, ".env") || strings.HasPrefix(name, "/") {
			t.Fatalf("a guest reads %q", name)
		}
	})
}
