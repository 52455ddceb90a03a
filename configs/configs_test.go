package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/configs/values"
)

var update = flag.Bool("update", false, "write gatehouse.env.example anew")

// environment empties the process's environment of our names, sets the given
// ones and puts all back when the test ends.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, Prefix+"_") || name == "VAULT_PATH" || name == "PORT" {
			t.Setenv(name, value) // has it restored
			_ = os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", "/home/someone")
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

func load(t *testing.T, pairs ...string) *Config {
	t.Helper()
	environment(t, pairs...)
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func problems(t *testing.T, pairs ...string) Problems {
	t.Helper()
	environment(t, pairs...)
	c, err := Load()
	var p Problems
	if !errors.As(err, &p) || c != nil {
		t.Fatalf("Load with %q = %v, %v; want problems", pairs, c, err)
	}
	return p
}

func TestDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	c := load(t)
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"vault", c.VaultPath, "/home/someone/Gatehouse"},
		{"database", c.DatabasePath(), "/home/someone/Gatehouse/Chat/sessions.db"},
		{"address", c.Addr, "127.0.0.1:3333"},
		{"localhost", c.LocalhostAccess, "off"},
		{"platform", c.TelegramApiURL, "https://api.telegram.org"},
		{"policy", c.TelegramDMPolicy, "pairing"},
		{"preset", c.DMTrust + " " + c.GroupTrust, "sandboxed sandboxed"},
		{"busy", c.BusyMode, "collect"},
		{"rate", c.RateLimit, values.Rate{N: 10, Per: time.Minute}},
		{"pace", c.Pace, values.Switch(true)},
		{"runs", c.LimitRuns, 64},
		{"run time", c.LimitRunTime, 30 * time.Minute},
		{"silence", c.LimitSilence, 5 * time.Minute},
		{"tokens", c.LimitOutputTokens, 16000},
		{"level", c.LogLevel.Level(), slog.LevelInfo},
		{"drain", c.DrainTimeout, 30 * time.Second}, {"retention", c.RetentionDays, 0},
		{"no model, metrics address, log format", c.Model + c.OpenaiBaseURL + c.MetricsAddr + c.LogFormat, ""},
		{"no secrets", c.AdminPassword.IsSet() || c.TelegramToken.IsSet() || c.OpenaiAPIKey.IsSet(), false},
	} {
		if row.got != row.want {
			t.Errorf("%s: %v, want %v", row.name, row.got, row.want)
		}
	}
	if n := len(c.AllowedHosts) + len(c.CORSOrigins) + len(c.GuestRead) + len(c.ModelFallbacks) + len(c.TelegramAllowedUsers) + len(c.TrustedProxies); n != 0 {
		t.Errorf("the lists hold %d values, want none", n)
	}
	if d := Default(); !reflect.DeepEqual(c, d) {
		t.Errorf("Default differs from Load in an empty environment:\n%s", cmp.Diff(c.Redacted(), d.Redacted()))
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefaultReadsNoEnvironment(t *testing.T) {
	environment(t, "GATEHOUSE_ADDR=127.0.0.1:1", "VAULT_PATH=/elsewhere", "PORT=9", "GATEHOUSE_TELEGRAM_TOKEN=1:a")
	c := Default()
	if c.Addr != "127.0.0.1:3333" || c.VaultPath != "/home/someone/Gatehouse" || c.Port != 0 || c.TelegramToken.IsSet() {
		t.Errorf("Default took something from the environment: %v", c.Redacted())
	}
}

func TestEverySettingIsReadFromItsOwnName(t *testing.T) {
	values := map[string]string{
		"VAULT_PATH": "/v", "DATABASE_URL": "/d/x.db", "DATABASE_PASSWORD": "two words", "ADDR": "127.0.0.1:4000", "PORT": "4001",
		"ALLOWED_HOSTS": "a.example,b.example:8080", "CORS_ORIGINS": "https://a.example", "TRUSTED_PROXIES": "10.0.0.0/8,192.0.2.1",
		"LOCALHOST_ACCESS": "chat", "ADMIN_PASSWORD": "two pass words", "TELEGRAM_TOKEN": "12:ab_C-d",
		"TELEGRAM_API_URL": "http://127.0.0.1:8081", "TELEGRAM_DM_POLICY": "allowlist", "TELEGRAM_ALLOWED_USERS": "1,22",
		"DISCORD_TOKEN": "MTIz.ab-C.d_e", "DISCORD_API_URL": "http://127.0.0.1:8082", "DISCORD_DM_POLICY": "open", "DISCORD_ALLOWED_USERS": "3,44",
		"BOTS_FILE": "/etc/bots.yaml", "DM_TRUST": "vault", "GROUP_TRUST": "vault", "GUEST_READ": "Public/**", "BUSY_MODE": "queue",
		"RATE_LIMIT": "5/10s", "PACE": "off", "MODEL": "openai/m", "MODEL_FALLBACKS": "local/quote:30ms", "MODEL_WINDOWS": "anthropic/x=200000,openai/m=8192", "MODEL_PRICES": "anthropic/x=3:15,openai/m=0.2:0.6", "PROVIDERS_FILE": providersFile(t, ""), "COUNCIL": "openai/a,anthropic/b,judge=openai/c", "COUNCIL_WAIT": "7s", "COUNCIL_MAX_COST": "$0.25",
		"ANTHROPIC_API_KEY": "sk-2", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
		"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "CLAUDE_CLI": "/opt/claude", "CLAUDE_PROJECTS": "/home/x/.claude/projects", "LIMIT_RUNS": "3", "LIMIT_RUN_TIME": "1m",
		"LIMIT_SILENCE": "2m", "LIMIT_OUTPUT_TOKENS": "100", "LIMIT_ROUNDS": "7", "DEFAULT_AGENT": "researcher", "GUEST_MODEL": "local/quote", "TITLE_MODEL": "local/quote", "BUDGET_USER_DAY": "40000", "BUDGET_BOT_DAY": "$2.5", "BUDGET_DAY": "$20", "MEMORY_BUDGET": "50000", "SANDBOX": "container", "SANDBOX_IMAGE": "localhost/tools:1", "SANDBOX_CGROUP": "/sys/fs/cgroup/x", "MCP_ENV": "A_TOKEN,B", "SEARXNG_URL": "http://127.0.0.1:8888", "TRANSCRIBE_URL": "http://127.0.0.1:9000/v1", "TRANSCRIBE_COMMAND": "whisper-cli -f {file}", "TRANSCRIBE_MODEL": "base", "TRANSCRIBE_MINUTES": "30", "METRICS_ADDR": "127.0.0.1:9090", "LOG_LEVEL": "debug",
		"LOG_FORMAT": "json", "DRAIN_TIMEOUT": "5s", "BACKUP_PATH": "/srv/backups", "CONTENT_KEY_FILE": "/etc/content.key", "FILES_PERSON_MB": "5", "FILES_MB": "50", "ACTIVITY": "off", "MEMORY": "off", "INDEX": "off", "INDEX_MAX_MB": "70", "EMBED_URL": "http://127.0.0.1:9/v1", "EMBED_MODEL": "small", "EMBED_DIMENSIONS": "512", "EMBED_PREFIXES": "e5", "EMBED_API_KEY": "sk-3", "RETENTION_DAYS": "90",
	}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, Prefix+"_"+name+"="+value)
	}
	c := load(t, pairs...)
	values["ADDR"] = "127.0.0.1:4001" // PORT replaces its port
	for _, s := range c.Redacted() {
		short := strings.TrimPrefix(s.Name, Prefix+"_")
		want, ok := values[short]
		if !ok {
			t.Errorf("%s is not in this test", s.Name)
		}
		if f := s.Value; f != want && f != "[set]" {
			t.Errorf("%s = %q, want %q", s.Name, f, want)
		}
		if s.Source != SourceEnvironment {
			t.Errorf("%s comes from %s", s.Name, s.Source)
		}
		delete(values, short)
	}
	if len(values) > 0 {
		t.Errorf("no such settings: %v", values)
	}
	if c.TelegramToken.Reveal() != "12:ab_C-d" || c.OpenaiAPIKey.Reveal() != "sk-1" || c.AdminPassword.Reveal() != "two pass words" {
		t.Error("a secret was not read as it is")
	}
}

