package main

import (
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
)

// The first provider refuses the key, the second one answers: the person reads
// one answer, its cost is known, and doctor's check still names the fault.
func TestAChatIsAnsweredByTheOtherProviderWhenOneRefuses(t *testing.T) {
	const key = "sk-ant-0123456789"
	down := llmtest.New(t, llmtest.Options{Key: "another"})
	claude := anthropictest.New(t, anthropictest.Options{Key: key, Models: []string{"claude-sonnet-5"},
		Default: anthropictest.Reply{Thinking: []string{"let me see"}, Signature: anthropictest.Signed, Text: []string{"Hello ", "from the other one."}}})
	w := newWorld(t, func(cfg *configs.Config) {
		cfg.Model, cfg.OpenaiBaseURL, cfg.OpenaiAPIKey = "openai/fake-1", down.URL(), values.NewSecret("sk-refused")
		cfg.ModelFallbacks = values.List{"anthropic/claude-sonnet-5"}
		cfg.AnthropicBaseURL, cfg.AnthropicAPIKey = claude.URL(), values.NewSecret(key)
	})
	if got := w.replies(w.guest("Ada"), "hi"); got.Text != "Hello from the other one." {
		t.Errorf("answered %q", got.Text)
	}
	w.quiet()
	if n := w.metric("gatehouse_runs_total", "model", "anthropic/claude-sonnet-5", "outcome", "done"); n != float64(claude.Total()) {
		t.Errorf("%v runs counted for the model that answered", n)
	}
	if n := w.metric("gatehouse_cost_usd_total", "model", "anthropic/claude-sonnet-5"); n <= 0 {
		t.Errorf("it cost %v", n)
	}
	if strings.Contains(w.log.String(), key) || strings.Contains(w.log.String(), "sk-refused") {
		t.Error("a key is in the log")
	}
	if _, err := w.app.models.Now().Check(t.Context()); err == nil || !strings.Contains(err.Error(), "GATEHOUSE_OPENAI_API_KEY") {
		t.Errorf("the check passes over a refused key: %v", err)
	}
}

func TestEverySecretIsTakenOutOfTheLog(t *testing.T) {
	var b strings.Builder
	cfg := configs.Default()
	cfg.AnthropicAPIKey, cfg.OpenaiAPIKey = values.NewSecret("sk-ant-0123456789"), values.NewSecret("sk-0123456789")
	cfg.AdminPassword, cfg.TelegramToken = values.NewSecret("a-long-phrase"), values.NewSecret("99:short")
	log := logs.New(&b, cfg, true)
	for _, s := range cfg.Secrets() {
		log.Info("said " + s.Reveal())
	}
	for _, later := range []string{furtherToken(1), discordtest.DefaultToken} { // a token that came while it ran
		if log.Info("said " + later); strings.Contains(b.String(), later) {
			t.Errorf("%s is in the log", later)
		}
	}
	if n := strings.Count(b.String(), "[redacted]"); n != 6 || len(cfg.Secrets()) != 4 {
		t.Errorf("%d of 6 secrets were taken out:\n%s", n, b.String())
	}
}
