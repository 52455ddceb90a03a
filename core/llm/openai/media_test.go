package openai_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
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
		{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "b", Text: "half of it", IsError: true},
			{Type: "tool_result", ToolUseID: "a", Text: "the file", Media: media}, {Type: "text", Text: "And this?"}}},
	}
}

func kinds(m llmtest.Message) string {
	out := []string{m.Role}
	for _, p := range m.Parts {
		out = append(out, p.Type)
	}
	return strings.Join(out, " ")
}

func TestPicturesAndDocumentsAreSentToolsOnesBehindTheirResults(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1", Documents: true})
	if !c.About().Images {
		t.Error("the model says that it takes no pictures")
	}
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)})); g.Err != nil {
		t.Fatal(g.Err)
	}
	sent := s.Requests()[0].Messages
	want := []string{"user image_url file text", "assistant", "tool", "tool", "user text image_url file text"}
	for i, w := range want {
		if i >= len(sent) || kinds(sent[i]) != w {
			t.Fatalf("message %d of %d is not %q: %+v", i, len(sent), w, sent)
		}
	}
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture.Data)
	first := sent[0].Parts
	if first[0].Image.URL != url || first[1].File.Name != "book.pdf" || !strings.HasPrefix(first[1].File.Data, "data:application/pdf;base64,") {
		t.Errorf("%+v %+v", first[0].Image, first[1].File)
	}
	if !strings.HasPrefix(sent[2].Content, "the file") || sent[4].Parts[0].Text != "Shown by the tool call a:" || sent[4].Parts[3].Text != "And this?" {
		t.Errorf("%q, %+v", sent[2].Content, sent[4])
	}
}

func TestMediaThatCannotBeSentAreSaidInOneLine(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	huge := picture
	huge.Data = append(bytes.Clone(picture.Data), make([]byte, 16<<20)...)
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(huge, document)})); g.Err != nil {
		t.Fatal(g.Err)
	}
	m := s.Requests()[0].Messages[0]
	want := `["cat.png" (image/jpeg, 16 MB) is left out: it is larger than 15 MB]` + "\n\n" +
		`["book.pdf" (application/pdf, 9 bytes) is left out: this model takes no documents]` + "\n\nWhat is this?"
	if m.Content != want || m.Parts != nil {
		t.Errorf("%q %v", m.Content, m.Parts)
	}
}

func TestAModelWithoutVisionIsAskedOnceAndThenInWords(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{NoImages: true, NoFiles: true})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1", Documents: true})
	for range 2 {
		if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture, document)})); g.Err != nil || g.Text == "" {
			t.Fatalf("%+v", g)
		}
	}
	if c.About().Images || s.Total() != 4 {
		t.Errorf("images %t after %d requests", c.About().Images, s.Total())
	}
}

func TestServersSayInManyWaysThatAModelIsBlind(t *testing.T) {
	for _, words := range []string{"this model is missing data required for image input", "At most 0 image(s) may be provided in one request.",
		"image input is not supported - hint: you may need to provide the mmproj", "fake-1 is not a multimodal model",
		"messages[0]: unknown variant `image_url`, expected `text`", "No endpoints found that support image input"} {
		s := llmtest.New(t, llmtest.Options{})
		c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
		s.Script(llmtest.Refuse(400, words, "invalid_request_error", ""))
		g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture)}))
		if g.Err != nil || s.Total() != 2 || c.About().Images {
			t.Errorf("%q: %d requests, %v", words, s.Total(), g.Err)
		}
	}
}

func TestARefusedPictureCostsNotTheAnswerNorTheNextOnes(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	s.Script(llmtest.Refuse(400, "Image is corrupt", "invalid_request_error", ""))
	g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: shown(picture)}))
	if g.Err != nil || s.Total() != 2 || !c.About().Images {
		t.Errorf("%d requests, %v", s.Total(), g.Err)
	}
}