func TestAmbientVariablesStayUnread(t *testing.T) {
	ambient := []string{
		"OPENAI_API_KEY=leak", "OPENAI_BASE_URL=http://leak", "ANTHROPIC_API_KEY=leak", "TELEGRAM_TOKEN=1:leak", "DISCORD_TOKEN=leak",
	}
	for _, f := range fields() {
		if f.bare() == "" {
			ambient = append(ambient, f.short()+"=leak")
		}
	}
	c := load(t, ambient...)
	for _, s := range c.Redacted() {
		if s.Source != SourceDefault || strings.Contains(s.Value, "leak") {
			t.Errorf("%s was read from a variable without our prefix", s.Name)
		}
	}
	if !reflect.DeepEqual(c, Default()) {
		t.Error("an ambient variable changed the configuration")
	}
}

func TestOnlyVaultPathAndPortAreReadWithoutPrefix(t *testing.T) {
	var bare []string
	for _, f := range fields() {
		if f.bare() != "" {
			bare = append(bare, f.bare())
		} else if f.Tag.Get("split_words") != "true" {
			t.Errorf("%s has neither split_words nor a name of its own", f.StructField.Name)
		}
	}
	if got := strings.Join(bare, " "); got != "VAULT_PATH PORT" {
		t.Errorf("read without prefix: %s", got)
	}
	c := load(t, "VAULT_PATH=/from/vault_path", "PORT=8080")
	if c.VaultPath != "/from/vault_path" || c.Addr != "127.0.0.1:8080" || c.Source("PORT") != SourceEnvironment {
		t.Errorf("VAULT_PATH and PORT were not read: %s %s", c.VaultPath, c.Addr)
	}
	if p := problems(t, "PORT=eighty"); p[0].Name != "PORT" || p[0].Example != "PORT=8080" {
		t.Errorf("a fault in PORT is reported as %v", p)
	}
	if c = load(t, "PORT=8080", "GATEHOUSE_PORT="); c.Port != 8080 {
		t.Error("an empty GATEHOUSE_PORT hides PORT")
	}
	c = load(t, "VAULT_PATH=/ambient", "GATEHOUSE_VAULT_PATH=~/ours", "PORT=1", "GATEHOUSE_PORT=2")
	if c.VaultPath != "/home/someone/ours" || c.Addr != "127.0.0.1:2" {
		t.Errorf("the prefixed name does not win: %s %s", c.VaultPath, c.Addr)
	}
}

