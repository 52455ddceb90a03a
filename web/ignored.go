package web

import (
	"fmt"
	"net/http"
	"strings"

	"gatehouse/core"
)

// IgnoredFields names fields of a body that were ignored, as the value of a
// Warning header (RFC 7234, section 5.5, code 299: "miscellaneous persistent
// warning"); "" when there are none.
func IgnoredFields(ignored []string) string {
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

// WarnIgnored names them in the answer's head, if there are any.
func WarnIgnored(w http.ResponseWriter, ignored []string) {
	if text := IgnoredFields(ignored); text != "" {
		w.Header().Set("Warning", text)
	}
}
