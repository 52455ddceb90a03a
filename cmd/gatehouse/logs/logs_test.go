package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
)

func TestAKeyOfAProviderThatIsReadAgainIsTakenOutOfTheLog(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", "the-first-key")
	write("providers.yaml", "providers: [{name: lab, kind: openai, key_file: key}]")
	t.Setenv("GATEHOUSE_PROVIDERS_FILE", filepath.Join(dir, "providers.yaml"))
	t.Setenv("GATEHOUSE_VAULT_PATH", filepath.Join(dir, "vault"))
	cfg, err := configs.Load()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	log := New(&b, cfg, true)
	write("key", "the-second-key")
	next, err := cfg.Providers().Read()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Providers().Use(next)
	log.Warn("refused the-first-key and the-second-key")
	if strings.Contains(b.String(), "-key") || strings.Count(b.String(), "[redacted]") != 2 {
		t.Error(b.String())
	}
}
