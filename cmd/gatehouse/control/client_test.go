package control_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/coretest"
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

// A process that is stopped accepts connections, by its kernel, and never answers.
func TestARequestOfAStoppedGatewayEndsWithAClearText(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip("the path of the test's directory is too long for a socket: ", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	clock := coretest.NewClock(time.Time{})
	done := make(chan error, 1)
	go func() { done <- control.DialWith(dir, clock).Get(context.Background(), "/things/a", nil) }()
	clock.AwaitWaiters(1)
	clock.Advance(15 * time.Second)
	select {
	case err := <-done:
		if core.KindOf(err) != core.Busy || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "SIGSTOP") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}
