package ask

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
)

// Nobody is asked to say yes to what is not shown: all of a command is, with
// what is drawn as nothing spelled out, or it cannot be allowed in the chat.
func TestWhatIsAllowedInAChatIsShownWhole(t *testing.T) {
	a := ask.Ask{ID: "aaaaaaaaaaaaaaaa"}
	p := permission.Profile{User: 7, Trust: core.Vault}
	show := func(req core.PermissionRequest) (string, string) {
		part := permissionPart(a, req, p, strings.Repeat("N", 200), true, time.Minute)
		var labels []string
		for _, row := range part.Buttons {
			for _, b := range row {
				labels = append(labels, b.Label)
			}
		}
		if len(part.Text) > 1990 {
			t.Errorf("%d bytes do not fit into a message", len(part.Text))
		}
		return part.Text, strings.Join(labels, "|")
	}
	evil := "rm -r Notes"
	for name, req := range map[string]core.PermissionRequest{
		"long":    {ToolName: "Bash", Kind: "bash", Command: "echo " + strings.Repeat("a", 2000) + "\n" + evil},
		"lines":   {ToolName: "Bash", Kind: "bash", Command: "ls" + strings.Repeat("\n", 50) + evil},
		"spelled": {ToolName: "Bash", Kind: "bash", Command: "ls" + strings.Repeat("\u200b", 400) + evil},
		"paths":   {ToolName: "Write", Kind: "write", Path: "a, " + strings.Repeat("b", 1300) + ", CLAUDE.md"},
	} {
		text, buttons := show(req)
		if strings.Contains(buttons, "Allow") || !strings.Contains(buttons, "Deny") || !strings.Contains(text, "panel") {
			t.Errorf("%s: %q under %q", name, buttons, text)
		}
	}
	text, buttons := show(core.PermissionRequest{ToolName: "Bash", Kind: "bash", Command: "echo \u202etxt.exe\x1b[2K\r" + strings.Repeat("a", 900) + evil})
	if !strings.Contains(text, evil) || !strings.Contains(text, `\u{202E}`) || !strings.Contains(text, `\u{1B}`) || !strings.Contains(text, `\u{D}`) || !strings.Contains(buttons, "Allow this call only") {
		t.Errorf("%q under %q", buttons, text)
	}
	deep := "Projects/" + strings.Repeat("x", 60)
	text, buttons = show(core.PermissionRequest{ToolName: "Write", Kind: "write", Path: deep + "/a.md", SuggestedGrants: []core.SuggestedGrant{
		{Pattern: deep + "/a.md", Label: "This file in this conversation"}, {Pattern: deep + "/*", Label: "Files in " + deep + " in this conversation"},
		{Pattern: strings.Repeat("y", 600), Label: strings.Repeat("y", 600)}, {Pattern: "**/*", Label: "The whole vault in this conversation"}}})
	if want := "Allow this call only|Deny|This file in this conversation|(2) Files in Projects/xxxxxxxxxxxxxxxxx…|The whole vault in this conversation"; buttons != want {
		t.Errorf("buttons %q", buttons)
	}
	if !strings.HasSuffix(text, "\n\nThe other buttons allow more, without asking again.\n(2) Files in "+deep+" in this conversation") {
		t.Errorf("the text does not say what the buttons mean: %q", text)
	}
}

// The longest questions that a model may ask fit into a message.
func TestQuestionsFitIntoAMessage(t *testing.T) {
	for n := 1; n <= 4; n++ {
		var qs []Question
		for range n {
			q := Question{Question: strings.Repeat("q", 4000)}
			for range 4 {
				q.Options = append(q.Options, Option{strings.Repeat("l", 1000), strings.Repeat("d", 1000)})
			}
			qs = append(qs, q)
		}
		if part := questionsPart(ask.Ask{ID: "aaaaaaaaaaaaaaaa"}, qs); len(part.Text) > 1990 {
			t.Errorf("%d questions: %d bytes", n, len(part.Text))
		}
	}
}

// What people are asked about is set off as text of its own, behind why it is
// asked and before the list of all its commands.
func TestAnAskInAChatSetsTheCommandOff(t *testing.T) {
	req := core.PermissionRequest{ToolName: "Bash", Kind: "bash", Command: "ls é\u202e; make | cat"}
	payload, err := json.Marshal(map[string]any{"request": req, "reason": "This command is not wholly understood: make is not on the list.", "commands": []string{"ls 'é\u202e'", "make", "cat"}})
	if err != nil {
		t.Fatal(err)
	}
	a := ask.Ask{ID: "aaaaaaaaaaaaaaaa", Kind: ask.KindPermission, Payload: string(payload)}
	part := permissionPart(a, req, permission.Profile{User: 7, Trust: core.Full}, "Ada", true, 90*time.Second)
	shown := `ls é\u{202E}; make | cat`
	if len(part.Spans) != 1 || part.Spans[0].Style != core.StylePre {
		t.Fatalf("spans %+v", part.Spans)
	}
	text, s := utf16.Encode([]rune(part.Text)), part.Spans[0]
	if got := string(utf16.Decode(text[s.Offset : s.Offset+s.Length])); got != shown {
		t.Errorf("set off is %q, want %q", got, shown)
	}
	if !strings.HasPrefix(part.Text, "This command is not wholly understood") || !strings.Contains(part.Text, "2. make\n3. cat") || !strings.Contains(part.Text, "within 90 seconds it is denied") || strings.ContainsRune(part.Text, '\u202e') {
		t.Errorf("%q", part.Text)
	}
}

// The text in place of a decided ask begins with what was asked, on one line.
func TestSettledTextIsOneLineOfWhatWasAsked(t *testing.T) {
	long := ask.Ask{Kind: ask.KindPermission, Payload: `{"request":{"tool_name":"Bash","command":"echo \u202e\n` + strings.Repeat("a", 900) + `"}}`}
	if got := settledText(long, "No."); !strings.HasPrefix(got, `Bash: echo \u{202E} aaa`) || !strings.HasSuffix(got, "a…\nNo.") || len(got) > 250 {
		t.Errorf("%q", got)
	}
}
