package anthropic_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-test-0123456789-secret"

// The fake's two models: one that thinks where it sees fit, and an older one.
const (
	newer = "claude-fake-5"
	older = "claude-old-4-5"
)

// client is a client of the fake; o is completed.
func client(t *testing.T, url string, o anthropic.Options) (*anthropic.Client, *wiretest.Jump) {
	t.Helper()
	clock := wiretest.NewJump()
	o.BaseURL, o.Clock, o.Rand = url, clock, func() float64 { return 0 }
	c, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, clock
}

// raw is a server that answers everything with one body.
func raw(t *testing.T, kind, body string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write([]byte(body))
	})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
