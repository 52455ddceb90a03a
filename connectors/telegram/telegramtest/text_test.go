package telegramtest

import (
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// Whatever is sent, what is shown has entities within the text and on
// character borders.
func FuzzFixText(f *testing.F) {
	f.Add("a😀b\r\n c ", 1, 2, "bold")
	f.Add("\u202eevil\u2028", 0, 4, "code")
	f.Add("see https://example.com/x?y=1 /help@bot #tag a@b.cd", 4, 10, "text_link")
	f.Add("  \n lead", 0, 3, "pre")
	f.Fuzz(func(t *testing.T, text string, offset, length int, kind string) {
		if !utf8.ValidString(text) {
			return
		}
		shown, entities, err := fixText(text, []Entity{{Type: kind, Offset: offset, Length: length, URL: "https://example.com"}})
		if err != nil {
			return
		}
		u := utf16.Encode([]rune(shown))
		for _, e := range entities {
			end := e.Offset + e.Length
			if e.Offset < 0 || e.Length <= 0 || end > len(u) {
				t.Fatalf("%q → %q: %+v lies outside", text, shown, e)
			}
			for _, at := range []int{e.Offset, end} {
				if at > 0 && at < len(u) && utf16.IsSurrogate(rune(u[at])) && u[at] >= 0xdc00 {
					t.Fatalf("%q → %q: %+v splits a character", text, shown, e)
				}
			}
		}
	})
}

func BenchmarkSendMessage(b *testing.B) {
	s := New(Options{FloodOff: true})
	defer s.Close()
	u := s.NewUser("Ada")
	u.Send("hi")
	p := params{"chat_id": "1000000001", "text": "A plain answer of middling length, with one link https://example.com/page and nothing else."}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.dispatch(b.Context(), s.bots[0].token, "sendmessage", p, nil); err != nil {
			b.Fatal(err)
		}
	}
}
