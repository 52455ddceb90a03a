package configs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnEnvFileComesBackAsItWasWrittenHereAndInAShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "gatehouse.env")
	lines := []EnvLine{{"GATEHOUSE_VAULT_PATH", "/srv/my notes"}, {"GATEHOUSE_TELEGRAM_TOKEN", tokenA}, {"GATEHOUSE_ADMIN_PASSWORD", `it's "$HOME" \ ` + "`x`" + ` #no comment; & ünï`},
		{"GATEHOUSE_GUEST_READ", "Public/**"}, {"PORT", "4000"}, {"GATEHOUSE_MODEL", ""}}
	if err := WriteEnvFile(path, lines, false); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := readEnvFile(path)
	if err != nil || cmp.Diff(lines, got) != "" {
		t.Error(err, cmp.Diff(lines, got))
	}
	for _, l := range lines {
		out, err := exec.Command("sh", "-c", `set -a; . "$1"; printenv "$2"`, "sh", path, l.Name).Output()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != l.Value {
			t.Errorf("a shell reads %s as %q, %v", l.Name, got, err)
		}
	}
	if err := WriteEnvFile(path, lines[:1], false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
	if got, _ := readEnvFile(path); len(got) != len(lines) {
		t.Error("it was overwritten")
	}
	if err := WriteEnvFile(path, lines[:1], true); err != nil {
		t.Error(err)
	}
	if err := WriteEnvFile(path, []EnvLine{{"GATEHOUSE_MODEL", "a\nb"}}, true); err == nil || strings.Contains(err.Error(), "a\n") {
		t.Errorf("a line end in a value: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAnEnvFileAcceptsOnlyOurSettingsAndReportsFaultsByLine(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "x.env"), "# fine\nexport GATEHOUSE_MODEL=local/quote\n\nANTHROPIC_API_KEY=topsecret\nLD_PRELOAD=topsecret\nGATEHOUSE_ADDR\n"+
		"GATEHOUSE_ADMIN_PASSWORD=topsecret word\nGATEHOUSE_OPENAI_API_KEY=$topsecret\nGATEHOUSE_MODEL=topsecret\nGATEHOUSE_LOG_LEVEL=\"topsecret\n")
	_, err := readEnvFile(path)
	if err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Fatal(err)
	}
	for _, want := range []string{":4: only settings", ":5: only settings", ":6: this line is not", ":7: GATEHOUSE_ADMIN_PASSWORD: put the value", ":8: GATEHOUSE_OPENAI_API_KEY: put", ":9: GATEHOUSE_MODEL is set above", ":10: "} {
		if !strings.Contains(err.Error(), path+want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	for name, hint := range map[string]string{"4": "; did you mean GATEHOUSE_ANTHROPIC_API_KEY?\n", "5": "VAULT_PATH and PORT\n"} {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("line %s: no %q in %v", name, hint, err)
		}
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o644: false, 0o620: false} {
		good := put(t, filepath.Join(t.TempDir(), "y.env"), "PORT=1")
		if err := os.Chmod(good, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readEnvFile(good); (err == nil) != ok {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if _, err := readEnvFile("/nonexistent/file"); err == nil {
		t.Error("a file that is not there")
	}
}

func TestTheEnvironmentOverridesTheEnvFile(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "x.env"), "GATEHOUSE_LOG_LEVEL=debug\nGATEHOUSE_PACE=off\n")
	environment(t, "GATEHOUSE_LOG_LEVEL=error")
	t.Setenv("GATEHOUSE_PACE", "") // has it put back
	if err := UseEnvFile(path); err != nil {
		t.Fatal(err)
	}
	c, err := Load()
	if err != nil || c.LogLevel.String() != "error" || bool(c.Pace) {
		t.Errorf("%v %v, %v", c.LogLevel, c.Pace, err)
	}
}

// A setting has several names: the one in the environment is meant, and is not an error.
func TestTheEnvironmentOverridesTheOtherNamesOfASettingInTheEnvFile(t *testing.T) {
	dir := t.TempDir()
	key := put(t, filepath.Join(dir, "key"), "sk-file")
	path := put(t, filepath.Join(dir, "x.env"), "GATEHOUSE_VAULT_PATH=/from/file\nGATEHOUSE_PORT=1111\nGATEHOUSE_OPENAI_API_KEY_FILE="+key+"\nGATEHOUSE_ANTHROPIC_API_KEY=sk-line\n")
	environment(t, "VAULT_PATH="+dir, "PORT=2222", "GATEHOUSE_OPENAI_API_KEY=sk-mine", "GATEHOUSE_ANTHROPIC_API_KEY_FILE="+key)
	for _, name := range []string{"GATEHOUSE_VAULT_PATH", "GATEHOUSE_PORT", "GATEHOUSE_OPENAI_API_KEY_FILE", "GATEHOUSE_ANTHROPIC_API_KEY"} {
		t.Setenv(name, "") // has it put back
	}
	if err := UseEnvFile(path); err != nil {
		t.Fatal(err)
	}
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if c.VaultPath != dir || c.Port != 2222 || c.OpenaiAPIKey.Reveal() != "sk-mine" || c.AnthropicAPIKey.Reveal() != "sk-file" {
		t.Errorf("%s %d %s %s", c.VaultPath, c.Port, c.OpenaiAPIKey.Reveal(), c.AnthropicAPIKey.Reveal())
	}
	// Two names of one setting in the file are an error.
	environment(t)
	if err := UseEnvFile(put(t, filepath.Join(dir, "y.env"), "GATEHOUSE_OPENAI_API_KEY=sk\nGATEHOUSE_OPENAI_API_KEY_FILE="+key+"\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(); err == nil || !strings.Contains(err.Error(), "set only one of them") {
		t.Errorf("both names in the file: %v", err)
	}
}
