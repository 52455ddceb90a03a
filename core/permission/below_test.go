package permission

import (
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
