// Package transcriptions is OpenAI's /v1/audio/transcriptions, by what transcribes voice
// messages (https://platform.openai.com/docs/api-reference/audio/createTranscription).
package transcriptions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/voice"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// Limits of a request.
const (
	MaxFile   = 20 << 20 // bytes of the recording
	maxBody   = MaxFile + 64<<10
	maxField  = 8 << 10 // bytes of another field
	maxFields = 40
	atOnce    = 4 // recordings that are held in memory, over all keys; others wait
)

// Hear returns the text of a recording, "" for silence; the ending of name is that of
// its format. An error that is not the context's is a *voice.Fault.
type Hear func(ctx context.Context, user int64, name string, data []byte) (string, error)

// Options for New. Desk is needed.
type Options struct {
	Desk  *answer.Desk
	Model string // the name that clients ask for
	Hear  Hear   // nil where nothing is transcribed
}

// An API serves /v1/audio/transcriptions.
type API struct {
	Options
	held chan struct{}
}

// New returns an API.
func New(o Options) *API { return &API{o, make(chan struct{}, atOnce)} }

// Register adds the route to mux.
func (a *API) Register(mux *http.ServeMux) { a.Desk.Register(mux, a.routes()) }

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{"POST /v1/audio/transcriptions": web.Body(maxBody, a.create)}
}

// Routes returns the patterns that are served, for the test that all are documented.
func (a *API) Routes() []string { return slices.Collect(maps.Keys(a.routes())) }

// create serves POST /v1/audio/transcriptions.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	release, err := a.Desk.Wait(p)
	if err != nil {
		return err
	}
	defer release()
	if a.Hear == nil {
		return refusal.New(web.NotFound, "model_not_found", "model", "Nothing is transcribed here: GATEHOUSE_TRANSCRIBE_URL or GATEHOUSE_TRANSCRIBE_COMMAND sets it up.")
	}
	select {
	case a.held <- struct{}{}:
		defer func() { <-a.held }()
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	q, err := read(r)
	if err != nil {
		return err
	}
	if err := a.check(q); err != nil {
		return err
	}
	web.WarnIgnored(w, q.ignored)
	if err := answer.Patient(w); err != nil {
		return err
	}
	text, err := a.Hear(r.Context(), p.User, q.name, q.data)
	if hurry := web.Hurry(w); hurry != nil {
		return hurry
	}
	if err != nil {
		return problem(err)
	}
	if q.format == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := io.WriteString(w, text+"\n")
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]string{"text": text})
}

// A request is a form that was read.
type request struct {
	model, format string
	name          string // of the recording
	data          []byte // nil: none was sent
	ignored       []string
}

// set takes a field that is not the recording.
func (q *request) set(name, value string) {
	switch name {
	case "model":
		q.model = value
	case "response_format":
		q.format = value
	default: // language, prompt, temperature, stream and others change nothing here
		q.ignored = append(q.ignored, name)
	}
}

// read reads the form.
func read(r *http.Request) (*request, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, web.Refuse(web.UnsupportedMedia, "send the recording as multipart/form-data, in the field file")
	}
	q := &request{}
	form := multipart.NewReader(r.Body, params["boundary"])
	for n := 0; ; n++ {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return q, nil
		}
		if err != nil {
			return nil, web.BodyFault(err, "the form cannot be read")
		}
		if n == maxFields {
			return nil, core.Errorf(core.Invalid, "the form has more than %d fields", maxFields)
		}
		if err := q.take(part); err != nil {
			return nil, err
		}
	}
}

// take takes a part of the form.
func (q *request) take(part *multipart.Part) error {
	field, most := core.CutRunes(part.FormName(), 100), int64(maxField)
	if field == "file" {
		most = MaxFile
	}
	data, err := io.ReadAll(io.LimitReader(part, most+1))
	switch {
	case err != nil:
		return web.BodyFault(err, "the form cannot be read")
	case int64(len(data)) > most && field == "file":
		return refusal.New(web.TooLarge, "", "file", fmt.Sprintf("The recording is over %s.", core.ByteSize(MaxFile)))
	case int64(len(data)) > most:
		return refusal.New(web.Invalid, "invalid_value", field, fmt.Sprintf("Invalid '%s': expected at most %d bytes.", field, maxField))
	case field == "file":
		q.name, q.data = fileName(part.FileName()), data
	default:
		q.set(field, string(data))
	}
	return nil
}

// fileName returns a name that is safe to pass on, with the ending that a client gave.
func fileName(name string) string {
	end := strings.ToLower(path.Ext(name))
	if len(end) < 2 || len(end) > 6 || strings.Trim(end[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		end = ""
	}
	return "recording" + end
}

// check refuses what there is not.
func (a *API) check(q *request) error {
	switch {
	case q.model == "":
		return refusal.Missing("model")
	case len(q.data) == 0:
		return refusal.Missing("file")
	case q.model != a.Model:
		return refusal.New(web.NotFound, "model_not_found", "model", fmt.Sprintf("The model `%s` does not exist: recordings are transcribed by `%s`.", core.CutRunes(core.CleanName(q.model), 200), a.Model))
	case q.format != "" && q.format != "json" && q.format != "text":
		return refusal.New(web.Invalid, "unsupported_value", "response_format", "Invalid value for 'response_format': supported are 'json' and 'text'.")
	}
	return nil
}

// problem returns the answer to a recording without a text.
func problem(err error) error {
	fault, ok := errors.AsType[*voice.Fault](err)
	if !ok {
		return err
	}
	texts := map[string]string{
		voice.FaultFormat:  "The format of the recording is not read here: send Ogg/Opus or WAV, or install ffmpeg.",
		voice.FaultDamaged: "The recording is damaged.",
		voice.FaultLarge:   "The recording is too large.",
		voice.FaultLong:    "The recording is too long.",
		voice.FaultDay:     "The recording is longer than the transcription time of a day.",
	}
	if text := texts[fault.Code]; text != "" {
		return refusal.New(web.Invalid, "invalid_value", "file", text)
	}
	if fault.Code == voice.FaultQuota {
		return refusal.Final(refusal.New(web.TooManyRequests, "insufficient_quota", "", "The transcription time of today is used up; it begins again at midnight UTC."))
	}
	p := refusal.New(web.ModelFailed, "transcription_failed", "", "The transcription failed.")
	p.Err = err
	return p
}
