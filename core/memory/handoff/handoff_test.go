package handoff_test

import (
	"strings"
	"testing"

	"gatehouse/core/memory/handoff"
)

const note = `## GOAL
Ship the importer.

## DECISIONS MADE
Batches of 200 rows, since 500 took 3.2 s.

## CURRENT STATUS
Parser done; tests open.

## ACTIVE FILE
import.go

## PREFERENCES
"Use tabs."

## RESUME INSTRUCTION
Write the tests.`

func TestAWholeNoteIsKeptAsItIs(t *testing.T) {
	got, faults := handoff.Check(note)
	if len(faults) > 0 || got != note {
		t.Errorf("%v\n%s", faults, got)
	}
}

func TestHeadingsInOtherMarkupAreRead(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"bold":     func(h string) string { return "**" + h + "**" },
		"colon":    func(h string) string { return h + ":" },
		"numbered": func(h string) string { return "1. " + h },
		"both":     func(h string) string { return "2) **" + h + ":**" },
		"h1":       func(h string) string { return "# " + h },
		"in prose": func(h string) string { return "Here it is.\n" + h },
	} {
		var b strings.Builder
		for line := range strings.Lines(note) {
			h, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "## ")
			if ok && (name != "in prose" || h == "GOAL") {
				line = change(h) + "\n"
			}
			b.WriteString(line)
		}
		if got, faults := handoff.Check(b.String()); len(faults) > 0 || got != note {
			t.Errorf("%s: %v\n%s", name, faults, got)
		}
	}
	if got, faults := handoff.Check(strings.ReplaceAll(note, "## GOAL\n", "GOAL: ")); len(faults) > 0 || got != note {
		t.Errorf("text behind the colon: %v\n%s", faults, got)
	}
}

func TestAFaultIsNamed(t *testing.T) {
	for want, text := range map[string]string{
		"ACTIVE FILE is missing":            strings.Replace(note, "## ACTIVE FILE\nimport.go\n", "", 1),
		"GOAL is empty":                     strings.Replace(note, "Ship the importer.", " ", 1),
		"GOAL is there twice":               note + "\n## GOAL\nAnother.",
		"the headings are in another order": strings.Replace(strings.Replace(strings.Replace(note, "## GOAL", "## X", 1), "## PREFERENCES", "## GOAL", 1), "## X", "## PREFERENCES", 1),
		"at most 900 are allowed":           strings.Replace(note, "import.go", strings.Repeat("word ", 800), 1),
		"far too long":                      strings.Repeat("x", 70_000),
		"PREFERENCES is missing":            "I cannot do that.",
	} {
		got, faults := handoff.Check(text)
		if all := strings.Join(faults, "; "); got != "" || !strings.Contains(all, want) {
			t.Errorf("want %q, have %q", want, all)
		}
		if !strings.Contains(handoff.Repair(faults), want) {
			t.Errorf("the repair does not name %q", want)
		}
	}
}

func FuzzWhatCheckAcceptsItAcceptsAgainUnchanged(f *testing.F) {
	f.Add(note)
	f.Add("GOAL: a\nDECISIONS MADE: b\nCURRENT STATUS: c\nACTIVE FILE: d\nPREFERENCES: e\nRESUME INSTRUCTION: f")
	f.Add(strings.Replace(note, "import.go", "## x\x00", 1))
	f.Fuzz(func(t *testing.T, answer string) {
		got, faults := handoff.Check(answer)
		if len(faults) > 0 {
			if got != "" {
				t.Errorf("a note with faults: %q", got)
			}
			return
		}
		if handoff.Tokens(got) > handoff.MaxTokens {
			t.Errorf("it has %d tokens", handoff.Tokens(got))
		}
		again, faults := handoff.Check(got)
		if len(faults) > 0 || again != got {
			t.Errorf("%q became %q: %v", got, again, faults)
		}
	})
}