func TestPathsBecomeAbsoluteAndAnUnknownHomeIsReported(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if c := load(t, "VAULT_PATH=notes"); c.VaultPath != filepath.Join(here, "notes") {
		t.Errorf("a relative path became %s", c.VaultPath)
	}
	c := load(t)
	c.VaultPath = "~/Gatehouse-demo"
	if err := c.Validate(); err != nil || c.VaultPath != "/home/someone/Gatehouse-demo" {
		t.Errorf("after Validate: %s, %v", c.VaultPath, err)
	}
	problems(t, "VAULT_PATH=~someone/notes")
	file := filepath.Join(t.TempDir(), "notes.md")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p := problems(t, "VAULT_PATH="+file); len(p) != 1 || !strings.Contains(p[0].String(), "notes.md is a file, and the vault is a directory") {
		t.Errorf("a vault that is a file: %v", p)
	}
	if p := problems(t, "HOME="); len(p) != 1 || p[0].Name != "GATEHOUSE_VAULT_PATH" {
		t.Errorf("without a home folder: %v", p)
	}
}

func TestAVariableSetToNothingIsNotSet(t *testing.T) {
	var pairs []string
	for _, f := range fields() {
		pairs = append(pairs, f.Name+"=")
	}
	if c := load(t, pairs...); !reflect.DeepEqual(c, Default()) {
		t.Errorf("%v", c.Redacted())
	}
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	file := func(text string) string {
		p := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, f := range fields() {
		if !f.secret() {
			continue
		}
		value := "12:from-file"
		if f.short() == "DISCORD_TOKEN" {
			value = "from.a.file"
		}
		c := load(t, f.Name+"_FILE="+file(value+"\r\n"))
		if got := f.in(c).Interface().(values.Secret).Reveal(); got != value || c.Source(f.short()) != SourceFile {
			t.Errorf("%s_FILE: got %q from %s", f.Name, got, c.Source(f.short()))
		}
		for name, pairs := range map[string][]string{
			"no file": {f.Name + "_FILE=/nonexistent/file"},
			"empty":   {f.Name + "_FILE=" + file("\n")},
			"large":   {f.Name + "_FILE=" + file(strings.Repeat("x", 16<<10+1))},
			"both":    {f.Name + "_FILE=" + file("12:topsecret"), f.Name + "=12:topsecret"},
		} {
			p := problems(t, pairs...)
			if len(p) != 1 || !strings.HasPrefix(p[0].Name, f.Name) || p[0].Example == "" || strings.Contains(p.Error(), "topsecret") {
				t.Errorf("%s, %s: %v", f.Name, name, p)
			}
		}
	}
}

func TestEveryProblemIsReportedAtOnceWithNameFaultAndExample(t *testing.T) {
	bad := map[string]string{
		"DATABASE_URL": "postgres://u:topsecret@h/db", "ADDR": "nonsense", "ADMIN_PASSWORD": strings.Repeat("topsecret", 30), "PORT": "eighty", "ALLOWED_HOSTS": "https://x", "CORS_ORIGINS": "*",
		"TRUSTED_PROXIES": "proxy", "LOCALHOST_ACCESS": "yes", "TELEGRAM_TOKEN": "topsecret", "TELEGRAM_API_URL": "api.telegram.org",
		"TELEGRAM_DM_POLICY": "all", "TELEGRAM_ALLOWED_USERS": "@name",
		"DISCORD_TOKEN": "Bot topsecret", "DISCORD_API_URL": "discord.com", "DISCORD_DM_POLICY": "all", "DISCORD_ALLOWED_USERS": "name", "DM_TRUST": "full", "GROUP_TRUST": "root", "GUEST_READ": "../x",
		"BUSY_MODE": "drop", "RATE_LIMIT": "10", "PACE": "no", "MODEL": "gemini/x", "MODEL_FALLBACKS": "mistral/x", "MODEL_WINDOWS": "mistral/x=8192", "MODEL_PRICES": "mistral/x=1:2",
		"ANTHROPIC_BASE_URL": "http://u:topsecret@h", "OPENAI_API_KEY": "top secret", "CLAUDE_CLI": "~nobody/claude", "CLAUDE_PROJECTS": "~nobody/p", "LIMIT_RUNS": "0", "LIMIT_RUN_TIME": "30", "LIMIT_SILENCE": "-1s", "LIMIT_OUTPUT_TOKENS": "many", "LIMIT_ROUNDS": "0", "GUEST_MODEL": "mistral/x", "TITLE_MODEL": "mistral/x", "BUDGET_USER_DAY": "lots", "BUDGET_BOT_DAY": "-1", "BUDGET_DAY": "$1e9", "SANDBOX": "docker", "SANDBOX_IMAGE": "--privileged", "SANDBOX_CGROUP": "cpu", "MCP_ENV": "GATEHOUSE_ADMIN_PASSWORD", "SEARXNG_URL": "ftp://h", "TRANSCRIBE_URL": "ftp://h", "TRANSCRIBE_MINUTES": "-1",
		"METRICS_ADDR": ":x", "LOG_LEVEL": "loud", "LOG_FORMAT": "xml", "DRAIN_TIMEOUT": "11m", "FILES_PERSON_MB": "-1", "FILES_MB": "much", "ACTIVITY": "yes", "MEMORY": "yes", "INDEX": "maybe", "INDEX_MAX_MB": "-1", "EMBED_URL": "ftp://h", "EMBED_DIMENSIONS": "5000", "EMBED_PREFIXES": "some", "EMBED_API_KEY": "top secret", "RETENTION_DAYS": "-1",
	}
	var pairs []string
	for name, value := range bad {
		pairs = append(pairs, Prefix+"_"+name+"="+value)
	}
	p := problems(t, append(pairs, "GATEHOUSE_NONSENSE=topsecret")...)
	for _, one := range p {
		short := strings.TrimPrefix(one.Name, Prefix+"_")
		if one.Fault == "" || short != "NONSENSE" && !strings.HasPrefix(one.Example, one.Name+"=") {
			t.Errorf("%+v lacks a fault or an example", one)
		}
		delete(bad, short)
	}
	if len(bad) > 0 {
		t.Errorf("not reported: %v", bad)
	}
	for _, secret := range []string{"topsecret", "top secret"} {
		if strings.Contains(p.Error(), secret) {
			t.Errorf("a secret was printed:\n%s", p)
		}
	}
	if len(p) != 63 {
		t.Errorf("%d problems, want 63:\n%s", len(p), p)
	}
}

func TestExamplesAreValid(t *testing.T) {
	for _, f := range fields() {
		if f.example == "" || f.about == "" {
			t.Errorf("%s has no example or description", f.Name)
		}
		example := f.example
		if f.short() == "PROVIDERS_FILE" { // it is read
			example = providersFile(t, "")
		}
		load(t, f.Name+"="+example, "GATEHOUSE_OPENAI_API_KEY=sk-1", "GATEHOUSE_ANTHROPIC_API_KEY=sk-2")
	}
}

func TestAnUnknownNameIsAnErrorThatSuggestsTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"GATEHOUSE_TELEGRAM_TOKN":       "GATEHOUSE_TELEGRAM_TOKEN?",
		"GATEHOUSE_VAULTPATH":           "GATEHOUSE_VAULT_PATH?",
		"GATEHOUSE_OPENAI_KEY_FILE":     "GATEHOUSE_OPENAI_API_KEY_FILE?",
		"GATEHOUSE_LOGLEVEL":            "GATEHOUSE_LOG_LEVEL?",
		"GATEHOUSE_TELEGRAM_APIURL":     "GATEHOUSE_TELEGRAM_API_URL?",
		"GATEHOUSE_LOG_LEVEL_FILE":      "not a setting",
		"GATEHOUSE_RETENTION":           "GATEHOUSE_RETENTION_DAYS?",
		"GATEHOUSE_ANTHROPIC_API_KEY_X": "GATEHOUSE_ANTHROPIC_API_KEY?",
	} {
		p := problems(t, name+"=topsecret")
		if name, _, ok := strings.Cut(want, "?"); ok && !strings.HasPrefix(p[0].Example, name+"=") {
			t.Errorf("the example for %s is %q", name, p[0].Example)
		}
		if len(p) != 1 || p[0].Name != name || !strings.Contains(p[0].Fault, want) || strings.Contains(p.Error(), "topsecret") {
			t.Errorf("%s: %v; want %q", name, p, want)
		}
	}
	load(t, "GATEHOUSE_TEST_ANYTHING=1", "GATEHOUSEKEEPER=1", "GATEHOUSE=1")
}

