package web

import (
	"net/http"
	"slices"
	"strings"
)

// Allowed returns the methods that mux has routes for at r's path, as the header
// Allow lists them; "" where only catch-all patterns match.
func Allowed(mux *http.ServeMux, r *http.Request, catchAll ...string) string {
	var methods []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := mux.Handler(probe); pattern != "" && !slices.Contains(catchAll, pattern) {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

// Nowhere answers what no route of mux has, in the form of every other refusal:
// 405 with the methods that there are, else 404. It is mux's pattern "/".
func Nowhere(mux *http.ServeMux) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if allowed := Allowed(mux, r, "/"); allowed != "" {
			w.Header().Set("Allow", allowed)
			return Refuse(MethodNotAllowed, "this address takes "+allowed)
		}
		return Refuse(NotFound, "there is no such address")
	}
}

// ShowEither is WriteText for a browser that requests a page, WriteProblem for others.
func ShowEither(w http.ResponseWriter, r *http.Request, p *Problem) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		WriteText(w, r, p)
		return
	}
	WriteProblem(w, r, p)
}
