package sealing_test

import (
	"os"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/sealing"
)

func TestTheDocumentsNameEachEncryptedColumn(t *testing.T) {
	b, err := os.ReadFile("../../../docs/encryption.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for column := range strings.SplitSeq(cells[2], ",") {
			named[strings.TrimSpace(cells[1])+"."+strings.TrimSpace(column)] = true
		}
	}
	for _, c := range sealing.Columns() {
		if name := "`" + c.Table + "`.`" + c.Name + "`"; !named[name] {
			t.Errorf("docs/encryption.md does not name %s", name)
		}
	}
}
