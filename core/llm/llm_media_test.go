package llm_test

import (
	"bytes"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
)

var (
	png = []byte("\x89PNG\r\n\x1a\n0000IHDR")
	pdf = []byte("%PDF-1.7\n")
)

func TestTheNewestMediaAreChosenAndTheOthersAreSaid(t *testing.T) {
	limits := llm.MediaLimits{Images: true, MaxImage: 100, MaxDocument: 100, MaxTotal: 150, MaxCount: 2}
	big := append(bytes.Clone(png), make([]byte, 80)...)
	messages := []llm.Message{
		{Role: "user", Blocks: []core.Block{{Type: "media", Media: []core.Media{
			{Type: "image/png", Name: "oldest\u202e.png", Data: png}, {Type: "image/png", Data: big}}}}},
		{Role: "user", Blocks: []core.Block{{Type: "tool_result", Media: []core.Media{
			{Type: "application/pdf", Name: "book.pdf", Data: pdf}, {Type: "image/png", Name: "text.png", Data: []byte("hello")},
			{Type: "image/jpeg", Name: "huge.png", Data: append(bytes.Clone(png), make([]byte, 2000)...)}, {Name: "new.png", Data: big}}}}},
	}
	c := limits.Choose(messages)
	want := []string{
		`["oldest.png" (image/png, 16 bytes) is left out: `, "[an attachment (image/png, 96 bytes) is left out: the newer ones take all the space]",
		`["book.pdf" (application/pdf, 9 bytes) is left out: this model takes no documents]`,
		`["text.png" (image/png, 5 bytes) is left out: it is no picture or document that a model can read]`,
		`["huge.png" (image/jpeg, 1 KB) is left out: it is larger than 100 bytes]`, "",
	}
	limits.MaxTotal = 1000
	few := limits.Choose(messages)
	n := 0
	for i := range messages {
		for j := range messages[i].Blocks[0].Media {
			m := &messages[i].Blocks[0].Media[j]
			line, sent := c.LeftOut(m)
			if n == 0 { // fits, because a larger one in front of it did not
				if !sent {
					t.Errorf("%q", line)
				}
				if line, _ := few.LeftOut(m); line != want[0]+"only the newest 2 are shown]" {
					t.Errorf("%q", line)
				}
			} else if line != want[n] || sent != (line == "") {
				t.Errorf("%d: %q, %t", n, line, sent)
			}
			n++
		}
	}
}

func TestWhatAMediumIsItsBytesSay(t *testing.T) {
	for _, x := range []struct{ data, kind, mime string }{
		{string(png), "image", "image/png"}, {"\xff\xd8\xff\xe0", "image", "image/jpeg"}, {"GIF89a", "image", "image/gif"},
		{"RIFF\x00\x00\x00\x00WEBPVP8 ", "image", "image/webp"}, {"\n" + string(pdf), "document", "application/pdf"},
		{"", "", ""}, {"<svg/>", "", ""}, {"BM____", "", ""}, {strings.Repeat(" ", 2000) + "%PDF-", "", ""},
	} {
		if kind, mime := (&core.Media{Type: "image/png", Data: []byte(x.data)}).Kind(); kind != x.kind || mime != x.mime {
			t.Errorf("%q is %q, %q", x.data[:min(len(x.data), 8)], kind, mime)
		}
	}
}
