package configs

import (
	"path/filepath"
	"testing"

	"gatehouse/configs/values"
)

// A shell makes a home folder of ~ where systemd and we do not: it stands in quotes.
func TestATildeIsWrittenInQuotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.env")
	if err := WriteEnvFile(path, []EnvLine{{"GATEHOUSE_ADMIN_PASSWORD", "~root:~"}}, false); err != nil {
		t.Fatal(err)
	}
	text, _, err := values.ReadBounded(path, maxBotsFile)
	if err != nil || string(text) != envHead+"GATEHOUSE_ADMIN_PASSWORD='~root:~'\n" {
		t.Errorf("%q %v", text, err)
	}
	lines, err := readEnvFile(path)
	if err != nil || len(lines) != 1 || lines[0].Value != "~root:~" {
		t.Errorf("%+v %v", lines, err)
	}
	if _, err := values.Unquote("~root"); err == nil {
		t.Error("what a shell reads otherwise is taken without quotes")
	}
}
