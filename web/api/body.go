package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/web"
)

// Bounds of POST /api/chat, in bytes. The body may be larger than its texts,
// since JSON may write a character with six.
const (
	MaxMessage      = 100 << 10
	MaxSystemPrompt = 32 << 10
	maxChatBody     = 1 << 20
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
}

// later are fields of the contract that this version doesn't honour. To ignore
// them would change what was asked for, so they are refused by name.
var later = []string{"agent_path", "module", "workspace", "contexts", "attachments", "initial_context", "continued_from"}

// parseChat reads a body. camelCase names are folded first; null is the same
// as absent; ignored holds the names nobody knows.
func parseChat(raw []byte) (req chatRequest, ignored []string, err error) {
	fields, err := fold(raw)
	if err != nil {
		return req, nil, err
	}
	into := map[string]any{
		"message": &req.Message, "session_id": &req.SessionID, "model": &req.Model, "trust_level": &req.TrustLevel,
		"cancel_on_disconnect": &req.CancelOnDisconnect, "working_directory": &req.WorkingDirectory, "system_prompt": &req.SystemPrompt,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		dest, known := into[name]
		switch {
		case slices.Contains(later, name):
			return req, nil, fieldProblem(web.UnsupportedField, name, "the field "+name+" is not supported by this version")
		case !known:
			ignored = append(ignored, name)
		case json.Unmarshal(fields[name], dest) != nil:
			return req, nil, fieldProblem(web.Invalid, name, fmt.Sprintf("the field %s must be a %s", name, kindOf(dest)))
		}
	}
	return req, ignored, req.check()
}

func kindOf(dest any) string {
	if _, ok := dest.(*bool); ok {
		return "boolean"
	}
	return "string"
}

func fieldProblem(f web.Fault, name, detail string) error {
	return &web.Problem{Fault: f, Detail: detail, Extra: map[string]any{"field": core.CutRunes(name, 64)}}
}

func (q *chatRequest) check() error {
	if strings.TrimSpace(q.Message) == "" {
		return fieldProblem(web.Invalid, "message", "the field message is missing or empty")
	}
	for _, f := range []struct {
		name, value string
		most        int
	}{
		{"message", q.Message, MaxMessage}, {"system_prompt", q.SystemPrompt, MaxSystemPrompt},
		{"session_id", q.SessionID, 128}, {"model", q.Model, 200}, {"working_directory", q.WorkingDirectory, 4096},
	} {
		if len(f.value) > f.most {
			return fieldProblem(web.TooLarge, f.name, fmt.Sprintf("the field %s is over %d bytes", f.name, f.most))
		}
	}
	return nil
}

// fold reads a JSON object and turns its names to snake_case. The same field
// under two names is refused, since either could be meant.
func fold(raw []byte) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
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

// snake is a camelCase name in snake_case; other names stay as they are.
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

// warning names ignored fields in the form of RFC 7234, section 5.5 (code 299,
// "miscellaneous persistent warning"); "" when there are none.
func warning(ignored []string) string {
	const most = 8
	if len(ignored) == 0 {
		return ""
	}
	var names []string
	for _, n := range ignored[:min(len(ignored), most)] {
		names = append(names, strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' || r == '"' || r == '\\' {
				return '?'
			}
			return r
		}, core.CutRunes(n, 40)))
	}
	if len(ignored) > most {
		names = append(names, fmt.Sprintf("and %d more", len(ignored)-most))
	}
	return fmt.Sprintf(`299 - "unknown fields were ignored: %s"`, strings.Join(names, ", "))
}
