package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/attach/content"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/sealed"
)

// seeing takes pictures and PDFs.
type seeing struct{ *model }

func (m seeing) About() llm.About {
	about := m.model.About()
	about.Images, about.Documents = true, true
	return about
}

// warned runs t and returns the words of its warnings about files.
func warned(h *house, o *orchestrator.Orchestrator, t *orchestrator.Turn) (out []string) {
	h.t.Helper()
	if _, err := o.Run(h.t.Context(), t, func(e core.Event) {
		if w, ok := e.(core.Warning); ok && w.Code == "attachment" {
			out = append(out, w.Message)
		}
	}); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// What the model does not get to see is named to it and to the sender, with the
// reason; what it sees is not.
func TestWhatIsNotReadOfAMessageIsNamedToItsSenderToo(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	utf := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("Grüße 💥")) {
		utf = append(utf, byte(u), byte(u>>8))
	}
	for name, data := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n0000", "b.pdf": "%PDF-1.7 x", "c.bin": "\x00\x01\x02", "d.txt": string(utf), "e.txt": "\xef\xbb\xbfplain"} {
		if err := h.vault.WriteFile("Chat/assets/"+name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	h.model.reply = says("ok")
	turn := func(run string) *orchestrator.Turn {
		x := h.turn(run, 1, "look")
		for _, name := range []string{"a.png", "b.pdf", "c.bin", "d.txt", "e.txt"} {
			x.Rows[0].Files = append(x.Rows[0].Files, core.File{Path: "Chat/assets/" + name, Name: name})
		}
		x.Rows[0].Files = append(x.Rows[0].Files, core.File{Name: "game\n.exe", Refused: "game.exe is a program\nby its name, and programs are not taken"})
		return x
	}
	blind := strings.Join(warned(h, h.Orchestrator, turn("r1")), "\n")
	for _, want := range []string{"a.png was attached, and the model test/model takes no pictures", "b.pdf was attached, and the model test/model takes no PDFs",
		"c.bin was attached (application/octet-stream, 3 bytes)", "game .exe was not taken: game.exe is a program by its name"} {
		if !strings.Contains(blind, want) {
			t.Errorf("not told: %s\n%s", want, blind)
		}
	}
	if strings.Contains(blind, "d.txt") || strings.Contains(blind, "e.txt") {
		t.Errorf("told of texts: %s", blind)
	}
	// Where PDFs can be read the model is given their text, and the sender is told so.
	reads := h.with(func(o *orchestrator.Options) {
		o.Incoming.PDF = func(_ context.Context, data []byte) (string, int, int, error) {
			return string(data[9:]) + " marks the spot", 1, 3, nil
		}
	})
	if told := strings.Join(warned(h, reads, turn("r3")), "\n"); !strings.Contains(told, "b.pdf was attached, and the model test/model takes no PDFs: it is given the text alone, of 1 of 3 pages") {
		t.Error(told)
	}
	last := h.model.calls[1].Messages
	if given := fmt.Sprintf("%+v", last[len(last)-1].Blocks); !strings.Contains(given, "Attached file b.pdf (the text of the PDF") || !strings.Contains(given, "x marks the spot") || !strings.Contains(given, "1 of 3 pages; the rest is left out") {
		t.Errorf("the model was told %s", given)
	}
	for why, pdf := range map[string]func(context.Context, []byte) (string, int, int, error){
		"there is no text in it, as in a scan": func(context.Context, []byte) (string, int, int, error) { return " ", 1, 1, nil },
		"out of it: it is damaged": func(context.Context, []byte) (string, int, int, error) {
			return "", 0, 0, core.Errorf(core.Invalid, "it is damaged")
		},
		"out of it: it could not be opened": func(context.Context, []byte) (string, int, int, error) { return "", 0, 0, errors.New("secret reasons") },
	} {
		reads = h.with(func(o *orchestrator.Options) { o.Incoming.PDF = pdf })
		if told := strings.Join(warned(h, reads, turn(why)), "\n"); !strings.Contains(told, why) || strings.Contains(told, "secret") {
			t.Errorf("%s: %s", why, told)
		}
	}
	h.model.calls = h.model.calls[:1]
	sees := h.with(func(o *orchestrator.Options) {
		o.Model = func(string, bool) (llm.Model, error) { return seeing{h.model}, nil }
	})
	told := warned(h, sees, turn("r2"))
	if len(told) != 2 || !strings.Contains(told[0], "c.bin") || !strings.Contains(told[1], "game .exe") {
		t.Errorf("%q", told)
	}
	last = h.model.calls[1].Messages
	given := fmt.Sprintf("%+v", last[len(last)-1].Blocks)
	for _, want := range []string{"Grüße 💥", "\nplain\n", "game .exe was not taken", "c.bin was attached"} {
		if !strings.Contains(given, want) {
			t.Errorf("the model was not told %q: %s", want, given)
		}
	}
}

// What was read of the files of a turn is stored when it ends, of a failed one too.
func TestWhatWasReadOfTheFilesOfATurnIsStoredWhenItEnds(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	box, err := sealed.Create(filepath.Join(t.TempDir(), "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	ledger := attach.NewLedger(h.db, box, 0, 0)
	reads := h.with(func(o *orchestrator.Options) {
		o.Files = ledger
		o.Incoming.PDF = func(context.Context, []byte) (string, int, int, error) { return "X marks the spot", 1, 3, nil }
		o.Incoming.Hear = func(context.Context, int64, core.File, func(string)) (string, error) {
			return strings.Repeat("milk ", 9_000), nil
		}
	})
	files := map[string]string{"a.png": "\x89PNG\r\n\x1a\n0000", "b.pdf": "%PDF-1.7 x", "c.bin": "\x00\x01\x02", "d.txt": strings.Repeat("tea ", 12_000), "e.txt": "plain", "f.ogg": "OggS"}
	for name, data := range files {
		if err := h.vault.WriteFile("Chat/assets/"+name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	turn := func(run string, names ...string) *orchestrator.Turn {
		x := h.turn(run, 1, "look")
		for _, name := range names {
			f := core.File{Path: "Chat/assets/" + name, Name: name, Voice: name == "f.ogg"}
			x.Rows[0].Files = append(x.Rows[0].Files, f)
		}
		return x
	}
	h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) {
		yield(llm.Delta{}, &llm.Fault{Code: "overloaded", Text: "it is busy"})
	}
	x := turn("r1", "a.png", "b.pdf", "c.bin", "d.txt", "e.txt", "f.ogg")
	res, err := reads.Run(t.Context(), x, func(core.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	h.tx(res.Write)
	want := []attach.Read{
		{Name: "b.pdf", Run: "r1", Content: content.Content{Pages: 3, Words: 4, Truncated: true, Preview: "X marks the spot"}},
		{Name: "d.txt", Run: "r1", Content: content.Content{Words: 12_000, Truncated: true, Preview: strings.Repeat("tea ", 50)}},
		{Name: "e.txt", Run: "r1", Content: content.Content{Words: 1, Preview: "plain"}},
		{Name: "f.ogg", Run: "r1", Content: content.Content{Words: 9_000, Preview: strings.Repeat("milk ", 40)}}, // a voice message is given whole
	}
	got, err := ledger.ReadFor(t.Context(), x.Session.ID, "r1")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A picture that the provider refused in the middle of a request is a warning like any other.
func TestAFileThatTheProviderRefusedIsAWarning(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Unread: "cat.png was refused"}, nil) && yield(llm.Delta{Text: "Well."}, nil) && yield(llm.Delta{Stop: "end_turn"}, nil)
	}
	if got := warned(h, h.Orchestrator, h.turn("r1", 1, "look")); len(got) != 1 || got[0] != "cat.png was refused" {
		t.Errorf("warned %q", got)
	}
}

// A voice message or a file in answer to another user's file has no text.
func TestTheModelReadsWhoseAQuotedFileIsWithoutATextToo(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	for _, name := range []string{"own.txt", "eves.txt"} {
		if err := h.vault.WriteFile("Chat/assets/"+name, []byte("text of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	h.model.reply = says("ok")
	x := h.turn("r1", 1, "")
	x.Rows[0].Quote = &core.Quote{Name: "Eve", Text: "[a file: eves.txt]"}
	x.Rows[0].Files = []core.File{{Path: "Chat/assets/own.txt", Name: "own.txt"}, {Path: "Chat/assets/eves.txt", Name: "eves.txt", Quoted: true}}
	warned(h, h.Orchestrator, x)
	messages := h.model.calls[0].Messages
	var got []string
	for _, b := range messages[len(messages)-1].Blocks {
		first, _, _ := strings.Cut(b.Text, "\n")
		got = append(got, first)
	}
	if want := []string{"In answer to this:", "Attached file own.txt:", "[of the message that is answered]", "Attached file eves.txt:"}; !cmp.Equal(got, want) {
		t.Errorf("the model reads %q, want %q", got, want)
	}
}
