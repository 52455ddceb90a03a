package main

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// retry presses Retry on a conversation's page and returns what the page says then.
func (b *browser) retry(id, run string) string {
	b.w.t.Helper()
	path := "/admin/chats/" + id
	_, page := b.submit(path+"/retry", b.page(path), url.Values{"value": {run}})
	return page
}

// lastRun is the newest run of a session.
func (w *world) lastRun(id string) (run string) {
	w.t.Helper()
	if err := w.app.db.Get(w.t.Context(), &run, `SELECT id FROM runs WHERE session_id = $1 ORDER BY started DESC LIMIT 1`, id); err != nil {
		w.t.Fatal(err)
	}
	return run
}

func TestFailedAnswerIsShownInItsPlaceWithItsReasonAndAdvice(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.RateLimit = values.Rate{} })
	ada := w.guest("Ada")
	w.replies(ada, "first")
	w.quiet()
	id := w.sessionIn(ada)
	b := w.browser()
	for _, c := range []struct {
		name                  string
		script                []llmtest.Reply
		reason, said, advice  string
		secret, code, verdict string
	}{
		{"401", []llmtest.Reply{llmtest.Refuse(401, "Incorrect API key provided: sk-te...cdef.", "invalid_request_error", "invalid_api_key")},
			"rejects the API key", "status 401", "GATEHOUSE_OPENAI_API_KEY", "sk-te", "auth", "It was not answered: The model provider rejects the API key. The operator must replace it, and the message that says so arrived."},
		{"429", []llmtest.Reply{llmtest.Refuse(429, "You exceeded your current quota for "+modelKey, "insufficient_quota", "insufficient_quota")},
			"has no credit left", "You exceeded your current quota", "Add credit to the account", modelKey, "no_credit", "no credit left"},
		{"500", []llmtest.Reply{llmtest.Refuse(500, "boom <b>", "server_error", ""), llmtest.Refuse(500, "boom <b>", "server_error", ""), llmtest.Refuse(500, "boom <b>", "server_error", ""), llmtest.Refuse(500, "boom <b>", "server_error", "")},
			"out of reach", "boom &lt;b&gt;", "then retry", "boom <b>", "unavailable", "out of reach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			model.Script(c.script...)
			w.replies(ada, "question "+c.name)
			w.quiet()
			run := w.lastRun(id)
			page := b.page("/admin/chats/" + id)
			_, after, _ := strings.Cut(page, "question "+c.name)
			item, _, _ := strings.Cut(after, "</ol>")
			for _, want := range []string{`class="said failed" id="m-failed-` + run + `"`, "No answer", c.reason, c.said, c.advice, `value="` + run + `">Retry</button>`} {
				if !strings.Contains(item, want) {
					t.Errorf("after the question the page lacks %q: %s", want, item)
				}
			}
			trace := b.page("/admin/chats/trace?run=" + run)
			for _, want := range []string{c.verdict, c.reason, c.said, "<h2>Message instead of an answer</h2>"} {
				if !strings.Contains(trace, want) {
					t.Errorf("the trace lacks %q: %s", want, trace)
				}
			}
			for _, no := range []string{c.secret, "It was answered", "The reply was sent"} {
				if strings.Contains(page+trace, no) {
					t.Errorf("the pages hold %q", no)
				}
			}
			// The failure before is still in its place, and cannot be tried again.
			if n := strings.Count(page, ">Retry</button>"); n != 1 {
				t.Errorf("%d buttons to retry", n)
			}
		})
	}
	if page := b.page("/admin/chats/" + id); strings.Count(page, `class="said failed"`) != 3 || strings.Index(page, "status 401") > strings.Index(page, "question 429") {
		t.Error("the three failures are not each after their own message")
	}
}

