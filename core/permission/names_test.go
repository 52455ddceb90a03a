package permission

import (
	"strings"
	"testing"

	"gatehouse/core"
)

// forms returns names that a file system which knows no case, drops what is not shown, or
// ends names at their last letter takes for name.
func forms(name string) []string {
	list := []string{
		name, strings.ToUpper(name), strings.ToLower(name), name + ".", name + " . ", "./" + name,
		name[:2] + "\u200b" + name[2:],     // a format character
		name[:2] + "\ufe0f" + name[2:],     // a variation selector
		name[:2] + "\u034f" + name[2:],     // a joiner of graphemes
		name[:2] + "\u3164" + name[2:],     // a filler
		name[:2] + "\U000e0101" + name[2:], // a variation selector of another plane
	}
	for letters, one := range map[string]string{"k": "\u212a", "s": "ſ", "fi": "ﬁ", "st": "ﬆ", "ss": "ß", "SS": "ẞ"} {
		if other := strings.ReplaceAll(name, letters, one); other != name {
			list = append(list, other)
		}
	}
	return list
}

// What does not exist yet is created by a write, so that the names are all there is to
// refuse it by.
func TestBounds_NoFormOfANameThatCommandsIsWrittenBelowFull(t *testing.T) {
	for _, name := range []string{
		"CLAUDE.md", "AGENTS.md", "GEMINI.md", ".mcp.json", ".claude/settings.json", ".parachute/agents/a.md", ".parachuteignore", ".cursorrules",
		".git/config", ".gitconfig", ".gitmodules", "HEAD", ".husky/pre-commit", ".pre-commit-config.yaml", ".envrc", ".bashrc", ".profile", "sitecustomize.py", ".vscode/tasks.json",
	} {
		for _, dir := range []string{"", "Notes/", "Guests/7/", "Guests/7/new/"} {
			for _, form := range forms(name) {
				for _, p := range []Profile{{Trust: core.Vault, User: 1}, {Trust: core.Sandboxed, User: 7}} {
					if _, mayWrite := p.Bounds(nil); mayWrite(dir + form) {
						t.Errorf("trust %s may write %q", p.Trust, dir+form)
					}
				}
			}
		}
	}
	for _, name := range []string{"agents/a.md", "Daily/.agents/a.md"} { // of the vault alone
		for _, form := range forms(name) {
			if _, mayWrite := (Profile{Trust: core.Vault, User: 1}).Bounds(nil); mayWrite(form) {
				t.Errorf("%q may be written", form)
			}
		}
	}
}

func TestBounds_NoFormOfASecretsNameIsOpenedAtAnyLevel(t *testing.T) {
	for _, name := range []string{".env", ".ssh/config", "credentials.json", "client_secret.json", "id_rsa", "server.pem", ".parachute/pairing.db", ".git/hooks/post-commit"} {
		for _, form := range forms(name) {
			for _, p := range []Profile{{Trust: core.Full, User: 1}, {Trust: core.Vault, User: 1}, {Trust: core.Sandboxed, User: 7, GuestRead: []string{"**"}}} {
				if mayRead, mayWrite := p.Bounds(nil); mayRead("Guests/7/"+form) || mayWrite("Guests/7/"+form) {
					t.Errorf("trust %s may open %q", p.Trust, form)
				}
			}
		}
	}
}

func TestBounds_NamesInOtherScriptsAreOpen(t *testing.T) {
	_, mayWrite := (Profile{Trust: core.Vault, User: 1}).Bounds(nil)
	for _, name := range []string{"Notes/Größe.md", "Notes/日記.md", "Notes/❤\ufe0f.md", "Notes/ﬁle.md", "Notes/Straße/Kaﬀee.md"} {
		if !mayWrite(name) {
			t.Errorf("%q may not be written", name)
		}
	}
}

// A glob's ? is one letter, whether a file system takes the letter for one or for two.
func TestBounds_ALineOfParachuteignoreClosesALetterThatIsTwo(t *testing.T) {
	for line, names := range map[string][]string{
		"Stra?e.md": {"Straße.md", "STRAẞE.MD", "Notes/straße.md"}, "Stra??e.md": {"Strasse.md", "Straße.md"}, "Gro?e/**": {"Große/a.md"},
		"[ß]x.md": {"ßx.md"}, "Straße.md": {"strasse.md", "Straße.md"}, "Strasse.md": {"Straße.md"}, "*.txt": {"\u3164/a.txt", "\u3164/b/\u3164.txt"},
	} {
		mayRead, mayWrite := (Profile{Trust: core.Vault, User: 1}).Bounds([]string{line})
		for _, name := range names {
			if mayRead(name) || mayWrite(name) {
				t.Errorf("%q does not close %q", line, name)
			}
		}
		if !mayRead("Other.md") {
			t.Errorf("%q closes another file", line)
		}
	}
	mayRead, _ := (Profile{Trust: core.Vault, User: 1}).Bounds([]string{"*.md", "!Straße.md"})
	if !mayRead("Straße.md") || mayRead("Gasse.md") {
		t.Error("a line that opens a name again does not hold")
	}
}
