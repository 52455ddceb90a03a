package control_test

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/web"
)

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /things/{name}", func(w http.ResponseWriter, r *http.Request) {
		_ = web.WriteJSON(w, http.StatusOK, map[string]string{"name": r.PathValue("name"), "query": r.URL.RawQuery})
	})
	mux.HandleFunc("GET /text", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("# Title\n")) })
	for path, kind := range map[string]core.Kind{"invalid": core.Invalid, "denied": core.Denied, "missing": core.NotFound, "conflict": core.Conflict, "busy": core.Busy, "large": core.TooLarge, "ours": core.Other} {
		mux.HandleFunc("POST /"+path, func(w http.ResponseWriter, r *http.Request) {
			web.WriteProblem(w, r, web.ProblemOf(core.Errorf(kind, "it is %s", path)))
		})
	}
	return mux
}

// The same requests have the same answers over the socket and in this process.
func TestRequestsOverTheSocketAndInThisProcess(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip("the path of the test's directory is too long for a socket: ", err)
	}
	srv := &http.Server{Handler: handler()}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	for name, c := range map[string]*control.Client{"socket": control.Dial(dir), "in process": control.Local(handler())} {
		t.Run(name, func(t *testing.T) {
			var got map[string]string
			if err := c.Get(t.Context(), control.Path("things", "a/b c?d%")+"?x=1", &got); err != nil || got["name"] != "a/b c?d%" || got["query"] != "x=1" {
				t.Errorf("%v %v", got, err)
			}
			for _, segment := range []string{"", ".", ".."} {
				if err := c.Get(t.Context(), control.Path("things", segment, "x"), &got); core.KindOf(err) != core.NotFound {
					t.Errorf("%q: %v", segment, err)
				}
			}
			var text string
			if err := c.Get(t.Context(), "/text", &text); err != nil || text != "# Title\n" {
				t.Errorf("%q %v", text, err)
			}
			for path, kind := range map[string]core.Kind{"invalid": core.Invalid, "denied": core.Denied, "missing": core.NotFound, "conflict": core.Conflict, "busy": core.Busy, "large": core.TooLarge} {
				err := c.Do(t.Context(), "POST", "/"+path, map[string]int{"n": 1}, nil)
				if core.KindOf(err) != kind || core.TextOf(err) != "it is "+path {
					t.Errorf("%s: %v", path, err)
				}
			}
			if err := c.Do(t.Context(), "POST", "/ours", nil, nil); err == nil || core.KindOf(err) != core.Other || err.Error() != "internal error" {
				t.Errorf("a fault of the gateway's: %v", err)
			}
		})
	}
}