func TestAnUnknownNameIsFoundInAnyCase(t *testing.T) {
	for name, want := range map[string]string{"gatehouse_log_level": "GATEHOUSE_LOG_LEVEL", "Gatehouse_Addr": "GATEHOUSE_ADDR"} {
		t.Run(name, func(t *testing.T) {
			if p := problems(t, name+"=topsecret"); len(p) != 1 || p[0].Fault != "is not a setting; did you mean "+want+"?" {
				t.Errorf("%v", p)
			}
		})
	}
}

func TestAWrongChoiceListsTheChoicesAndNamesTheNearest(t *testing.T) {
	for setting, want := range map[string]string{
		"GATEHOUSE_SANDBOX=bubblewarp":    `"bubblewarp" is not one of auto, bubblewrap, container, none; did you mean bubblewrap?`,
		"GATEHOUSE_SANDBOX=Auto":          `"Auto" is not one of auto, bubblewrap, container, none; did you mean auto?`,
		"GATEHOUSE_SANDBOX=chroot":        `"chroot" is not one of auto, bubblewrap, container, none; for example`,
		"GATEHOUSE_DM_TRUST=full":         `"full" is not one of sandboxed, vault; for example`,
		"GATEHOUSE_LOG_LEVEL=trace":       `"trace" is not one of debug, info, warn, error`,
		"GATEHOUSE_PACE=yes":              `"yes" is neither on nor off`,
		"GATEHOUSE_TELEGRAM_DM_POLICY=op": `"op" is not one of pairing, allowlist, open, disabled; for example`,
		"GATEHOUSE_MODEL=antropic/claude": `"antropic/claude": the providers are anthropic, openai, local`,
	} {
		if p := problems(t, setting); len(p) != 1 || !strings.Contains(p.Error(), want) {
			t.Errorf("%s: %v; want %q", setting, p, want)
		}
	}
}

