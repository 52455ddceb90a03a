package quote_test

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/quote"
)

// play answers calls until the model makes none, as a loop does, and gives
// what happened in order.
func play(t *testing.T, text string) (out []string) {
	t.Helper()
	m := model(t, quote.Name, nil, core.System{})
	req := &llm.Request{Tools: []llm.Tool{{Name: "Read"}}, Messages: []llm.Message{user("use Read {}"), assistant("earlier turn"), user(text)}}
	ids := map[string]bool{}
	for range 20 {
		var thought, said string
		var calls []core.Block
		stop := ""
		for d, err := range m.Reply(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			thought, said = thought+d.Thinking, said+d.Text
			if d.Call != nil {
				calls = append(calls, *d.Call)
			}
			stop += d.Stop
		}
		step := "think(" + thought + ") say(" + said + ")"
		results := llm.Message{Role: "user"}
		for _, c := range calls {
			if ids[c.ID] {
				t.Errorf("the id %s is used twice", c.ID)
			}
			ids[c.ID] = true
			step += " " + string(c.Input)
			results.Blocks = append(results.Blocks, core.Block{Type: "tool_result", ToolUseID: c.ID, Text: "use Read {\"again\":1}\nof " + string(c.Input)})
		}
		out = append(out, step+" "+stop)
		if len(calls) == 0 {
			return out
		}
		req.Messages = append(req.Messages, llm.Message{Role: "assistant", Blocks: append([]core.Block{{Type: "text", Text: said}}, calls...)}, results)
	}
	t.Fatalf("the loop does not end: %v", out)
	return nil
}

func TestAMessageTellsTheModelSeveralRounds(t *testing.T) {
	got := play(t, "think: hm, two\nuse Read {\"n\":1}\nuse Read {\"n\":2}\nthen\nsay: on it\nuse Read {\"n\":3}\nuse Nothing {}\n then \n think: so\n say: all done")
	want := []string{`think(hm, two) say() {"n":1} {"n":2} tool_use`, `think() say(on it) {"n":3} tool_use`, "think(so) say(all done) end_turn"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestALoopOverTheModelEndsByRepeatingTheLastResults(t *testing.T) {
	got := play(t, strings.Repeat("use Read {\"n\":1}\nthen\n", 50))
	if len(got) != 9 || got[8] != "think() say(The tool answered:\n\n> use Read {\"again\":1}\n> of {\"n\":1}) end_turn" {
		t.Errorf("%d answers, the last %q", len(got), got[len(got)-1])
	}
}

func TestWordsLikeATestsAreAQuestionWhereTheyCallNothing(t *testing.T) {
	f := &found{}
	m := model(t, quote.Name, f.search, core.System{})
	for _, text := range []string{"say: something about tea", "think: of tea\nthen", "use Read {}"} {
		if r := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{user(text)}}); !strings.HasPrefix(r.text, "I found nothing") || r.err != nil {
			t.Errorf("%q: %q %v", text, r.text, r.err)
		}
	}
}

func TestPicturesAreSaidToBeUnseen(t *testing.T) {
	m := model(t, quote.Name, (&found{}).search, core.System{})
	r := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: "tea?"},
		{Type: "media", Media: []core.Media{{Type: "image/png", Name: "cup.png", Data: []byte("\x89PNG\r\n\x1a\n")}}}}}}})
	if !strings.Contains(r.text, "\n\n[\"cup.png\" (image/png, 8 bytes) is left out: this model takes no pictures]\n\n") {
		t.Errorf("%q", r.text)
	}
}
