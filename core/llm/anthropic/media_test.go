package anthropic_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/wiretest"
)

var (
	picture  = core.Media{Type: "image/jpeg", Name: "cat.png", Data: []byte("\x89PNG\r\n\x1a\n0000IHDR")} // by its bytes a PNG
	document = core.Media{Type: "application/pdf", Name: "book.pdf", Data: []byte("%PDF-1.7\n")}
)

// shown is a conversation in which a person and two tools show something.
func shown(media ...core.Media) []llm.Message {
	return []llm.Message{
		{Role: "user", Blocks: []core.Block{{Type: "media", Media: media}, {Type: "text", Text: "What is this?"}}},
		{Role: "assistant", Blocks: []core.Block{{Type: "tool_use", ID: "a", Name: "Read", Input: []byte(`{}`)}, {Type: "tool_use", ID: "b", Name: "Read", Input: []byte(`{}`)}}},
		{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "b", Text: "half of it", IsError: true, Media: media},
			{Type: "tool_result", ToolUseID: "a", Text: "the file", Media: media}, {Type: "tool_result", ToolUseID: "lost", Text: "old", Media: media}}},
	}
}

func kinds(c anthropictest.Content) string {
	var out []string
	for _, b := range c {
		what := b.Type
		if b.Source != nil {
			what += ":" + b.Source.MediaType
		}
		if len(b.Content) > 0 {
			what += "(" + kinds(b.Content) + ")"
		}
		out = append(out, what)
	}
	return strings.Join(out, " ")
}

func TestPicturesAndDocumentsAreSentAlsoInToolResults(t *testing.T) {
	s := anthropictest.New(t, anthropictest.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if !c.About().Images {
		t.Error("the model says that it takes no pictures")
	}
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)})); g.Err != nil {
		t.Fatal(g.Err)
	}
	sent := s.Requests()[0].Message.Messages
	const both = "image:image/png document:application/pdf"
	if got := kinds(sent[0].Content); got != both+" text" {
		t.Errorf("a person's: %s", got)
	}
	if got := kinds(sent[2].Content); got != "tool_result(text "+both+") tool_result(text) "+both+" text "+both {
		t.Errorf("tools': %s", got)
	}
	data, err := base64.StdEncoding.DecodeString(sent[0].Content[0].Source.Data)
	if err != nil || !bytes.Equal(data, picture.Data) || sent[0].Content[1].Title != "book.pdf" {
		t.Errorf("%v %q %q", err, data, sent[0].Content[1].Title)
	}
	if last := sent[2].Content[len(sent[2].Content)-1]; last.CacheControl == nil {
		t.Error("a picture at the end keeps the conversation from being cached")
	}
}

func TestMediaThatCannotBeSentAreSaidInOneLine(t *testing.T) {
	s := anthropictest.New(t, anthropictest.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	huge := picture
	huge.Data = append(bytes.Clone(picture.Data), make([]byte, 4<<20)...)
	text := core.Media{Type: "image/png", Name: "notes.txt", Data: []byte("words")}
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(huge, text)})); g.Err != nil {
		t.Fatal(g.Err)
	}
	got := s.Requests()[0].Message.Messages[0].Content
	if kinds(got) != "text text text" || got[0].Text != `["cat.png" (image/jpeg, 4 MB) is left out: it is larger than 3.75 MB]` ||
		got[1].Text != `["notes.txt" (image/png, 5 bytes) is left out: it is no picture or document that a model can read]` {
		t.Errorf("%+v", got)
	}
}

func TestARefusedPictureCostsNotTheAnswer(t *testing.T) {
	s := anthropictest.New(t, anthropictest.Options{NoImages: true})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)})); g.Err != nil || g.Text == "" {
		t.Fatalf("%+v", g)
	}
	r := s.Requests()
	if len(r) != 2 || r[0].Status != 400 || kinds(r[1].Message.Messages[0].Content) != "text text text" ||
		r[1].Message.Messages[0].Content[0].Text != `["cat.png" (image/jpeg, 16 bytes) is left out: this model takes no pictures]` {
		t.Errorf("%d requests, %+v", len(r), r[len(r)-1].Message.Messages)
	}
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture)})); g.Err != nil || s.Total() != 4 {
		t.Errorf("one refused picture blinds the client for ever: %d requests, %v", s.Total(), g.Err)
	}
}

func TestAModelBeforePicturesIsNotSentAny(t *testing.T) {
	s := anthropictest.New(t, anthropictest.Options{Models: []string{"claude-2.1"}, NoImages: true})
	c, _ := client(t, s.URL(), anthropic.Options{Model: "claude-2.1"})
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)})); g.Err != nil || s.Total() != 1 || c.About().Images {
		t.Errorf("%d requests, %v", s.Total(), g.Err)
	}
}

func TestARefusedPictureIsNamed(t *testing.T) {
	s := anthropictest.New(t, anthropictest.Options{NoImages: true})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	var told []string
	for d, err := range c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Unread != "" {
			told = append(told, d.Unread)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "cat.png, book.pdf") {
		t.Errorf("told %q", told)
	}
}

func TestAnEventOfFourMebibytesIsRead(t *testing.T) {
	long := strings.Repeat("x", 4<<20-1000)
	s := anthropictest.New(t, anthropictest.Options{Default: anthropictest.Reply{Text: []string{long}}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Ask(c, "x"); g.Err != nil || g.Text != long {
		t.Errorf("%d bytes, %v", len(g.Text), g.Err)
	}
}