func TestTheAddressOfAPostgreSQLDatabaseHasAUserAndNoPassword(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:topsecret@h/db":                  "GATEHOUSE_DATABASE_PASSWORD_FILE",
		"postgres://u@h/db?password=topsecret":         "GATEHOUSE_DATABASE_PASSWORD_FILE",
		"postgresql://h/db":                            "names no user",
		"postgres://u@h:topsecret/db":                  "is not a URL",
		"postgres://u@h/d?password=100%topsecret":      "parameters that are not valid",
		"postgres://u@h/d?search_path=a,b&x=topsecret": "one schema",
		"host=h user=u password=topsecret":             "no path of a file",
		"postgres:/u:topsecret@h/d":                    "no path of a file",
	} {
		p := problems(t, "GATEHOUSE_DATABASE_URL="+url)
		if len(p) != 1 || !strings.Contains(p[0].Fault, want) || strings.Contains(p.Error(), "topsecret") {
			t.Errorf("%s: %v", url, p)
		}
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("topsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, "GATEHOUSE_DATABASE_URL=postgres://u@h:5432/db?sslmode=verify-full", "GATEHOUSE_DATABASE_PASSWORD_FILE="+file)
	if !c.OnServer() || c.DatabasePath() != "postgres://u@h:5432/db?sslmode=verify-full" || c.DatabasePassword.Reveal() != "topsecret" {
		t.Errorf("%t, %s, password %d bytes", c.OnServer(), c.DatabasePath(), len(c.DatabasePassword.Reveal()))
	}
	if text := fmt.Sprint(c.Redacted()); strings.Contains(text, "topsecret") {
		t.Errorf("the settings show the password: %s", text)
	}
	problems(t, "GATEHOUSE_DATABASE_URL=mysql://u:topsecret@h/db")
	if c := load(t, "GATEHOUSE_DATABASE_URL=~/x.db"); c.DatabasePath() != "/home/someone/x.db" {
		t.Errorf("database at %s", c.DatabasePath())
	}
}

func TestAnAddressBeyondLoopbackNeedsAnAdminPassword(t *testing.T) {
	if p := problems(t, "GATEHOUSE_ADMIN_PASSWORD=11 bytes: x"); len(p) != 1 || !strings.Contains(p[0].Fault, "at least 12") {
		t.Errorf("a password of nine characters: %v", p)
	}
	for _, addr := range []string{"0.0.0.0:3333", ":3333", "[::]:3333", "192.0.2.1:3333", "gateway.example:3333"} {
		p := problems(t, "GATEHOUSE_ADDR="+addr)
		if len(p) != 1 || p[0].Name != "GATEHOUSE_ADDR" || !strings.Contains(p[0].Fault, "ADMIN_PASSWORD") {
			t.Errorf("%s: %v", addr, p)
		}
		if c := load(t, "GATEHOUSE_ADDR="+addr, "GATEHOUSE_ADMIN_PASSWORD=topsecret topsecret"); c.Loopback() {
			t.Errorf("%s counts as loopback", addr)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "127.9.9.9:3333", "[::1]:3333", "localhost:3333"} {
		if c := load(t, "GATEHOUSE_ADDR="+addr); !c.Loopback() {
			t.Errorf("%s does not count as loopback", addr)
		}
	}
	c := Default()
	c.Addr = "0.0.0.0:3333"
	if c.Validate() == nil {
		t.Error("Validate lets a change through that Load refuses")
	}
}

func TestModels(t *testing.T) {
	key := "GATEHOUSE_OPENAI_API_KEY=sk-1"
	for _, model := range []string{"openai/gpt-4o-mini", "openai/org/model:tag", "local/quote", "local/quote:30ms"} {
		load(t, key, "GATEHOUSE_MODEL="+model, "GATEHOUSE_MODEL_FALLBACKS="+model)
	}
	for _, model := range []string{"anthropic/claude", "mistral/x", "gpt-4o", "openai/", "local/other", "local/quote:", "local/quote:5", "local/quote:2h", "openai/a b"} {
		problems(t, key, "GATEHOUSE_MODEL="+model)
	}
	problems(t, "GATEHOUSE_MODEL=openai/gpt-4o-mini")
	if p := problems(t, key, "GATEHOUSE_MODEL=anthropic/claude"); !strings.Contains(p[0].Fault, "GATEHOUSE_ANTHROPIC_API_KEY") {
		t.Error(p)
	}
	load(t, "GATEHOUSE_MODEL=anthropic/claude-sonnet-5", "GATEHOUSE_ANTHROPIC_API_KEY=sk-2")
	load(t, "GATEHOUSE_MODEL=anthropic/x", "GATEHOUSE_ANTHROPIC_BASE_URL=http://127.0.0.1:8080/")
	load(t, "GATEHOUSE_MODEL=openai/x", "GATEHOUSE_OPENAI_BASE_URL=http://127.0.0.1:11434/v1/")
	problems(t, "GATEHOUSE_MODEL_FALLBACKS="+strings.Repeat("local/quote,", maxFallbacks+1))
}

func TestASecretIsShownNowhere(t *testing.T) {
	c := load(t, "GATEHOUSE_TELEGRAM_TOKEN=99:topsecret", "GATEHOUSE_ADMIN_PASSWORD=topsecret topsecret", "GATEHOUSE_OPENAI_API_KEY=topsecret", "GATEHOUSE_ANTHROPIC_API_KEY=topsecret")
	if n := len(c.Secrets()); n != 4 {
		t.Errorf("%d secrets are known as such, want 4", n)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, c)
		fmt.Fprintf(&out, verb, *c)
		fmt.Fprintf(&out, verb, c.TelegramToken)
		fmt.Fprintf(&out, verb, &c.TelegramToken)
		fmt.Fprintf(&out, verb, struct{ hidden values.Secret }{c.TelegramToken})
	}
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&out, c.Redacted())
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", c, "token", c.TelegramToken)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "token", c.TelegramToken)
	if text := out.String(); strings.Contains(text, "topsecret") || strings.Contains(text, fmt.Sprintf("%x", "topsecret")) {
		t.Errorf("the secret is in:\n%s", text)
	}
	if got := fmt.Sprint(c.TelegramToken); got != "[set]" {
		t.Errorf("a secret that is set prints %q", got)
	}
	if s := values.NewSecret(""); s.IsSet() || fmt.Sprint(s) != "" {
		t.Error("an empty secret counts as set")
	}
}

