package live_test

import (
	"log/slog"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
)

func load(t *testing.T) *configs.Config {
	t.Helper()
	c, err := configs.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAStoredSettingThatIsInvalidByNowHindersNoOther(t *testing.T) {
	t.Setenv("GATEHOUSE_VAULT_PATH", t.TempDir())
	t.Setenv("GATEHOUSE_MODEL", "local/quote")
	t.Setenv("GATEHOUSE_OPENAI_API_KEY", "sk-test")
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	by := core.Actor{Via: "panel"}
	open := func() *live.Settings {
		t.Helper()
		s, err := live.Open(t.Context(), load(t), db, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	set := func(s *live.Settings, name, value string) error {
		return s.Change(t.Context(), by, live.Change{Subject: name, Edit: func(ch *configs.Changes) { ch.Settings[name] = value }})
	}
	if err := set(open(), "MODEL", "openai/gpt-5"); err != nil {
		t.Fatal(err)
	}

	t.Setenv("GATEHOUSE_OPENAI_API_KEY", "")
	s := open()
	if got := s.Now().Model; got != "local/quote" {
		t.Fatalf("without its key the model is %q", got)
	}
	closed := &configs.BotPolicy{DMPolicy: "disabled", DMTrust: "sandboxed", GroupTrust: "sandboxed"}
	if err := s.Change(t.Context(), by, live.Change{Subject: "bot", Edit: func(ch *configs.Changes) { ch.Bots["telegram"] = configs.BotChange{Policy: closed} }}); err != nil {
		t.Errorf("a bot is not closed to strangers: %v", err)
	}
	if err := set(s, "BUSY_MODE", "queue"); err != nil {
		t.Errorf("another setting is refused: %v", err)
	}
	if got := s.Now(); got.TelegramDMPolicy != "disabled" || got.BusyMode != "queue" || got.Model != "local/quote" {
		t.Errorf("in effect: policy %q, busy mode %q, model %q", got.TelegramDMPolicy, got.BusyMode, got.Model)
	}
	if err := set(s, "MODEL", "openai/gpt-5-mini"); core.KindOf(err) != core.Invalid {
		t.Errorf("a model without its key: %v, want it refused", err)
	}

	t.Setenv("GATEHOUSE_OPENAI_API_KEY", "sk-test")
	if got := open().Now(); got.Model != "openai/gpt-5" || got.BusyMode != "queue" {
		t.Errorf("with the key again: model %q, busy mode %q", got.Model, got.BusyMode)
	}
}
