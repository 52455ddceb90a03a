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
// whether they are all. Of a text with several lines each may be one, unless one of them has a
// blank: then the text is content, and no name.
func Names(input json.RawMessage) (names []string, all bool) {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return nil, true
	}
	var walk func(any)
	walk = func(v any) {
		if len(names) > Most {
			return
		}
		switch v := v.(type) {
		case string:
			names = append(names, lines(v)...)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				names = append(names, k)
				walk(e)
			}
		}
	}
	walk(v)
	if len(names) > Most {
		return names[:Most], false
	}
	return names, true
}

func lines(s string) []string {
	list := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
	switch {
	case len(list) < 2:
		return []string{s}
	case slices.ContainsFunc(list, func(l string) bool { return strings.ContainsAny(strings.TrimSpace(l), " \t") }):
		return nil
	}
	return list
}