// example is gatehouse.env.example as the struct would have it.
func example() string {
	var b strings.Builder
	b.WriteString("# Settings of Gatehouse. Every line shows a default or, where there is none, an\n" +
		"# example; take the # away to set one. A name that ends in _FILE names a file\n" +
		"# that holds the secret.\n")
	for _, f := range fields() {
		value := f.Tag.Get("default")
		note := ""
		if value == "" {
			value, note = f.example, " (no default)"
		}
		fmt.Fprintf(&b, "\n# %s%s\n#%s=%s\n", f.about, note, f.Name, values.Quote(value))
		if f.secret() {
			fmt.Fprintf(&b, "#%s_FILE=%s\n", f.Name, f.secretFile())
		}
	}
	return b.String()
}

func TestTheExampleFileEqualsTheStruct(t *testing.T) {
	if *update {
		if err := os.WriteFile("gatehouse.env.example", []byte(example()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("gatehouse.env.example")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), string(got)); diff != "" {
		t.Errorf("write it anew with: go test ./configs -run ExampleFile -update\n%s", diff)
	}
}

// uncommented returns the example file with every setting taken into use.
func uncommented(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("gatehouse.env.example")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^#(GATEHOUSE_)`).ReplaceAllString(string(b), "$1")
}

func TestEveryLineOfTheExampleFileIsReadAsAShellReadsIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gatehouse.env")
	if err := os.WriteFile(file, []byte(uncommented(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := readEnvFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", `set -a; . "$0"; env -0`, file)
	shell.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("the shell: %v\n%s", err, out)
	}
	ours, theirs := map[string]string{}, map[string]string{}
	for _, l := range lines {
		ours[l.Name] = l.Value
	}
	for pair := range strings.SplitSeq(string(out), "\x00") {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, Prefix) {
			theirs[name] = value
		}
	}
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Errorf("the shell reads the file in another way:\n%s", diff)
	}
	for _, f := range fields() {
		want := f.Tag.Get("default")
		if want == "" {
			want = f.example
		}
		if ours[f.Name] != want {
			t.Errorf("%s is %q in the file, want %q", f.Name, ours[f.Name], want)
		}
	}
}

