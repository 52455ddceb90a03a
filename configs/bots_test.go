package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gatehouse/configs/values"
)

const (
	tokenA = "111111:topsecret-a"
	tokenB = "222222:topsecret-b"
	tokenD = "topsecretaccount.topsecret.d"
)

// botsFile writes one and gives a configuration that names it.
func botsFile(t *testing.T, text string) (*Config, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bots.yaml")
	put(t, path, text)
	c := Default()
	c.BotsFile = path
	return c, path
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBotsOfTheFileAreAddedToThoseOfTheSettings(t *testing.T) {
	c, path := botsFile(t, `bots:
  - name: support
    platform: telegram
    token_file: support.token
    dm_policy: allowlist
    allowed_users: [12345678, "23456789"]
    dm_trust: vault
  - {name: guild, platform: discord, token: `+tokenD+`, api_url: "http://127.0.0.1:8082/", group_trust: vault}
`)
	beside := put(t, filepath.Join(filepath.Dir(path), "support.token"), tokenA+"\n")
	c.TelegramToken, c.TelegramApiURL, c.DMTrust = values.NewSecret(tokenB), "http://127.0.0.1:1", "sandboxed"
	got, err := c.ReadBots(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Bot{
		{Name: "telegram", Platform: "telegram", APIURL: "http://127.0.0.1:1", DMPolicy: "pairing", DMTrust: "sandboxed", GroupTrust: "sandboxed", Where: "GATEHOUSE_TELEGRAM_TOKEN"},
		{Name: "support", Platform: "telegram", TokenFile: beside, APIURL: "http://127.0.0.1:1", DMPolicy: "allowlist", AllowedUsers: values.List{"12345678", "23456789"},
			DMTrust: "vault", GroupTrust: "sandboxed", Where: path + ":2", InFile: true},
		{Name: "guild", Platform: "discord", APIURL: "http://127.0.0.1:8082", DMPolicy: "pairing", DMTrust: "sandboxed", GroupTrust: "vault", Where: path + ":8", InFile: true},
	}
	for i, token := range []string{tokenB, tokenA, tokenD} {
		if got[i].Token.Reveal() != token {
			t.Errorf("%s has another token", got[i].Name)
		}
		got[i].Token = values.Secret{}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("bots\n%+v, want\n%+v", got, want)
	}
}

func TestADefaultBotsFileMayBeMissingANamedOneMayNot(t *testing.T) {
	vault := t.TempDir()
	environment(t, "GATEHOUSE_VAULT_PATH="+vault)
	if _, err := LoadAll(); err != nil {
		t.Error(err)
	}
	environment(t, "GATEHOUSE_VAULT_PATH="+vault, "GATEHOUSE_BOTS_FILE="+vault+"/not-there.yaml")
	if _, err := LoadAll(); err == nil || !strings.Contains(err.Error(), "GATEHOUSE_BOTS_FILE") {
		t.Errorf("a named file that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(vault, ".parachute"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(vault, ".parachute", "bots.yaml"), "bots: [{name: a, platform: telegram, token: '"+tokenA+"'}]")
	environment(t, "GATEHOUSE_VAULT_PATH="+vault)
	c, err := LoadAll()
	if err != nil || len(c.Secrets()) != 1 || c.Secrets()[0].Reveal() != tokenA {
		t.Errorf("the default file: %v", err)
	}
	environment(t, "GATEHOUSE_VAULT_PATH="+vault, "GATEHOUSE_BOTS_FILE=off")
	if c, err := LoadAll(); err != nil || len(c.Secrets()) != 0 {
		t.Errorf("off: %v", err)
	}
}

// A bot cannot have a name that stands for something else in addresses, on the command line or in
// metrics.
func TestABotOfTheFileCannotHaveAReservedName(t *testing.T) {
	for _, name := range []string{"api", "schedule", "all", "off", "other", "pairing", "access", "status"} {
		c, _ := botsFile(t, "bots:\n  - name: "+name+"\n    platform: telegram\n    token: "+tokenA+"\n")
		if _, err := c.ReadBots(nil); err == nil || !strings.Contains(err.Error(), name+" is the name of something else") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every fault is told with its line, all at once, and no value is repeated.
func TestEveryFaultOfTheBotsFileIsReportedByLineAndWithoutValues(t *testing.T) {
	c, path := botsFile(t, `bots:
  - name: Topsecret!
    platform: topsecret
    token: `+tokenA+`
    token_file: topsecret
  - name: telegram
    platform: discord
    tokenfile: x
    dm_policy: topsecret
    dm_trust: full
    group_trust: topsecret
    api_url: http://topsecret/with/path
    allowed_users: [topsecret, -1]
  - name: twice
    platform: telegram
    token: topsecret
  - name: twice
    token_file: nowhere
  - topsecret
  - name: [topsecret]
    allowed_users: topsecret
    ? topsecret-key
    : topsecret
bats: topsecret
`)
	_, err := c.ReadBots(nil)
	var p Problems
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	text := p.Error()
	if strings.Contains(strings.ReplaceAll(text, path, ""), "opsecret") {
		t.Errorf("a value is repeated:\n%s", text)
	}
	for _, want := range []string{":2: a name is", ":3: platform is one of telegram, discord", ":4: token and token_file", ":6: telegram is the name of something else",
		":8: the field tokenfile is not known; did you mean token_file?", ":6: this bot has no token_file", ":9: dm_policy is one of", ":10: dm_trust is one of sandboxed, vault", ":11: group_trust",
		":12: api_url is", ":13: this is not a numeric", ":16: the token does not look like", ":17: the bot of line 14", ":17: this bot has no platform",
		":19: a bot has fields", ":20: name wants one plain value", ":21: allowed_users is a list", ":22: this field is not known", ":24: the only word"} {
		if !strings.Contains(text, path+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestInvalidYAMLIsReportedByLineWithoutItsText(t *testing.T) {
	for _, text := range []string{"bots:\n  - name: \"topsecret", "bots:\n\t- topsecret: topsecret", "bots: [topsecret\nx: {", "bots: {a: topsecret, a: topsecret}", "bots:\n- &x topsecret\n- *y",
		"topsecret", "- topsecret", "bots: []\n---\nbots: []", "bots: topsecret", "bots:\n  - name: a\n   platform: topsecret\n", "bots: !!binary topsecret", "%topsecret\n---\na", "\x00topsecret"} {
		c, path := botsFile(t, text)
		_, err := c.ReadBots(nil)
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), path, ""), "topsecret") || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "# nothing yet\n", "bots:\n", "bots: []"} {
		c, _ := botsFile(t, text)
		if bots, err := c.ReadBots(nil); err != nil || len(bots) != 0 {
			t.Errorf("%q: %v, %v", text, bots, err)
		}
	}
	c, _ := botsFile(t, strings.Repeat("#", maxBotsFile+1))
	if _, err := c.ReadBots(nil); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a huge file: %v", err)
	}
	c, _ = botsFile(t, "bots:\n"+strings.Repeat("  - {}\n", MaxBots-1))
	if _, err := c.ReadBots(nil); err == nil || !strings.Contains(err.Error(), "at most 62") {
		t.Errorf("too many bots: %v", err)
	}
}

func TestTwoBotsOfOneAccountAreRefused(t *testing.T) {
	environment(t)
	c, path := botsFile(t, "bots:\n- {name: a, platform: telegram, token: '"+tokenA+"'}\n- {name: b, platform: telegram, token: '111111:another'}\n- {name: c, platform: telegram, token: '"+tokenB+"'}\n")
	c.TelegramToken = values.NewSecret(tokenB)
	p := c.loadBots()
	if len(p) != 2 || p[0].Name != path+":3" || !strings.Contains(p[0].Fault, "the bot a:") || p[1].Name != path+":4" || !strings.Contains(p[1].Fault, "the bot telegram:") {
		t.Errorf("%v", p)
	}
	bots, err := c.ReadBots(nil)
	if err != nil || len(bots) != 4 || bots[2].Fault == "" || bots[2].Token.IsSet() || bots[1].Fault != "" {
		t.Errorf("%+v, %v", bots, err)
	}
}

func TestABotsFileThatOthersMayWriteOrWithReadableSecretsIsRefused(t *testing.T) {
	c, path := botsFile(t, "bots: [{name: a, platform: telegram, token: '"+tokenA+"'}]")
	d, apart := botsFile(t, "bots: [{name: a, platform: telegram, token_file: a.token}]")
	put(t, filepath.Join(filepath.Dir(apart), "a.token"), tokenA)
	for mode, ok := range map[os.FileMode][2]bool{0o600: {true, true}, 0o400: {true, true}, 0o440: {true, true}, 0o644: {false, true}, 0o660: {false, false}, 0o602: {false, false}} {
		for i, x := range []struct {
			c    *Config
			path string
		}{{c, path}, {d, apart}} {
			if err := os.Chmod(x.path, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := x.c.ReadBots(nil); (err == nil) != ok[i] || err != nil && !strings.Contains(err.Error(), "chmod 600 '"+x.path+"'") {
				t.Errorf("mode %04o, file %d: %v", mode, i, err)
			}
		}
	}
}

// While a gateway runs, what is wrong with one token is that bot's alone, and
// what is wrong with the file leaves its bots as they were, with fresh tokens.
func TestBotsAreReadAgainWhileTheGatewayRuns(t *testing.T) {
	dir := t.TempDir()
	first, second := put(t, filepath.Join(dir, "first"), tokenA), put(t, filepath.Join(dir, "second"), tokenB)
	path := put(t, filepath.Join(dir, "bots.yaml"), "bots: [{name: b, platform: telegram, token_file: second}]")
	c := load(t, "GATEHOUSE_TELEGRAM_TOKEN_FILE="+first, "GATEHOUSE_BOTS_FILE="+path, "GATEHOUSE_VAULT_PATH="+dir)
	before, err := c.ReadBots(nil)
	if err != nil || len(before) != 2 {
		t.Fatal(before, err)
	}
	put(t, first, "111111:topsecret-rotated")
	put(t, second, "")
	after, err := c.ReadBots(before)
	if err != nil || after[0].Token.Reveal() != "111111:topsecret-rotated" || after[0].Fault != "" {
		t.Errorf("a rotated token: %+v, %v", after, err)
	}
	if after[1].Token.IsSet() || !strings.Contains(after[1].Fault, second) {
		t.Errorf("an empty token file: %+v", after[1])
	}
	put(t, first, "topsecret, not a token")
	if after, _ = c.ReadBots(before); after[0].Token.IsSet() || after[0].Fault == "" || strings.Contains(after[0].Fault, "topsecret") {
		t.Errorf("a malformed token: %+v", after[0])
	}
	put(t, path, "bots: {")
	put(t, second, "222222:fresh")
	after, err = c.ReadBots(before)
	if err == nil || len(after) != 2 || after[1].Name != "b" || after[1].Token.Reveal() != "222222:fresh" {
		t.Errorf("a broken file: %+v, %v", after, err)
	}
	// Whoever has put another token in place of the setting's keeps it.
	c.TelegramToken = values.NewSecret("333333:demo")
	if after, _ = c.ReadBots(before); after[0].Token.Reveal() != "333333:demo" || after[0].TokenFile != "" {
		t.Errorf("a token put in place: %+v", after[0])
	}
}

func TestTheExampleOfABotsFileIsValid(t *testing.T) {
	text, err := os.ReadFile("bots.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := botsFile(t, string(text))
	bots, err := c.ReadBots(nil)
	if err != nil || len(bots) != 3 || bots[1].DMPolicy != "allowlist" || len(bots[1].AllowedUsers) != 2 {
		t.Errorf("%+v, %v", bots, err)
	}
}

func FuzzBotsFile(f *testing.F) {
	for _, s := range []string{"", "bots:\n- {name: a, platform: telegram, token: x}", "bots: [", "? {a: b}\n: c", "bots: &x [*x]", "a: |\n  b\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := Default()
		r := &botsReader{c: c, path: "bots.yaml", names: map[string]int{}}
		if bots := r.file([]byte(s)); len(bots) > MaxBots {
			t.Errorf("%d bots", len(bots))
		}
	})
}
