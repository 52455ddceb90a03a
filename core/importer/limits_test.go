package importer_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core/importer/importertest"
)

// Limits of docs/import.md: what is within them comes in whole, what is beyond is named.
func TestLimitsOfAConversation(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	claude := func(id, more string) string {
		return fmt.Sprintf(`{"uuid":%q,"chat_messages":[{"uuid":"m","sender":"human","text":"hello"%s}]}`, id, more)
	}
	nested := func(levels int) string { // that of the conversation, its messages and its message are three
		return claude("x", `,"more":`+strings.Repeat("[", levels-3)+strings.Repeat("]", levels-3))
	}
	items := func(n int) string {
		return claude("x", `,"more":[`+strings.TrimSuffix(strings.Repeat("0,", n-1), ",")+`]`)
	}
	sized := func(bytes int) string {
		frame := len(claude("x", `,"more":""`))
		return claude("x", `,"more":"`+strings.Repeat("a", bytes-frame)+`"`)
	}
	for name, c := range map[string]struct{ within, beyond, reason string }{
		"levels":         {nested(200), nested(201), "nested deeper than 200 levels"},
		"elements":       {items(250_000), items(250_003), "more than 250000 elements"}, // the first of each list is not counted,
		"bytes":          {sized(16 << 20), sized(16<<20 + 1), "larger than 16 MB"},
		"bytes of an id": {claude(strings.Repeat("i", 200), ""), claude(strings.Repeat("i", 201), ""), "id"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			r, list := h.run(h.text("within.json", "["+c.within+"]"), operator)
			if r.Added != 1 || r.Failed != 0 {
				t.Errorf("within: %+v", list)
			}
			r, list = h.run(h.text("beyond.json", "["+c.beyond+"]"), operator)
			if r.Added != 0 || r.Failed != 1 || !strings.Contains(list[0].Reason, c.reason) {
				t.Errorf("beyond: %+v", list)
			}
		})
	}
}

func TestLimitsOfATextAnAttachmentAndARecord(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	h := open(t)
	say := func(n int) string {
		return fmt.Sprintf(`[{"uuid":"t%d","chat_messages":[{"uuid":"m","sender":"human","text":%q}]}]`, n, strings.Repeat("a", n))
	}
	if _, list := h.run(h.text("whole.json", say(4<<20)), operator); len(list[0].Notes) != 0 {
		t.Errorf("a text of 4 MB: %+v", list)
	}
	_, list := h.run(h.text("long.json", say(4<<20+1)), operator)
	if len(list[0].Notes) != 1 || !strings.Contains(list[0].Notes[0], "is cut to 4 MB") {
		t.Errorf("a longer text: %+v", list)
	}
	if _, got := h.messages(list[0].Session); !strings.Contains(got, "a\n[cut]") {
		t.Error("a text that was cut does not say so")
	}

	m := importertest.New(1)
	large := map[string][]byte{}
	for _, picture := range importertest.Pictures(0) {
		large[picture+"-x.png"] = append(importertest.Picture(), []byte(strings.Repeat(m.Words(1<<10), 51<<10))...)
	}
	r, list := h.run(h.file("large.zip", func(w io.Writer) error {
		return importertest.Zip(w, func(w io.Writer) error { return m.ChatGPT(w, 1) }, large)
	}), operator)
	if notes := strings.Join(list[0].Notes, "\n"); r.Added != 1 || !strings.Contains(notes, "50 MB") {
		t.Errorf("an attachment of 51 MB: %+v", list)
	}
	if _, got := h.messages(list[0].Session); !strings.Contains(got, ", left out]") {
		t.Error("the message does not say that its file is left out")
	}
	if kept, _ := filepath.Glob(filepath.Join(h.vault.Path(), "Chat", "assets", "*", "*")); len(kept) != 0 {
		t.Errorf("kept %v", kept)
	}

	h.text("old/agent-chats/whole.md", recordText+strings.Repeat("a", 16<<20-len(recordText)))
	h.text("old/agent-chats/large.md", strings.ReplaceAll(recordText, "00000000000a", "00000000000b")+strings.Repeat("a", 16<<20-len(recordText)+1))
	if r, list := h.run(filepath.Join(h.dir, "old"), operator); r.Added != 1 || r.Failed != 1 || !strings.Contains(r.Faults[0].Reason, "larger than 16 MB") || filepath.Base(r.Faults[0].File) != "large.md" {
		t.Errorf("records: %+v", list)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "old/agent-chats/large.md")); err != nil {
		t.Error(err)
	}
}
