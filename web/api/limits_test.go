package api

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/web/auth"
)

// TestEveryBodyIsBounded walks the document: whatever takes a body refuses one
// that has no end with 413, whether it says its length or not, and nothing of
// it is kept.
func TestEveryBodyIsBounded(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.Scopes()...)
	walked := 0
	for path, item := range h.seen.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil || strings.HasPrefix(path, "/v1/") { // OpenAI's have a package and tests of their own
				continue
			}
			i := slices.IndexFunc(routes, func(r struct {
				method, path, body string
				scopes             []string
			}) bool {
				return r.method == method && matches(path, r.path)
			})
			if i < 0 {
				t.Errorf("%s %s is not among the routes", method, path)
				continue
			}
			walked++
			answered := false
			for _, length := range []int64{32 << 20, -1} {
				furnish(h, 7)
				body := io.MultiReader(strings.NewReader(`{"message":"`), io.LimitReader(endless{}, 32<<20-12))
				address := routes[i].path
				if method == http.MethodDelete { // what is said there needn't be said in the body
					address, _, _ = strings.Cut(address, "?")
				}
				r, err := http.NewRequest(method, h.url+address, io.NopCloser(body))
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = length
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+key)
				if method == http.MethodPatch {
					r.Header.Set("If-Match", "*")
				}
				// Past the contract's eye, which would read the body whole.
				res, err := h.seen.next.RoundTrip(r)
				if err != nil { // refused before it was sent whole: the connection is closed under the writer
					if !strings.Contains(err.Error(), "broken pipe") && !strings.Contains(err.Error(), "reset") {
						t.Errorf("%s %s: %v", method, path, err)
					}
					continue
				}
				answered = true
				if m := h.answer(res); res.StatusCode != 413 || m["type"] != "/docs/problems/too-large" {
					t.Errorf("%s %s, length %d: %s %v", method, path, length, res.Status, m)
				}
			}
			if !answered {
				t.Errorf("%s %s answered neither", method, path)
			}
		}
	}
	if walked < 8 || len(h.put) != 0 {
		t.Errorf("%d routes take a body; %d turns were put", walked, len(h.put))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