// Lines of settings on the pages are copied into env files.
func TestAnEnvFileReadsTheLinesOfSettingsOnThePages(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	file, read := filepath.Join(t.TempDir(), "gatehouse.env"), 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile("(?m)^GATEHOUSE_[A-Z_]+=.*$|`GATEHOUSE_[A-Z_]+=[^`\n]*`").FindAllString(string(text), -1) {
			line = strings.Trim(line, "`")
			if strings.HasPrefix(line, testPrefix) || strings.Contains(line, " gatehouse ") {
				continue // for the command behind it
			}
			if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			lines, err := readEnvFile(file)
			if err != nil {
				t.Errorf("%s: %s: %v", page, line, err)
				continue
			}
			if bad := unknown([]string{lines[0].Name + "=" + lines[0].Value}); len(bad) > 0 {
				t.Errorf("%s: %v", page, bad)
			}
			read++
		}
	}
	if read < 15 {
		t.Errorf("only %d lines were found", read)
	}
}

func TestTheSettingsPageListsEverySettingWithItsDefault(t *testing.T) {
	page, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, about := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			name := strings.Trim(cells[1], " `")
			rows[name], about[name] = strings.Trim(cells[2], " `"), cells[3]
		}
	}
	for _, f := range fields() {
		want := f.Tag.Get("default")
		if got, ok := rows[f.Name]; !ok || got != want && !(want == "" && got == "–") {
			t.Errorf("docs/settings.md: %s has default %q (listed: %v), want %q", f.Name, got, ok, want)
		}
		if said := strings.Contains(about[f.Name], "Also as `…_FILE`"); said != f.secret() {
			t.Errorf("docs/settings.md: %s can be read from a file: %v, but the page says %v", f.Name, f.secret(), said)
		}
		delete(rows, f.Name)
	}
	for name := range rows {
		if strings.HasPrefix(name, Prefix+"_") {
			t.Errorf("docs/settings.md lists %s, which is no setting", name)
		}
	}
}

func TestTheSampleVaultAndPricesAreEmbedded(t *testing.T) {
	public, err := fs.Glob(SampleVault(), "Public/*.md")
	if err != nil || len(public) == 0 {
		t.Errorf("files in Public: %v, %v", public, err)
	}
	mine := Prices()
	if len(mine) == 0 {
		t.Fatal("no prices")
	}
	mine[0]++
	if bytes.Equal(mine, Prices()) {
		t.Error("a caller can change the prices of another")
	}
}
