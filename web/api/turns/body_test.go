package turns

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web"
)

func FuzzChatBody(f *testing.F) {
	for _, s := range []string{`{"message":"hi"}`, `{"message":"hi","sessionId":"x","SESSION_ID":"y"}`, `{"message":null}`, `{"message":{"a":1}}`, `[]`, `{"trustLevel":"full","message":"\ud800"}`, "{\"message\":\"\x00\"}", `{"":""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, ignored, err := parseChat(raw)
		if err != nil {
			if k := core.KindOf(err); k == core.Other && web.ProblemOf(err).Fault.Status >= 500 {
				t.Errorf("a bad body is our fault: %v", err)
			}
			return
		}
		if strings.TrimSpace(req.Message) == "" || len(req.Message) > MaxMessage || len(req.SessionID) > 128 {
			t.Errorf("taken: %+v", req)
		}
		for _, r := range web.IgnoredFields(ignored) {
			if r < ' ' || r > '~' {
				t.Errorf("warning %q is not fit for a header", web.IgnoredFields(ignored))
			}
		}
	})
}
