package ask

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/diff"
	"gatehouse/core/permission"
)

// changes returns the message about a call that changes a file.
func changes(t *testing.T, f diff.File, own bool) core.Part {
	t.Helper()
	req := core.PermissionRequest{ToolName: "Write", Kind: "write", Path: f.Path, SuggestedGrants: []core.SuggestedGrant{{Pattern: "*", Label: strings.Repeat("g", 390)}}}
	payload, err := json.Marshal(ask.Payload{Request: &req, Diff: &f})
	if err != nil {
		t.Fatal(err)
	}
	part := permissionPart(ask.Ask{ID: "aaaaaaaaaaaaaaaa", Kind: ask.KindPermission, Payload: string(payload)}, req, permission.Profile{User: 7, Trust: core.Full}, strings.Repeat("N", 200), own, time.Minute)
	if len(part.Text) > 1990 {
		t.Errorf("%d bytes do not fit into a message", len(part.Text))
	}
	return part
}

// block returns the text that a message sets off as a diff.
func block(p core.Part) string {
	for _, s := range p.Spans {
		if s.Style == core.StylePre && s.Language == "diff" {
			return string(utf16.Decode(utf16.Encode([]rune(p.Text))[s.Offset : s.Offset+s.Length]))
		}
	}
	return ""
}

func TestAnAskShowsTheFirstChangedLines(t *testing.T) {
	lines := func(n int, text string) string { return strings.Repeat(text+"\n", n) }
	old := func(s string) *string { return &s }
	for _, c := range []struct {
		name  string
		file  diff.File
		block string
		has   string
	}{
		{"an edit", diff.Files("a.md", old("Title\n\nBuy 🫖 tea.\n"), "Title\n\nBuy coffee.\n"), "- Buy 🫖 tea.\n+ Buy coffee.", "Write wants to change a.md\n\nLines added: 1, removed: 1.\n- Buy"},
		{"a new file", diff.Files("a.md", nil, "Buy tea.\n"), "+ Buy tea.", "A new file. Lines: 1, bytes: 9."},
		{"long", diff.Files("a.md", nil, lines(100, "x")), strings.TrimSuffix(lines(maxChanged, "+ x"), "\n"), "\n88 more changed lines: read them in the panel under Approvals.\n"},
		{"replaced", diff.Files("a.md", old(lines(9, "old")), lines(2, "new")), "- old\n- old\n- old\n- old\n…\n+ new\n+ new", "\n5 more changed lines"},
		{"wide", diff.Files("a.md", nil, strings.Repeat("é", 3000)), "+ " + strings.Repeat("é", 80) + "…", "A new file"},
		{"invisible", diff.Files("a.md", nil, "a\u202eb\tc\n"), "+ a\\u{202E}b\tc", "A new file"},
		{"binary", diff.Files("a.md", nil, "\x00"), "", "A new binary file: application/octet-stream, 1 bytes."},
		{"nothing", diff.Files("a.md", old("a\n"), "a\n"), "", "Nothing changes"},
		{"unknown", diff.File{Path: "a.md", Problem: "old_string is not in the file"}, "", "What would change cannot be shown: old_string is not in the file\n"},
		{"a long path", diff.Files(strings.Repeat("p", 1000), nil, lines(100, strings.Repeat("x", 100))), "", "\nRead the change in the panel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := changes(t, c.file, true)
			if got := block(p); got != c.block || !strings.Contains(p.Text, c.has) {
				t.Errorf("set off is %q, want %q, in\n%s", got, c.block, p.Text)
			}
			if strings.ContainsAny(p.Text, placeholder+blockholder) {
				t.Errorf("%q", p.Text)
			}
		})
	}
}

// A file outside of the vault is read at trust full, by the owner: what it holds is in
// no other admin's chat.
func TestWhatAFileOutsideOfTheVaultHoldsIsShownInTheCallsOwnChatOnly(t *testing.T) {
	was := "secret\n"
	f := diff.Files("/etc/motd", &was, "hello\n")
	if p := changes(t, f, true); block(p) != "- secret\n+ hello" {
		t.Errorf("in its chat: %q", p.Text)
	}
	if p := changes(t, f, false); block(p) != "" || strings.Contains(p.Text, "secret") || !strings.Contains(p.Text, "Lines added: 1, removed: 1.\nRead the change in the panel under Approvals.") {
		t.Errorf("in another: %q", p.Text)
	}
	f.Path = "Notes/a.md"
	if p := changes(t, f, false); block(p) != "- secret\n+ hello" {
		t.Errorf("in the vault: %q", p.Text)
	}
}