func TestRetryAnswersAFailedMessageOnceInItsSendersName(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.RateLimit = values.Rate{} })
	ada := w.guest("Ada")
	model.Script(llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key"))
	w.replies(ada, "How are the beans?")
	w.quiet()
	id, b := w.sessionIn(ada), w.browser()
	run := w.lastRun(id)
	path := "/admin/chats/" + id
	form := b.page(path)
	model.Script(llmtest.Say("They grow."))
	asked := model.Total()
	for range 2 { // two presses of one page
		b.submit(path+"/retry", form, url.Values{"value": {run}})
	}
	w.until("the answer arrives", func() bool { return strings.Contains(strings.Join(w.said(ada.DM(), 0), "\n"), "They grow.") })
	w.quiet()
	if n := model.Total() - asked; n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	if body := lastBody(model); strings.Count(body, "How are the beans?") != 1 {
		t.Errorf("the model read %s", body)
	}
	if n := w.count(`SELECT count(*) FROM runs WHERE session_id = $1 AND user_id = $2 AND state = 'done' AND started > (SELECT started FROM runs WHERE id = $3)`, id, w.user(ada), run); n != 1 {
		t.Errorf("%d answers in the sender's name", n)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'run.retry' AND subject = $1`, run); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	if page := b.page(path); strings.Contains(page, ">Retry</button>") {
		t.Error("Retry is still offered")
	}
	if page := b.retry(id, run); !strings.Contains(page, "only its newest message can be answered again") {
		t.Errorf("a third press: %.400s", page)
	}
	// Answered messages are not answered again from here.
	if page := b.retry(id, w.lastRun(id)); !strings.Contains(page, "This message has an answer") {
		t.Errorf("retry of an answer: %.600s", page)
	}
}

func TestRetryWorksInTheOperatorsOwnConversationAndNotForPrograms(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	b := w.browser()
	refuse := llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key")
	model.Script(refuse)
	w.chatEvents(map[string]any{"message": "mine", "session_id": "mine"}, nil)
	id := sessionOf(t, w, "mine")
	model.Script(llmtest.Say("Yours."))
	b.retry(id, w.lastRun(id))
	w.until("it is answered", func() bool { return strings.Contains(b.page("/admin/chats/"+id), "Yours.") })

	ada := w.guest("Ada")
	model.Script(refuse)
	w.chatEvents(map[string]any{"message": "hers", "session_id": "hers"}, w.keyOf(ada, core.Sandboxed, "chat"))
	var hers string
	if err := w.app.db.Get(t.Context(), &hers, `SELECT session_id FROM runs WHERE user_id = $1 AND bot = 'api'`, w.user(ada)); err != nil {
		t.Fatal(err)
	}
	if page := b.retry(hers, w.lastRun(hers)); !strings.Contains(page, "the program can send it again") {
		t.Errorf("%.600s", page)
	}
}

func TestOverviewRaisesAFailingModelUntilItAnswers(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.ModelFallbacks, c.RateLimit = values.List{"local/quote"}, values.Rate{}
	})
	ada, b := w.guest("Ada"), w.browser()
	w.replies(ada, "hello")
	w.quiet()
	if page := b.page("/admin"); strings.Contains(page, "Do the models answer?") {
		t.Error("the overview raises a model that answers")
	}
	refuse := llmtest.Refuse(401, "no", "invalid_request_error", "invalid_api_key")
	model.Script(refuse, refuse)
	for range 2 { // the fallback answers: without the overview no one would notice
		w.replies(ada, "How long should green tea brew?")
		w.quiet()
	}
	page := b.page("/admin")
	for _, want := range []string{"Do the models answer?", "1 model fails", "<bdi>openai/fake-1</bdi> refuses our key since <time datetime=", " UTC</time>, 2 messages affected; check GATEHOUSE_OPENAI_API_KEY"} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
	if v := w.metric("gatehouse_model_failing", "model", "openai/fake-1"); v != 1 {
		t.Errorf("gatehouse_model_failing is %v, want 1", v)
	}
	w.replies(ada, "hello again")
	w.quiet()
	if page := b.page("/admin"); strings.Contains(page, "Do the models answer?") || w.metric("gatehouse_model_failing", "model", "openai/fake-1") != 0 {
		t.Error("the overview still raises a model that has answered")
	}
}
