package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/session"
	"gatehouse/web"
)

// Bounds of POST /api/chat, in bytes. The body may be larger than its texts,
// since JSON may write a character with six.
const (
	MaxMessage      = 100 << 10
	MaxSystemPrompt = 32 << 10
	MaxInitial      = 100 << 10
	maxChatBody     = 2 << 20
	maxModule       = 64
	maxContexts     = 100
)

// chatRequest is the body of POST /api/chat.
type chatRequest struct {
	Message            string
	SessionID          string
	Model              string
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
	Attachments        []attachment
}

// parseChat reads a body. camelCase names are folded first; null is the same
// as absent; ignored has the unknown names.
func parseChat(raw []byte) (req chatRequest, ignored []string, err error) {
	fields, err := fold(raw)
	if err != nil {
		return req, nil, err
	}
	into := map[string]any{
		"message": &req.Message, "session_id": &req.SessionID, "model": &req.Model, "trust_level": &req.TrustLevel,
		"cancel_on_disconnect": &req.CancelOnDisconnect, "working_directory": &req.WorkingDirectory, "system_prompt": &req.SystemPrompt,
		"agent_path": &req.AgentPath, "module": &req.Module, "workspace": &req.Workspace, "contexts": &req.Contexts,
		"initial_context": &req.InitialContext, "continued_from": &req.ContinuedFrom,
		"attachments": &req.Attachments,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		dest, known := into[name]
		switch {
		case !known:
			ignored = append(ignored, name)
		case json.Unmarshal(fields[name], dest) != nil:
			return req, nil, fieldProblem(web.Invalid, name, fmt.Sprintf("the field %s must be a %s", name, kindOf(dest)))
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
	case *[]attachment:
		return "list of objects, each with name and data"
	}
	return "string"
}

func fieldProblem(f web.Fault, name, detail string) error {
	return &web.Problem{Fault: f, Detail: detail, Extra: map[string]any{"field": core.CutRunes(name, 64)}}
}

func (q *chatRequest) check() error {
	if len(q.Attachments) > attach.MaxFiles {
		return fieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles))
	}
	if strings.TrimSpace(q.Message) == "" {
		return fieldProblem(web.Invalid, "message", "the field message is missing or empty")
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
			return fieldProblem(web.TooLarge, f.name, fmt.Sprintf("the field %s is over %d bytes", f.name, f.most))
		}
	}
	if len(q.Contexts) > maxContexts {
		return fieldProblem(web.TooLarge, "contexts", fmt.Sprintf("the field contexts holds more than %d paths", maxContexts))
	}
	for i, given := range q.Contexts {
		path, err := session.ContextPath(given)
		if err != nil {
			return fieldProblem(web.Invalid, "contexts", core.TextOf(err))
		}
		q.Contexts[i] = path
	}
	if clean := strings.Join(strings.Fields(core.CleanName(q.Module)), " "); q.Module != "" && clean != q.Module {
		return fieldProblem(web.Invalid, "module", "the field module must be a short name")
	}
	return nil
}

// fold reads a JSON object and turns its names to snake_case. The same field
// under two names is refused, since either could be meant.
func fold(raw []byte) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		if !json.Valid(raw) {
			return nil, &web.Problem{Fault: web.Invalid, Detail: "the body is not valid JSON", Err: err}
		}
		return nil, core.Errorf(core.Invalid, "the body must be a JSON object")
	}
	fields := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if string(value) == "null" {
			continue
		}
		folded := snake(name)
		if _, twice := fields[folded]; twice {
			return nil, fieldProblem(web.Invalid, folded, "the field "+core.CutRunes(folded, 64)+" is there twice")
		}
		fields[folded] = value
	}
	return fields, nil
}

// snake returns a camelCase name in snake_case; other names stay as they are.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
