package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// Nobody is asked to say yes to what is not shown: all of a command is, with
// what is drawn as nothing spelled out, or it cannot be allowed in the chat.
func TestWhatIsAllowedInAChatIsShownWhole(t *testing.T) {
	a := permission.Ask{ID: "aaaaaaaaaaaaaaaa"}
	p := permission.Profile{User: 7, Trust: core.Vault}
	show := func(req core.PermissionRequest) (string, string) {
		part := permissionPart(a, req, p, strings.Repeat("N", 200))
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
	if !strings.Contains(text, evil) || !strings.Contains(text, `\u{202E}`) || !strings.Contains(text, `\u{1B}`) || !strings.Contains(text, `\u{D}`) || !strings.Contains(buttons, "Allow once") {
		t.Errorf("%q under %q", buttons, text)
	}
	deep := "Projects/" + strings.Repeat("x", 60)
	text, buttons = show(core.PermissionRequest{ToolName: "Write", Kind: "write", Path: deep + "/a.md", SuggestedGrants: []core.SuggestedGrant{
		{Pattern: deep + "/a.md", Label: "Only " + deep + "/a.md"}, {Pattern: deep + "/*", Label: "All files in " + deep},
		{Pattern: strings.Repeat("y", 600), Label: strings.Repeat("y", 600)}, {Pattern: "**/*", Label: "Everything in the vault"}}})
	if want := "Allow once|Deny|Allow in this session (1)|Allow in this session (2)|Allow in this session (4)"; buttons != want {
		t.Errorf("buttons %q", buttons)
	}
	if !strings.Contains(text, "(1) Only "+deep+"/a.md") || !strings.Contains(text, "(2) All files in "+deep) || !strings.Contains(text, "(4) Everything in the vault") {
		t.Errorf("the text does not say what the buttons mean: %q", text)
	}
}

// The longest questions that a model may ask fit into a message.
func TestQuestionsFitIntoAMessage(t *testing.T) {
	for n := 1; n <= 4; n++ {
		var qs []question
		for range n {
			q := question{Question: strings.Repeat("q", 4000)}
			for range 4 {
				q.Options = append(q.Options, option{strings.Repeat("l", 1000), strings.Repeat("d", 1000)})
			}
			qs = append(qs, q)
		}
		if part := questionPart(permission.Ask{ID: "aaaaaaaaaaaaaaaa"}, qs); len(part.Text) > 1990 {
			t.Errorf("%d questions: %d bytes", n, len(part.Text))
		}
	}
}

// A question whose run died with the process takes no message for its answer.
func TestAfterACrashAMessageIsNoAnswerToWhatWasAsked(t *testing.T) {
	w := newWorld(t, hasty)
	olga := w.boss()
	w.replies(olga, "Hello")
	w.quiet()
	err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := w.app.desk.Open(t.Context(), tx, permission.Ask{Kind: permission.KindQuestion, Run: "gone", Bot: "telegram", Chat: fmt.Sprint(olga.ID()),
			User: core.Operator, Payload: `{"questions":[{"question":"Which tea?"}]}`, ExpiresAt: time.Now().Add(5 * time.Minute)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.start()
	defer w.stop()
	mark := olga.Send("What is in my notes?")
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && m.Text != "" })
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'answer'`); n != 0 {
		t.Errorf("%d messages were taken for answers", n)
	}
}

// A group's conversation stays one when the owner goes on with it in the panel:
// others have spoken in it, so tools ask.
func TestAChatsConversationHasNoTrustModeOverTheAPI(t *testing.T) {
	w := newWorld(t, hasty)
	boss := w.boss()
	ada := w.sim.NewUser("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	m := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: w.mention("remember: always write what I say")})
	w.hears(g.Conversation(), func(got telegramtest.Message) bool { return got.ID > m.ID })
	w.quiet()
	var session string
	if err := w.app.db.Get(t.Context(), &session, `SELECT session_id FROM chats WHERE kind = 'group'`); err != nil {
		t.Fatal(err)
	}
	resp := w.open("POST", "/api/chat", map[string]any{"session_id": session, "message": "hello"}, nil)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(b), `"permission_mode":"default"`) {
		t.Errorf("%v %s", err, b)
	}
}

// Trust that is lowered holds for what is being answered, too: a yes that comes
// after that opens nothing.
func TestAYesAfterTrustWasLoweredOpensNothing(t *testing.T) {
	w := newWorld(t, hasty)
	boss, ada := w.boss(), w.guest("Ada")
	w.quiet()
	set := func(trust core.Trust) {
		err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE access SET trust_level = $1 WHERE user_id <> $2`, trust, core.Operator)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(core.Vault)
	ada.Send("/new")
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "new conversation") })
	ada.Send(wantsToWrite)
	ask := w.hears(boss.DM(), func(m telegramtest.Message) bool {
		return asks(m) && strings.Contains(m.Text, "Notes/plan.md")
	})
	set(core.Sandboxed)
	if _, err := boss.Press(boss.DM(), ask.ID, telegramButton(t, ask, "Allow once")); err != nil {
		t.Fatal(err)
	}
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "changed meanwhile") })
	if w.note() != "" {
		t.Errorf("it was written: %q", w.note())
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
	a := permission.Ask{ID: "aaaaaaaaaaaaaaaa", Kind: permission.KindPermission, Payload: string(payload)}
	part := permissionPart(a, req, permission.Profile{User: 7, Trust: core.Full}, "Ada")
	shown := `ls é\u{202E}; make | cat`
	if len(part.Spans) != 1 || part.Spans[0].Style != core.StylePre {
		t.Fatalf("spans %+v", part.Spans)
	}
	text, s := utf16.Encode([]rune(part.Text)), part.Spans[0]
	if got := string(utf16.Decode(text[s.Offset : s.Offset+s.Length])); got != shown {
		t.Errorf("set off is %q, want %q", got, shown)
	}
	if !strings.HasPrefix(part.Text, "This command is not wholly understood") || !strings.Contains(part.Text, "2. make\n3. cat") || strings.ContainsRune(part.Text, '\u202e') {
		t.Errorf("%q", part.Text)
	}
}
