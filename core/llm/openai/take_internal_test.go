package openai

import "testing"

// FuzzTake: no event, however wrong, panics or yields an invalid tool input.
func FuzzTake(f *testing.F) {
	for _, s := range []string{`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"error":{"message":"x","code":429}}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]},"finish_reason":"stop"}]}`,
		`{"object":"error","message":"m","code":400}`, `null`, `[]`, `{"choices":null,"usage":{"prompt_tokens":-1}}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":-5,"function":{"arguments":"x"}}]}}]}`} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		c, err := New(Options{Clock: still{}})
		if err != nil {
			t.Fatal(err)
		}
		r := newTestReply(t, c)
		var a answer
		for _, data := range [][]byte{one, two} {
			if bad := r.take(&a, data); bad != nil {
				return
			}
		}
		r.end(&a)
	})
}
