package turns

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/upload"
)

// Bounds of POST /api/chat, in bytes.
const (
	MaxMessage      = 100 << 10
	MaxSystemPrompt = 32 << 10
	MaxInitial      = 100 << 10
	maxModule       = 64
	maxContexts     = 100
)

// chatRequest is the body of POST /api/chat.
type chatRequest struct {
	Message            string
	SessionID          string
	Model              string
	Accuracy           string
	TrustLevel         string
	CancelOnDisconnect bool
	WorkingDirectory   string
	SystemPrompt       string
	AgentPath          string
	Module             string
	Workspace          string
	Contexts           []string
	InitialContext     string
	ContinuedFrom      string
	Attachments        []upload.Attachment
}

// An uploaded is the body of POST /api/chat, with its files stored in the vault.
type uploaded struct {
	chatRequest
	ignored []string
	sum     [32]byte // of the whole body
	files   []core.File
}

var chatBody = upload.Limits{
	Fields: upload.MaxText, JSON: upload.MaxJSON, Form: upload.MaxForm, AnyJSON: true, Files: attach.MaxFiles,
	TooMany: web.FieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles)),
}

// receive reads the body, as JSON or as a form, and stores its files as they
// arrive. After an error none is left.
func (a *API) receive(w http.ResponseWriter, r *http.Request, user int64) (u uploaded, err error) {
	b, err := a.uploads.Open(w, r, user, chatBody)
	if err != nil {
		return u, err
	}
	defer func() {
		b.Close(err)
		u.files = b.Files
	}()
	raw, err := chatJSON(b)
	if err != nil {
		return u, err
	}
	if u.chatRequest, u.ignored, err = parseChat(raw); err != nil {
		return u, err
	}
	for i, x := range u.Attachments {
		if err = b.Keep(i, x); err != nil {
			return u, err
		}
	}
	u.sum = b.Sum(raw)
	return u, nil
}

// chatJSON returns the body's fields as JSON.
func chatJSON(b *upload.Body) ([]byte, error) {
	if !b.IsForm() {
		return b.JSON()
	}
	given := map[string]any{}
	if err := b.Form(func(name, text string) error { return addField(given, name, text) }); err != nil {
		return nil, err
	}
	return json.Marshal(given)
}

// addField makes a form's field what it is in JSON; contexts may be there more
// than once.
func addField(given map[string]any, name, text string) error {
	if name == "contexts" || name == "contexts[]" {
		list, _ := given["contexts"].([]string)
		given["contexts"] = append(list, text)
		return nil
	}
	if _, twice := given[name]; twice {
		return web.FieldProblem(web.Invalid, name, "the field "+core.CutRunes(core.CleanName(name), 64)+" is there twice")
	}
	if name == "cancel_on_disconnect" {
		given[name] = text == "true" || text == "1" || text == "on"
		return nil
	}
	given[name] = text
	return nil
}

// parseChat reads a body. camelCase names are folded first; null is the same
// as absent; ignored has the unknown names.
func parseChat(raw []byte) (req chatRequest, ignored []string, err error) {
	given, err := web.FieldsOf(raw)
	if err != nil {
		return req, nil, err
	}
	into := map[string]any{
		"message": &req.Message, "session_id": &req.SessionID, "model": &req.Model, "accuracy": &req.Accuracy, "trust_level": &req.TrustLevel,
		"cancel_on_disconnect": &req.CancelOnDisconnect, "working_directory": &req.WorkingDirectory, "system_prompt": &req.SystemPrompt,
		"agent_path": &req.AgentPath, "module": &req.Module, "workspace": &req.Workspace, "contexts": &req.Contexts,
		"initial_context": &req.InitialContext, "continued_from": &req.ContinuedFrom,
		"attachments": &req.Attachments,
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		dest, known := into[name]
		switch {
		case !known:
			ignored = append(ignored, name)
		case json.Unmarshal(given[name], dest) != nil:
			return req, nil, web.FieldProblem(web.Invalid, name, fmt.Sprintf("the field %s must be a %s", name, kindOf(dest)))
		}
	}
	return req, ignored, req.check()
}

func kindOf(dest any) string {
	switch dest.(type) {
	case *bool:
		return "boolean"
	case *[]string:
		return "list of strings"
	case *[]upload.Attachment:
		return "list of objects, each with name and data"
	}
	return "string"
}

func (q *chatRequest) check() error {
	if len(q.Attachments) > attach.MaxFiles {
		return web.FieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles))
	}
	if strings.TrimSpace(q.Message) == "" {
		return web.FieldProblem(web.Invalid, "message", "the field message is missing or empty")
	}
	for _, f := range []struct {
		name, value string
		most        int
	}{
		{"message", q.Message, MaxMessage}, {"system_prompt", q.SystemPrompt, MaxSystemPrompt},
		{"session_id", q.SessionID, 128}, {"model", q.Model, 200}, {"working_directory", q.WorkingDirectory, 4096},
		{"agent_path", q.AgentPath, 400}, {"module", q.Module, maxModule}, {"workspace", q.Workspace, 128},
		{"initial_context", q.InitialContext, MaxInitial}, {"continued_from", q.ContinuedFrom, 128},
	} {
		if len(f.value) > f.most {
			return web.FieldProblem(web.TooLarge, f.name, fmt.Sprintf("the field %s is over %d bytes", f.name, f.most))
		}
	}
	if q.Accuracy != "" {
		name := core.CouncilModel(q.Accuracy)
		switch {
		case name == "":
			return web.FieldProblem(web.Invalid, "accuracy", "the field accuracy must be one of "+strings.Join(core.AccuracyLevels(), ", "))
		case q.Model != "" && core.CouncilLevel(q.Model) == "":
			return web.FieldProblem(web.Invalid, "accuracy", "give either the field model or accuracy, which chooses the council of models")
		}
		q.Model = name
	}
	if len(q.Contexts) > maxContexts {
		return web.FieldProblem(web.TooLarge, "contexts", fmt.Sprintf("the field contexts holds more than %d paths", maxContexts))
	}
	for i, given := range q.Contexts {
		path, err := session.ContextPath(given)
		if err != nil {
			return web.FieldProblem(web.Invalid, "contexts", core.TextOf(err))
		}
		q.Contexts[i] = path
	}
	if clean := strings.Join(strings.Fields(core.CleanName(q.Module)), " "); q.Module != "" && clean != q.Module {
		return web.FieldProblem(web.Invalid, "module", "the field module must be a short name")
	}
	return nil
}
