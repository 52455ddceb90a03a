package openai

import (
	"fmt"
	"testing"

	"gatehouse/core/llm"
)

// Each piece of an answer is an event of the stream.
func TestAPieceOfAnAnswerAllocatesLittle(t *testing.T) {
	c, err := New(Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	r, a := newTestReply(t, c), &answer{}
	event := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`)
	got := testing.AllocsPerRun(200, func() {
		if bad := r.take(a, event); bad != nil {
			t.Fatal(bad)
		}
	})
	t.Logf("%.0f allocations", got)
	if got > 3 {
		t.Errorf("%.0f allocations for an event of one word, want at most 3", got)
	}
}

// Nothing of an event is left for the next one, which uses the same memory.
func TestAnEventKeepsNothingOfTheOneBefore(t *testing.T) {
	c, err := New(Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	r, a := newTestReply(t, c), &answer{}
	for _, event := range []string{
		`{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b","tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`,
		`{"choices":[{"index":0}]}`,
	} {
		if bad := r.take(a, []byte(event)); bad != nil {
			t.Fatal(bad)
		}
	}
	if d := &a.event.Choices[0]; d.FinishReason != "" || d.Delta.Content != "" || d.Delta.Reasoning != nil || d.Delta.ToolCalls != nil || a.event.Usage != nil {
		t.Errorf("%+v", a.event)
	}
}

// Events that differ only in their text are read without the decoder; nobody can tell.
func TestAnEventInTheFrameOfAnotherIsReadAsTheDecoderReadsIt(t *testing.T) {
	first := `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`
	for _, second := range []string{
		`{"id":"c","choices":[{"index":0,"delta":{"content":"b c"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"ü 🙂"},"finish_reason":null}]}`,
		"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\"},\"finish_reason\":null}]}",
		"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\ny\"},\"finish_reason\":null}]}",
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x\n\"y\u00e4"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x","refusal":"no"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null},{"index":1,"delta":{"content":"x"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"a"`,
		`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":null},"finish_reason":null}]}`,
	} {
		var got [2]string
		for i := range got { // without a frame, and with one
			c, err := New(Options{Clock: still{}})
			if err != nil {
				t.Fatal(err)
			}
			r, a := newTestReply(t, c), &answer{}
			if bad := r.take(a, []byte(first)); bad != nil || len(a.frame.before) == 0 {
				t.Fatalf("%v, %+v", bad, a.frame)
			}
			if i == 0 {
				a.frame = frame{}
			}
			r.Yield = func(d llm.Delta, _ error) bool {
				got[i] += fmt.Sprintf("%+v ", d)
				return true
			}
			bad := r.take(a, []byte(second))
			got[i] += fmt.Sprintf("%+v %s", bad != nil, a.finish)
		}
		if got[0] != got[1] {
			t.Errorf("%s: the decoder reads %s, in the frame it is %s", second, got[0], got[1])
		}
	}
}

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
