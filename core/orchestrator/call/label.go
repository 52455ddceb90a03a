package call

import (
	"bytes"
	"encoding/json"

	"gatehouse/core"
)

// maxSubject bounds what users read of a call, in characters.
const maxSubject = 80

// Object returns input as a JSON object, and reports whether it is one or nothing. What is
// neither becomes an empty object, to be shown.
func Object(input json.RawMessage) (json.RawMessage, bool) {
	b := bytes.TrimSpace(input)
	if len(b) > 0 && b[0] == '{' && json.Valid(b) {
		return input, true
	}
	return json.RawMessage("{}"), len(b) == 0
}

// subjects are the inputs that say best what a call is about.
var subjects = []string{"file_path", "path", "command", "pattern", "url", "query", "description", "name"}

// Label reports what a tool call is about, for users: "Write report.md".
func Label(name string, input json.RawMessage) string {
	if about := subject(input); about != "" {
		return name + " " + about
	}
	return name
}

// subject returns a short description of a call for users.
func subject(input json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(input, &m) != nil {
		return ""
	}
	for _, k := range subjects {
		if s, ok := m[k].(string); ok && s != "" {
			return core.CutRunes(core.CleanName(s), maxSubject)
		}
	}
	return ""
}
