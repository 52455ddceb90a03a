package turns

import (
	"net/http"
	"strconv"
	"strings"

	"gatehouse/web"
)

// formOf reads Prefer and Accept (RFC 7240, RFC 9110 section 12.5.1).
func formOf(r *http.Request) (form, error) {
	for pref := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(pref), ";"); strings.EqualFold(strings.TrimSpace(name), "respond-async") {
			return asAccepted, nil
		}
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return asStream, nil
	}
	stream, streamAt := quality(accept, "text/event-stream")
	object, objectAt := quality(accept, "application/json")
	switch {
	case stream == 0 && object == 0:
		return 0, web.Refuse(web.NotAcceptable, "this address answers with text/event-stream or application/json")
	case object > stream || object == stream && objectAt > streamAt:
		return asJSON, nil
	}
	return asStream, nil
}

// quality returns the quality value of media in accept, and how specific its
// entry is.
func quality(accept, media string) (q float64, closeness int) {
	kind, _, _ := strings.Cut(media, "/")
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		at := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case media:
			at = 3
		case kind + "/*":
			at = 2
		case "*/*":
			at = 1
		}
		if at <= closeness {
			continue
		}
		q, closeness = 1, at
		for param := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.ReplaceAll(param, " ", ""), "q="); ok {
				if f, err := strconv.ParseFloat(v, 64); err == nil {
					q = min(1, max(0, f))
				}
			}
		}
	}
	return q, closeness
}
