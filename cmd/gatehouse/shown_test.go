package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
)

const wantsToEdit = `use Edit {"file_path":"Notes/plan.md","old_string":"tea","new_string":"coffee"}`

// plan puts the owner's file into the vault.
func (w *world) plan(text string) {
	w.t.Helper()
	name := filepath.Join(w.cfg.VaultPath, "Notes", "plan.md")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// The owner sees what a Write and an Edit would change, and approves just that.
func TestAnApprovalInTheChatShowsWhatWouldChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	approve := func(message, block, lede string) {
		t.Helper()
		mark := olga.Send(message)
		ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
		if !strings.Contains(ask.Text, lede+"\n"+block+"\n\nFor the owner") || !slices.ContainsFunc(ask.Entities, func(e telegramtest.Entity) bool {
			return e.Type == "pre" && e.Language == "diff" && e.Length == len(block) && ask.Text[e.Offset:e.Offset+e.Length] == block
		}) {
			t.Errorf("asked: %q %+v", ask.Text, ask.Entities)
		}
		if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
			t.Fatal(err)
		}
		w.hears(olga.DM(), func(m telegramtest.Message) bool {
			return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered")
		})
		w.quiet()
	}
	approve(wantsToWrite, "+ Buy tea.", "A new file. Lines: 1, bytes: 9.")
	approve(wantsToEdit, "- Buy tea.\n+ Buy coffee.", "Lines added: 1, removed: 1.")
	if w.note() != "Buy coffee.\n" {
		t.Errorf("the file: %q", w.note())
	}
}

// What was shown is what runs: a file that changed between the question and the
// approval is left as it is, and the result says so.
func TestAFileThatChangedAfterItWasShownIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	w.plan("Buy tea.\n")
	mark := olga.Send(wantsToEdit)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	w.plan("Never buy tea.\n")
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool failed") && strings.Contains(m.Text, "changed after this call was shown")
	})
	if w.note() != "Never buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	w.quiet()
	mark = olga.Send(wantsToEdit)
	ask = w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered")
	})
	if w.note() != "Never buy coffee.\n" {
		t.Errorf("the file: %q", w.note())
	}
}
