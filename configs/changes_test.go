package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs/values"
)

func TestThePanelOverridesTheEnvironment(t *testing.T) {
	t.Setenv("GATEHOUSE_DM_TRUST", "vault")
	t.Setenv("GATEHOUSE_TELEGRAM_TOKEN", "1:abc")
	t.Setenv("GATEHOUSE_VAULT_PATH", t.TempDir())
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("2:def\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := c.With(Changes{Settings: map[string]string{"DM_TRUST": "sandboxed", "BUDGET_DAY": "$30", "BUSY_MODE": "queue"}, Bots: map[string]BotChange{
		"telegram": {Policy: &BotPolicy{DMPolicy: "allowlist", AllowedUsers: values.List{"5", "6"}, DMTrust: "vault", GroupTrust: "sandboxed"}, TokenFile: file, Off: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if next.DMTrust != "sandboxed" || next.BudgetDay.MicroUSD != 30_000_000 || next.BusyMode != "queue" || next.Source("DM_TRUST") != SourcePanel || next.TelegramDMPolicy != "allowlist" {
		t.Errorf("%+v", next)
	}
	if c.DMTrust != "vault" || c.Source("DM_TRUST") != SourceEnvironment || c.TelegramDMPolicy != "pairing" {
		t.Error("the given configuration was changed, too")
	}
	bots, err := next.ReadBots(nil)
	if err != nil || len(bots) != 1 {
		t.Fatalf("%+v %v", bots, err)
	}
	if b := bots[0]; b.Token.Reveal() != "2:def" || b.TokenFile != file || b.DMPolicy != "allowlist" || b.AllowedUsers.String() != "5,6" || b.DMTrust != "vault" || !b.Off {
		t.Errorf("the bot %+v", b)
	}
	if bots, _ = c.ReadBots(nil); bots[0].Token.Reveal() != "1:abc" || bots[0].Off {
		t.Errorf("as configured it is %+v", bots[0])
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if bots, err = next.ReadBots(nil); err != nil || bots[0].Fault == "" || bots[0].Token.IsSet() {
		t.Errorf("without its file the bot is %+v, %v", bots[0], err)
	}
}

func TestWhatThePanelCanNotSetNamesItsField(t *testing.T) {
	vault := t.TempDir()
	t.Setenv("GATEHOUSE_VAULT_PATH", vault)
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(vault, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(vault, "token"), filepath.Join(outside, "link")); err != nil {
		t.Fatal(err)
	}
	good := BotPolicy{DMPolicy: "pairing", DMTrust: "vault", GroupTrust: "vault"}
	policy := func(change func(*BotPolicy)) Changes {
		p := good
		change(&p)
		return Changes{Bots: map[string]BotChange{"x": {Policy: &p}}}
	}
	for says, ch := range map[string]Changes{
		"DM_TRUST: \"full\" is not one of":   {Settings: map[string]string{"DM_TRUST": "full"}},
		"BUDGET_DAY: \"lots\" is neither":    {Settings: map[string]string{"BUDGET_DAY": "lots"}},
		"ADDR: it cannot be changed here":    {Settings: map[string]string{"ADDR": "0.0.0.0:1"}},
		"policy: \"all\" is not one of":      policy(func(p *BotPolicy) { p.DMPolicy = "all" }),
		"allowed users: \"ada\" is not":      policy(func(p *BotPolicy) { p.AllowedUsers = values.List{"ada"} }),
		"level of direct messages: \"full\"": policy(func(p *BotPolicy) { p.DMTrust = "full" }),
		"level of groups: \"\"":              policy(func(p *BotPolicy) { p.GroupTrust = "" }),
		"token file: it lies in the vault":   {Bots: map[string]BotChange{"x": {TokenFile: filepath.Join(vault, "token")}}},
		"token file: it lies in the vault,":  {Bots: map[string]BotChange{"x": {TokenFile: filepath.Join(outside, "link")}}},
		"token file: give the whole path":    {Bots: map[string]BotChange{"x": {TokenFile: "token"}}},
	} {
		if _, err := c.With(ch); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%q, want %q", err, says)
		}
	}
}

func TestEffectSaysWhatCanBeChangedWithoutARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("1:abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEHOUSE_VAULT_PATH", t.TempDir())
	t.Setenv("GATEHOUSE_TELEGRAM_TOKEN_FILE", file)
	t.Setenv("GATEHOUSE_DISCORD_TOKEN", "MTk4NjIyNDgzNDcx.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs")
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields() {
		changeable := slices.Contains(append(Changeable(), "LOG_LEVEL", "TELEGRAM_TOKEN"), f.short())
		if got := c.Effect(f.short()); changeable != (got != AfterRestart) || got == "" {
			t.Errorf("%s takes effect %q", f.short(), got)
		}
	}
}

func TestBotsOfThePanelAreReadBehindThoseThatAreConfigured(t *testing.T) {
	t.Setenv("GATEHOUSE_VAULT_PATH", t.TempDir())
	t.Setenv("GATEHOUSE_TELEGRAM_TOKEN", "1:abc")
	t.Setenv("GATEHOUSE_TELEGRAM_API_URL", "http://127.0.0.1:1")
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	added := func(names ...string) Changes {
		ch := Changes{Bots: map[string]BotChange{}}
		for _, name := range names {
			ch.Bots[name] = BotChange{Added: &AddedBot{Platform: "telegram"}, Policy: &BotPolicy{DMPolicy: "open", DMTrust: "vault", GroupTrust: "sandboxed"}}
		}
		return ch
	}
	b, err := c.NewBot("support", "telegram", "2:def")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.StoreToken(); err != nil {
		t.Fatal(err)
	}
	next, err := c.With(added("support", "telegram", "lost"))
	if err != nil {
		t.Fatal(err)
	}
	bots, err := next.ReadBots(nil)
	if err != nil || len(bots) != 3 {
		t.Fatalf("%+v %v", bots, err)
	}
	if b := bots[0]; b.Name != "telegram" || b.Added || b.Token.Reveal() != "1:abc" || b.DMPolicy != "pairing" {
		t.Errorf("the configured bot is %+v", b)
	}
	if b := bots[1]; b.Name != "lost" || b.Fault == "" || b.Token.IsSet() {
		t.Errorf("without a token the bot is %+v", b)
	}
	if b := bots[2]; b.Name != "support" || !b.Added || b.Token.Reveal() != "2:def" || b.DMPolicy != "open" || b.DMTrust != "vault" || b.APIURL != "http://127.0.0.1:1" || b.TokenFile != c.TokenOf("support") {
		t.Errorf("the added bot is %+v", b)
	}
	if bots, _ = c.ReadBots(nil); len(bots) != 1 {
		t.Errorf("as configured there are %d bots", len(bots))
	}
	var many []string
	for i := range 80 {
		many = append(many, "bot-"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	if next, err = c.With(added(many...)); err != nil {
		t.Fatal(err)
	}
	if bots, _ = next.ReadBots(nil); len(bots) != MaxBots {
		t.Errorf("%d bots, want at most %d", len(bots), MaxBots)
	}
	for _, name := range []string{"", "Support", "../x", "api", "schedule", "pairing", "access", "status", "discord", "a b"} {
		if _, err := c.With(added(name)); err == nil {
			t.Errorf("a bot named %q is taken", name)
		}
		if _, err := c.NewBot(name, "telegram", "2:def"); err == nil || !strings.HasPrefix(err.Error(), "name: ") {
			t.Errorf("a new bot named %q: %v", name, err)
		}
	}
	if _, err := c.NewBot("x", "telegram", "s3cret token"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a token that is none: %v", err)
	}
}
