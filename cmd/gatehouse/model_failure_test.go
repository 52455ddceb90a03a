package main

import (
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
)

// However a model fails, the person reads one plain sentence, once, the
// operator finds the reason in the log, and the next message is answered.
func TestAModelThatFailsIsReportedPlainlyOnceAndTheNextMessageIsAnswered(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.LimitSilence = 5 * time.Second; c.RateLimit = values.Rate{} })
	ada := w.guest("Ada")
	for _, c := range []struct {
		name    string
		script  []llmtest.Reply
		person  []string // all of it in the one answer
		without string
		log     string
	}{
		{"hangs after some words", []llmtest.Reply{{Text: []string{"Half of ", "it"}, Hang: true}}, []string{"Half of it", "stopped answering", "try again"}, "", "code=silence"},
		{"hangs before any word", []llmtest.Reply{{HangHead: true}}, []string{"stopped answering"}, "", "code=silence"},
		{"refuses the key", []llmtest.Reply{llmtest.Refuse(401, "Incorrect API key provided: sk-te...cdef.", "invalid_request_error", "invalid_api_key")},
			[]string{"rejects the API key"}, "GATEHOUSE_", "Check GATEHOUSE_OPENAI_API_KEY"},
		{"quotes the key", []llmtest.Reply{llmtest.Refuse(401, "Incorrect API key provided: sk-te...cdef.", "invalid_request_error", "invalid_api_key")},
			[]string{"rejects the API key"}, "sk-te", "code=auth"},
		{"streams garbage", []llmtest.Reply{{Raw: "data: {\"choices\": [garbage\n\n"}}, []string{"an invalid answer"}, "garbage", "run failed"},
		{"is cut off", []llmtest.Reply{{Text: []string{"The first part"}, Cut: true}}, []string{"The first part", "broke off"}, "", "run failed"},
		{"ends without an end", []llmtest.Reply{{Text: []string{"Another part"}, NoEnd: true}}, []string{"Another part", "broke off"}, "", "run failed"},
		{"fails in mid-stream", []llmtest.Reply{{Text: []string{"So far"}, Error: &llmtest.Error{Message: "The server had an error", Type: "server_error"}}},
			[]string{"So far", "⚠️"}, "", "run failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			model.Script(c.script...)
			asked := ada.Send("a question")
			got := w.answers(ada.DM(), asked.ID)
			w.quiet()
			for _, words := range c.person {
				if !strings.Contains(got.Text, words) {
					t.Errorf("the person reads %q, without %q", got.Text, words)
				}
			}
			if c.without != "" && strings.Contains(got.Text, c.without) {
				t.Errorf("the person reads %q of %q", c.without, got.Text)
			}
			if all := w.said(ada.DM(), asked.ID); len(all) != 1 {
				t.Errorf("the bot said %q, want one message", all)
			}
			w.logged(c.log)
			if next := w.replies(ada, "and now?"); next.Text != fakeSays {
				t.Errorf("the next message was answered with %q", next.Text)
			}
			w.quiet()
		})
	}
	if strings.Contains(w.log.String(), modelKey) {
		t.Error("the model's key is in the log")
	}
	if n := w.metric("gatehouse_runs_total", "outcome", "error"); n != 8 {
		t.Errorf("%v runs counted as failed, want 8", n)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'dead'`); n != 0 {
		t.Errorf("%d dead letters: a model's failure is an answer, not a message to be tried again", n)
	}
}

// A provider that is busy or down is asked again after what it says, and the
// person sees only the answer.
func TestABusyModelIsAskedAgainAndThePersonSeesOnlyTheAnswer(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	before := model.Total()
	model.Script(llmtest.Limited("1"), llmtest.HTML(502), llmtest.Say("At ", "last."))
	began := time.Now()
	asked := ada.Send("a question")
	got := w.answers(ada.DM(), asked.ID)
	w.quiet()
	if got.Text != "At last." {
		t.Errorf("the answer: %q", got.Text)
	}
	if all := w.said(ada.DM(), asked.ID); len(all) != 1 {
		t.Errorf("the bot said %q", all)
	}
	if n := model.Total() - before; n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("asked again after %v, though Retry-After said 1 s", took)
	}
}

// What MODEL cannot answer, MODEL_FALLBACKS answer; the API says so in a warning.
func TestAFallbackAnswersWhereTheModelCannot(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.ModelFallbacks = values.List{"local/quote"} })
	ada := w.guest("Ada")
	model.Script(llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key"))
	got := w.replies(ada, "How long should green tea brew?")
	if !strings.Contains(got.Text, "Public/") {
		t.Errorf("the fallback's answer: %q", got.Text)
	}
	w.quiet()
	model.Script(llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key"))
	status, body := w.call("POST", "/api/chat", map[string]any{"message": "How long should green tea brew?"})
	if status != 200 || !strings.Contains(body, "asking local/quote instead") && !strings.Contains(body, `"type":"warning"`) {
		t.Errorf("the API: %d %s", status, body)
	}
	if n := w.metric("gatehouse_runs_total", "model", "local/quote", "outcome", "done"); n != 2 {
		t.Errorf("%v runs counted for the fallback, want 2", n)
	}
}

func TestAnAnswerCutAtTheOutputLimitIsMarkedInChatAndAPI(t *testing.T) {
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	model.Script(llmtest.Reply{Text: []string{"So far"}, Finish: "length"}, llmtest.Reply{Text: []string{"So far"}, Finish: "length"})
	if got := w.replies(ada, "tell me all"); !strings.HasPrefix(got.Text, "So far") || !strings.Contains(got.Text, "the model's output limit") {
		t.Errorf("the chat reads %q", got.Text)
	}
	status, body := w.call("POST", "/api/chat", map[string]any{"message": "tell me all"})
	if status != 200 || !strings.Contains(body, `"stop_reason":"max_tokens"`) || strings.Contains(body, "output limit") {
		t.Errorf("the API: %d %s", status, body)
	}
	if got := w.replies(ada, "and then?"); got.Text != fakeSays {
		t.Errorf("a whole answer is %q", got.Text)
	}
}

// When no model can answer, the sentence is the first one's.
func TestWhenEveryModelFailsThePersonIsNotifiedWhy(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.ModelFallbacks = values.List{"openai/fake-2"} })
	ada := w.guest("Ada")
	model.Script(llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key"), llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key"))
	if got := w.replies(ada, "anybody?"); !strings.Contains(got.Text, "rejects the API key") {
		t.Errorf("the person reads %q", got.Text)
	}
}
