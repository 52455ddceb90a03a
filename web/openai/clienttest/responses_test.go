package clienttest

import (
	"net/http"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func (v visit) response(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: v.model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func (v visit) responses() {
	p := v.response("Hello")
	p.Instructions, p.Metadata = openai.String("Be brief."), map[string]string{"from": "go"}
	first, err := v.client.Responses.New(v.Context(), p)
	if err != nil {
		v.Fatal(err)
	}
	if first.OutputText() != v.says || first.Status != "completed" || first.Usage.TotalTokens == 0 || first.Metadata["from"] != "go" {
		v.Errorf("%s", first.RawJSON())
	}
	p = v.response("And?")
	p.PreviousResponseID = openai.String(first.ID)
	s := v.client.Responses.NewStreaming(v.Context(), p)
	defer s.Close()
	text, n := "", int64(0)
	var last responses.Response
	for ; s.Next(); n++ {
		e := s.Current()
		if e.SequenceNumber != n {
			v.Errorf("event %d has the number %d", n, e.SequenceNumber)
		}
		switch e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.completed":
			last = e.Response
		}
	}
	if err := s.Err(); err != nil || text != v.says || last.OutputText() != v.says || last.PreviousResponseID != first.ID {
		v.Fatalf("%q, %s: %v", text, last.RawJSON(), err)
	}
	items, err := v.client.Responses.InputItems.List(v.Context(), last.ID, responses.InputItemListParams{})
	if err != nil || len(items.Data) != 1 || items.Data[0].Content.OfInputItemContentList[0].Text != "And?" {
		v.Errorf("%+v: %v", items, err)
	}
	if err := v.client.Responses.Delete(v.Context(), last.ID); err != nil {
		v.Error(err)
	}
	_, err = v.client.Responses.Get(v.Context(), last.ID, responses.ResponseGetParams{})
	v.failure(err, http.StatusNotFound)
}

func (v visit) background() {
	p := v.response("Hello")
	p.Background = openai.Bool(true)
	r, err := v.client.Responses.New(v.Context(), p)
	for err == nil && (r.Status == "queued" || r.Status == "in_progress") {
		r, err = v.client.Responses.Get(v.Context(), r.ID, responses.ResponseGetParams{})
	}
	if err != nil || r.OutputText() != v.says {
		v.Fatalf("%+v: %v", r, err)
	}
	if r, err = v.client.Responses.Cancel(v.Context(), r.ID); err != nil || r.Status != "completed" {
		v.Errorf("%+v: %v", r, err)
	}
}

func (v visit) repeated() {
	once := option.WithHeader("Idempotency-Key", "go-1")
	first, err := v.client.Responses.New(v.Context(), v.response("Once"), once)
	if err != nil || first.OutputText() != v.says {
		v.Fatalf("%+v: %v", first, err)
	}
	if again, err := v.client.Responses.New(v.Context(), v.response("Once"), once); err != nil || again.ID != first.ID || again.OutputText() != v.says {
		v.Errorf("%+v: %v", again, err)
	}
	_, err = v.client.Responses.New(v.Context(), v.response("Other"), once)
	v.failure(err, http.StatusConflict)
}

func (v visit) transcribed() {
	f, err := os.Open(os.Getenv("OPENAI_TEST_SPEECH"))
	if err != nil {
		v.Fatal(err)
	}
	defer f.Close()
	got, err := v.client.Audio.Transcriptions.New(v.Context(), openai.AudioTranscriptionNewParams{Model: "whisper-1", File: f})
	if err != nil || got.Text != "Where is the shed? I lost the key." {
		v.Errorf("%+v: %v", got, err)
	}
}

func (v visit) brokenResponse() {
	s := v.client.Responses.NewStreaming(v.Context(), v.response("Hello"))
	defer s.Close()
	text, failed := "", false
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "error", "response.failed":
			failed = true
		}
	}
	if (s.Err() == nil && !failed) || text == "" {
		v.Errorf("%q and the error %v, want both", text, s.Err())
	}
}
