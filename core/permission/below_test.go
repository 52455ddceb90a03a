package permission

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// TestACommandThatGoesThroughSecretsOrLinksAsks: what a command reads or copies
// below a directory is looked up there.
func TestACommandThatGoesThroughSecretsOrLinksAsks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vault")
	outside := filepath.Join(filepath.Dir(dir), "outside")
	for _, d := range []string{"clean", "secret", "linked", "repo/.git", "private", "target/linked"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(dir, "clean/a.md"), nil, 0o600), os.WriteFile(filepath.Join(dir, "secret/.env"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "secret/my key.pem"), nil, 0o600), os.WriteFile(filepath.Join(dir, "private/x.md"), nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "linked/out")), os.Symlink("../outside/../new", filepath.Join(dir, "dangling")),
		os.Symlink(outside, filepath.Join(dir, "inner")), os.Symlink("inner/../new", filepath.Join(dir, "climbing")), os.Symlink(outside, filepath.Join(dir, "target/linked/out"))); err != nil {
		t.Fatal(err)
	}
	for command, rule := range map[string]string{
		"grep -rn foo clean":             RuleTrustMode,
		"cp -r clean copied":             RuleTrustMode,
		"cat clean/*.md":                 RuleTrustMode,
		"grep -rn foo secret":            RuleSecretNamed,
		"grep -rn foo .":                 RuleSecretNamed,
		"cp -r secret copied":            RuleSecretNamed,
		"diff -r secret clean":           RuleSecretNamed,
		"cat 'secret/my key.pem'":        RuleSecretNamed,
		"cat secret/*.pem":               RuleSecretNamed,
		"cat priv*/x.md":                 RuleSecretNamed,
		"grep -R foo linked":             RuleUnknown,
		"cp -r linked copied":            RuleUnknown,
		"cp -r repo copied":              RuleUnknown,
		"cp -r linked target":            RuleUnknown,
		"echo x > climbing":              RuleUnknown,
		"echo x > dangling":              RuleUnknown,
		"chmod 000 .":                    RuleUnknown,
		"rm -rf clean/sub && ls":         RuleTrustMode,
		"jq '.[] | select(.x>1)' a.json": RuleTrustMode,
	} {
		v := openVault(t, dir)
		q := question{p: Profile{User: 1, Trust: core.Full, Owner: true, Auto: true}, t: bashTool, a: tool.Access{Command: command}, isolation: true,
			ignore: []string{"private/"}, where: newWhere(v, "", []string{filepath.Join(outside, "db")})}
		q.vault, q.resolve = place(v)
		if d := q.decide(); d.Rule != rule {
			t.Errorf("%s: %s (%s), want %s", command, d.Rule, d.Text, rule)
		}
	}
}

// With the vault at hand: what exists is no prose, and is what it is after its links.
func TestNoSpellingOfAnExistingSecretPassesInMCPArguments(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"prod key.pem", "my secrets/.env of old", "private/sub/a.md", "notes/a.md", "https:/x"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"notes/sub": filepath.Join(dir, "private", "sub"), "https:/up": dir, "far": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"prod key.pem": false, dir + "/prod key.pem": false, "file://" + dir + "/prod%20key.pem": false, "my secrets/.env of old": false,
		"notes/sub/../secret.md": false, "notes/sub/a.md": false, "file://" + dir + "/private/sub/a.md": false, "file://localhost" + dir + "/private/sub/a.md?x": false,
		"https://up/private/sub/a.md": false, "HTTP://example.com/private/a.md": true,
		"notes/a.md": true, "far/../a.md": true, "another key.pem of mine": true, "please keep .env out of it": true,
	} {
		input, err := json.Marshal(map[string]string{"path": name})
		if err != nil {
			t.Fatal(err)
		}
		q := question{p: Profile{User: 1, Trust: core.Full, Auto: true}, t: mcpAny, input: input, ignore: []string{"/private/"}}
		q.vault, q.resolve = place(openVault(t, dir))
		if d := q.decide(); (d.Verdict == Allow) != want {
			t.Errorf("%s: %v by %s", name, d.Verdict, d.Rule)
		}
	}
}
