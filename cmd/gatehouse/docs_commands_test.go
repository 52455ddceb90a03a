package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/commands/period"
)

// Every command that stands in a block of its own in the documents is one that
// this program understands, arguments and flags too.
func TestTheCommandsInTheDocumentsAreUnderstood(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	understood := 0
	for _, file := range append(files, filepath.Join(repository, "README.md")) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			line = strings.TrimPrefix(line, "sudo ")
			args, ok := strings.CutPrefix(line, "gatehouse ")
			if ctl, is := strings.CutPrefix(line, "gatehousectl "); is { // the same with the unit's settings
				args, ok = ctl, true
			}
			if !fenced || !ok || strings.ContainsAny(args, `"'$|<>\`) {
				continue // a shell's words, or not a command alone
			}
			args, _, _ = strings.Cut(args, "#")
			var c command
			p, err := kong.New(&c, period.Option(), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Parse(strings.Fields(args)); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(file), line, err)
			}
			understood++
		}
	}
	if understood < 5 {
		t.Errorf("only %d commands were found", understood)
	}
}
