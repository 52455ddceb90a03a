package main

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/admin/settings"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// set changes settings of a section by its form and returns what the page says.
func (b *browser) set(section string, form url.Values) string {
	b.w.t.Helper()
	path := "/admin/settings/" + section
	_, body := b.submit(path, b.page(path), form)
	return body
}

// lastBody is what the newest request to the provider says.
func lastBody(model *llmtest.Server) string {
	all := model.Requests()
	return string(all[len(all)-1].Body)
}

// Who answers is changed in the panel for the very next message, kept over a
// restart, and taken back; what can't answer changes nothing.
func TestModelsAndTheAgentAreChangedForTheNextMessage(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "fake-2", "guests-1", "titles-1"}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey, c.RateLimit = fakeModel, model.URL(), values.NewSecret(modelKey), values.Rate{}
		c.Activity = false // its summaries would be the newest requests
	})
	w.puts(map[string]string{".parachute/agents/cook.md": "---\ndescription: Cooks.\n---\nYou are a cook of soups.\n"})
	boss, ada := w.boss(), w.guest("Ada")
	asks := func(what string, wants ...string) {
		t.Helper()
		w.replies(boss, what)
		w.quiet()
		for _, want := range wants {
			if !strings.Contains(lastBody(model), want) {
				t.Errorf("%s: the provider is asked %.300s, without %q", what, lastBody(model), want)
			}
		}
	}
	asks("one", `"fake-1"`)
	b := w.browser()
	if body := b.set("models", url.Values{"MODEL": {"openai/fake-2"}, "DEFAULT_AGENT": {"cook"}, "MODEL_FALLBACKS": {"local/quote"}}); !strings.Contains(body, "3 settings are changed") {
		t.Fatal(body)
	}
	asks("two", `"fake-2"`, "a cook of soups")
	if n := w.metric("gatehouse_runs_total", "model", "openai/fake-2", "outcome", "done"); n != 1 {
		t.Errorf("%v runs are counted for the new model", n)
	}
	if page := b.page("/admin/models"); !strings.Contains(page, "openai/fake-2") || strings.Contains(page, `id="m-openai/fake-1"`) {
		t.Error("the page Models does not show the new model")
	}

	for says, form := range map[string]url.Values{
		"MODEL: openai/nope ":                                                   {"MODEL": {"openai/nope"}},
		"MODEL_FALLBACKS: openai/nope ":                                         {"MODEL_FALLBACKS": {"local/quote, openai/nope"}},
		"MODEL: anthropic/x needs GATEHOUSE_ANTHROPIC":                          {"MODEL": {"anthropic/x"}},
		"GUEST_MODEL: &#34;cheap&#34;":                                          {"GUEST_MODEL": {"cheap"}},
		"DEFAULT_AGENT: no agent nobody can answer; there is vault-agent, cook": {"DEFAULT_AGENT": {"nobody"}},
	} {
		if body := b.set("models", form); !strings.Contains(body, "Nothing was saved.") || !strings.Contains(body, says) {
			t.Errorf("%v: the page does not say %q: %s", form, says, body)
		}
	}
	asks("three", `"fake-2"`, "a cook of soups")

	b.set("models", url.Values{"GUEST_MODEL": {"openai/guests-1"}, "TITLE_MODEL": {"openai/titles-1"}})
	w.replies(ada, "four")
	w.quiet()
	if !strings.Contains(lastBody(model), `"guests-1"`) {
		t.Errorf("a guest is answered by %.200s", lastBody(model))
	}
	w.replies(boss, "/new")
	w.replies(boss, "five")
	w.until("a title is asked for", func() bool { return strings.Contains(lastBody(model), `"titles-1"`) })

	w.again()
	asks("six", `"fake-2"`, "a cook of soups")
	b = w.browser()
	if body := b.set("models", url.Values{"reset": {"MODEL"}}); !strings.Contains(body, "Model is as configured again: "+fakeModel) {
		t.Fatal(body)
	}
	b.set("models", url.Values{"reset": {"DEFAULT_AGENT"}})
	asks("seven", `"fake-1"`)
	if strings.Contains(lastBody(model), "a cook of soups") {
		t.Error("the agent is still the one that was taken back")
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'setting.change' AND via = 'panel'`); n != 4 {
		t.Errorf("%d audit rows for four changes", n)
	}
}

// What guests read and how much people may write is changed for the very next
// message; those that wait go on when the limit is taken away.
func TestGuestFilesAndTheRateAreChangedForTheNextMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	const question = "How long should green tea brew?"
	if m := w.replies(ada, question); !strings.Contains(m.Text, "two minutes") {
		t.Fatalf("before: %q", m.Text)
	}
	w.quiet()
	b := w.browser()
	b.set("access", url.Values{"GUEST_READ": {"Nothing/**"}})
	if m := w.replies(ada, question); strings.Contains(m.Text, "two minutes") {
		t.Errorf("she is still quoted %q", m.Text)
	}
	w.quiet()
	if p, err := w.app.newPreviews().Preview(t.Context(), core.Sandboxed); err != nil || p.Files != 0 {
		t.Errorf("the preview shows %d files, %v", p.Files, err)
	}
	if body := b.set("access", url.Values{"GUEST_READ": {"Public/[**"}}); !strings.Contains(body, "GUEST_READ: ") || !strings.Contains(body, "Nothing was saved.") {
		t.Error("a glob that is none is taken")
	}
	b.set("access", url.Values{"reset": {"GUEST_READ"}})
	if m := w.replies(ada, question); !strings.Contains(m.Text, "two minutes") {
		t.Errorf("as configured again: %q", m.Text)
	}
	w.quiet()

	if body := b.set("limits", url.Values{"RATE_LIMIT": {"ten"}}); !strings.Contains(body, "RATE_LIMIT: ") {
		t.Error("a rate that is none is taken")
	}
	b.set("limits", url.Values{"RATE_LIMIT": {"1/1h"}})
	late := ada.Send("And black tea?")
	w.until("it waits", func() bool { return w.count(`SELECT count(*) FROM inbox WHERE state = 'limited'`) == 1 })
	b.set("limits", url.Values{"RATE_LIMIT": {"off"}})
	w.answers(ada.DM(), late.ID)
	w.quiet()
	if found := w.app.settings.Now().RateLimit; !found.Off() || w.app.settings.Now().Source("RATE_LIMIT") != configs.SourcePanel {
		t.Errorf("the rate is %s", found)
	}
}

// A key that is gone since takes its model's setting with it and nothing else:
// a bot that was stopped, or a policy that was closed, stays so.
func TestASettingThatCanNoLongerHoldTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, llmtest.Options{Key: modelKey})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey, c.TelegramDMPolicy = "local/quote", model.URL(), values.NewSecret(modelKey), "open"
	})
	v := settingsView{w.app}
	if err := v.Change(t.Context(), map[string]string{"MODEL": fakeModel, "BUSY_MODE": "queue"}, byPanel); err != nil {
		t.Fatal(err)
	}
	if err := v.SetPolicy(t.Context(), "telegram", botPolicy("pairing"), byPanel); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.cfg.OpenaiAPIKey, w.cfg.OpenaiBaseURL, w.cfg.Addr = values.Secret{}, "", "127.0.0.1:0"
	w.start()
	w.t.Cleanup(w.stop)
	if now := w.app.settings.Now(); now.Model != "local/quote" || now.BusyMode != "queue" {
		t.Errorf("the model is %q, the busy mode %q", now.Model, now.BusyMode)
	}
	ada := w.sim.NewUser("Ada")
	ada.Send("hello")
	w.hearsText(ada, "Your code is")
	w.logged("a value set in the panel is invalid", "MODEL: openai/fake-1 needs GATEHOUSE_OPENAI_API_KEY")
}

func botPolicy(dm string) *settings.BotPolicy {
	return &settings.BotPolicy{DMPolicy: dm, DMTrust: "sandboxed", GroupTrust: "sandboxed"}
}
