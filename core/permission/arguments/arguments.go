// Package arguments finds in the arguments of a call to an MCP server what may be names of
// files.
package arguments

import (
	"encoding/json"
	"slices"
	"strings"
)

// Most bounds the names of one call.
const Most = 10_000

// Names returns the texts in a JSON value that may be names, keys too, at most Most, and reports
// whether they are all. Of a text with several lines each may be one if all look like paths and
// the argument is not called content or alike.
func Names(input json.RawMessage) (names []string, all bool) {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return nil, true
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		if len(names) > Most {
			return
		}
		switch v := v.(type) {
		case string:
			if list := lines(v); len(list) < 2 {
				names = append(names, v)
			} else if !contents[strings.ToLower(key)] && len(list) <= Most && !slices.ContainsFunc(list, isContent) {
				names = append(names, list...)
			}
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case map[string]any:
			for k, e := range v {
				names = append(names, k)
				walk(k, e)
			}
		}
	}
	walk("", v)
	if len(names) > Most {
		return names[:Most], false
	}
	return names, true
}

// contents are names of arguments that hold what is in a file.
var contents = map[string]bool{"content": true, "contents": true, "text": true, "body": true, "data": true, "code": true,
	"file_text": true, "newtext": true, "oldtext": true, "new_text": true, "old_text": true, "new_str": true, "old_str": true, "new_string": true, "old_string": true}

func lines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
}

// isContent reports whether a line does not look like a path.
func isContent(line string) bool {
	return strings.ContainsAny(strings.TrimSpace(line), " \t,;*=<>(){}|\"'`")
}
