package provider

import (
	"io"
	"net/http"
	"testing"
)

// A run may wait for minutes; the conversation that it has sent is not kept for it.
func TestASentRequestIsForgottenOnceItIsAnswered(t *testing.T) {
	for _, answered := range []string{"after it was read", "before"} {
		s := &sending{data: []byte("a long conversation")}
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.giveTo(req)
		again, err := req.GetBody() // the connection was stale
		if err != nil || req.ContentLength != int64(len(s.data)) {
			t.Fatal(err, req.ContentLength)
		}
		if answered == "before" {
			s.letGo()
		}
		if b, err := io.ReadAll(req.Body); err != nil || string(b) != "a long conversation" {
			t.Errorf("%s: %q %v", answered, b, err)
		}
		if answered != "before" {
			if b, err := io.ReadAll(again); err != nil || string(b) != "a long conversation" {
				t.Errorf("sent again: %q %v", b, err)
			}
			s.letGo()
		}
		if s.data != nil {
			t.Errorf("answered %s it was read, it is still held", answered)
		}
	}
}
