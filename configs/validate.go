package configs

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

type (
	// A Problem is one thing wrong with the configuration.
	Problem = check.Problem
	// Problems is everything wrong with the configuration; at least one thing.
	Problems = check.Problems
)

// Validate brings changed values into the form that Load leaves them in ("~/"
// and relative paths become absolute), then checks every value and how they
// fit together. Its error is a Problems.
func (c *Config) Validate() error {
	c.settle()
	if p := c.faults(func(string) bool { return false }); len(p) > 0 {
		return p
	}
	return nil
}

// settle brings values into the form that callers rely on: absolute paths and
// the port in its place. What cannot be settled is left to the checks.
func (c *Config) settle() {
	c.VaultPath = absolute(c.VaultPath)
	if c.DatabaseURL != "" && !strings.Contains(c.DatabaseURL, "://") {
		c.DatabaseURL = absolute(c.DatabaseURL)
	}
	if c.BotsFile != "" && c.BotsFile != "off" {
		c.BotsFile = absolute(c.BotsFile)
	}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && c.Source("PORT") != SourceDefault {
		c.Addr = net.JoinHostPort(host, strconv.Itoa(c.Port))
	}
	if c.BackupPath != "" {
		c.BackupPath = absolute(c.BackupPath)
	}
	if c.ContentKeyFile != "" {
		c.ContentKeyFile = absolute(c.ContentKeyFile)
	}
	if c.ClaudeCLI != "" {
		c.ClaudeCLI = absolute(c.ClaudeCLI)
	}
	if c.ClaudeProjects != "" {
		c.ClaudeProjects = absolute(c.ClaudeProjects)
	}
	if c.ProvidersFile != "" {
		c.ProvidersFile = absolute(c.ProvidersFile)
	}
	if c.providers.Path() != c.ProvidersFile {
		c.openProviders()
	}
	c.TelegramApiURL = strings.TrimRight(c.TelegramApiURL, "/")
	c.DiscordApiURL = strings.TrimRight(c.DiscordApiURL, "/")
	c.AnthropicBaseURL = strings.TrimRight(c.AnthropicBaseURL, "/")
	c.OpenaiBaseURL = strings.TrimRight(c.OpenaiBaseURL, "/")
}

func absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return path
		}
		path = home + rest
	}
	if strings.HasPrefix(path, "~") {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// faults finds what is wrong with values that could be read; skip names those
// that could not, and are reported already.
func (c *Config) faults(skip func(string) bool) Problems {
	var problems Problems
	checks := c.checks()
	for _, f := range fields() {
		if skip(f.Name) {
			continue
		}
		fault := f.bounds(c)
		if check := checks[f.short()]; fault == nil && check != nil {
			fault = check()
		}
		if fault != nil {
			problems = append(problems, *f.problem(fault.Error()))
		}
	}
	return problems
}

// bounds holds a field against its tags choice, min and max.
func (f field) bounds(c *Config) error {
	v := f.in(c)
	if list := f.Tag.Get("choice"); list != "" {
		choices := strings.Split(list, ",")
		if s := v.String(); !slices.Contains(choices, s) && (s != "" || f.Tag.Get("default") != "") {
			return fmt.Errorf("%q is not one of %s%s", s, strings.Join(choices, ", "), check.Meant("", s, choices))
		}
	}
	low, high := f.Tag.Get("min"), f.Tag.Get("max")
	if low == "" {
		return nil
	}
	var least, most int64
	if v.Type() == reflect.TypeFor[time.Duration]() {
		l, _ := time.ParseDuration(low)
		h, _ := time.ParseDuration(high)
		least, most = int64(l), int64(h)
	} else {
		least, _ = strconv.ParseInt(low, 10, 64)
		most, _ = strconv.ParseInt(high, 10, 64)
	}
	if n := v.Int(); n < least || n > most {
		return fmt.Errorf("%v is not between %s and %s", v, low, high)
	}
	return nil
}

// checks returns what has to hold beyond types and bounds, by setting.
func (c *Config) checks() map[string]func() error {
	return map[string]func() error{
		"VAULT_PATH":             c.checkVault,
		"DATABASE_URL":           c.checkDatabase,
		"ADDR":                   c.checkAddr,
		"PORT":                   func() error { return check.Port(c.Port) },
		"ALLOWED_HOSTS":          func() error { return each(c.AllowedHosts, check.Host) },
		"CORS_ORIGINS":           func() error { return each(c.CORSOrigins, check.Origin) },
		"ADMIN_PASSWORD":         c.checkPassword,
		"TELEGRAM_TOKEN":         func() error { return each(values.List{c.TelegramToken.Reveal()}, check.TelegramToken) },
		"TELEGRAM_API_URL":       func() error { return check.Origin(c.TelegramApiURL) },
		"TELEGRAM_ALLOWED_USERS": func() error { return each(c.TelegramAllowedUsers, check.User) },
		"DISCORD_TOKEN":          func() error { return each(values.List{c.DiscordToken.Reveal()}, check.DiscordToken) },
		"DISCORD_API_URL":        func() error { return check.Origin(c.DiscordApiURL) },
		"DISCORD_ALLOWED_USERS":  func() error { return each(c.DiscordAllowedUsers, check.User) },
		"BOTS_FILE":              c.checkBotsFile,
		"BACKUP_PATH":            func() error { return each(values.List{c.BackupPath}, check.Path) },
		"CONTENT_KEY_FILE":       c.checkContentKey,
		"MEMORY_BUDGET":          c.checkMemoryBudget,
		"GUEST_READ":             func() error { return each(c.GuestRead, check.Glob) },
		"MODEL":                  func() error { return each(values.List{c.Model}, c.checkModel) },
		"MODEL_FALLBACKS":        c.checkFallbacks,
		"MODEL_WINDOWS":          func() error { return check.Windows(c.ModelWindows, c.checkNamed) },
		"MODEL_PRICES":           func() error { return each(c.ModelPrices.Models(), c.checkNamed) },
		"GUEST_MODEL":            func() error { return each(values.List{c.GuestModel}, c.checkModel) },
		"TITLE_MODEL":            func() error { return each(values.List{c.TitleModel}, c.checkModel) },
		"COUNCIL":                c.checkCouncil,
		"COUNCIL_MAX_COST":       func() error { return check.Dollars(c.CouncilMaxCost) },
		"PROVIDERS_FILE":         func() error { return c.providers.Fault() },
		"ANTHROPIC_API_KEY":      func() error { return check.Key(c.AnthropicAPIKey) },
		"ANTHROPIC_BASE_URL":     func() error { return check.Base(c.AnthropicBaseURL) },
		"OPENAI_API_KEY":         func() error { return check.Key(c.OpenaiAPIKey) },
		"OPENAI_BASE_URL":        func() error { return check.Base(c.OpenaiBaseURL) },
		"MCP_ENV":                func() error { return each(c.MCPEnv, func(v string) error { return check.Variable(v, Prefix) }) },
		"CLAUDE_CLI":             func() error { return each(values.List{c.ClaudeCLI}, check.Path) },
		"SANDBOX_CGROUP":         func() error { return check.Group(c.SandboxCgroup) },
		"SANDBOX_IMAGE":          func() error { return each(values.List{c.SandboxImage}, check.Image) },
		"CLAUDE_PROJECTS":        func() error { return each(values.List{c.ClaudeProjects}, check.Path) },
		"SEARXNG_URL":            func() error { return check.Base(c.SearxngURL) },
		"TRANSCRIBE_URL":         func() error { return check.Base(c.TranscribeURL) },
		"EMBED_URL":              func() error { return check.Base(c.EmbedURL) },
		"EMBED_API_KEY":          func() error { return check.Key(c.EmbedAPIKey) },
		"METRICS_ADDR":           func() error { return each(values.List{c.MetricsAddr}, check.HostPort) },
	}
}

// each is the first fault in list; empty values are passed over.
func each(list values.List, check func(string) error) error {
	for _, v := range list {
		if v == "" {
			continue
		}
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// checkVault accepts a directory, or a name where one can be made.
func (c *Config) checkVault() error {
	if info, err := os.Stat(c.VaultPath); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file, and the vault is a directory: name the directory that is to hold everything", c.VaultPath)
	}
	return check.Path(c.VaultPath)
}

func (c *Config) checkMemoryBudget() error {
	if c.MemoryBudget.MicroUSD > 0 {
		return errors.New("dollars are not supported here: give a number of tokens (100k), or off")
	}
	return nil
}

// checkContentKey accepts a path outside the vault: backups contain the vault.
func (c *Config) checkContentKey() error {
	if c.ContentKeyFile == "" {
		return nil
	}
	if rel, err := filepath.Rel(c.VaultPath, c.ContentKeyFile); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s is in the vault, and so in every backup: name a file outside it", c.ContentKeyFile)
	}
	return check.Path(c.ContentKeyFile)
}

func (c *Config) checkBotsFile() error {
	if path, named := c.BotsPath(); named {
		return check.Path(path)
	}
	return nil
}

func (c *Config) checkDatabase() error { return check.Database(c.DatabaseURL, Prefix) }

func (c *Config) checkAddr() error {
	if err := check.HostPort(c.Addr); err != nil {
		return err
	}
	if !c.Loopback() && !c.AdminPassword.IsSet() {
		return fmt.Errorf("%s can be reached from other machines, so the panel needs a password first: set %s_ADMIN_PASSWORD, or stay on loopback", c.Addr, Prefix)
	}
	return nil
}

// Loopback reports whether Addr can be reached from this machine only.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// SameServer reports whether the address is on the server of OPENAI_BASE_URL,
// which is OpenAI's own when that is empty, so that it may get OPENAI_API_KEY.
func (c *Config) SameServer(address string) bool {
	base := c.OpenaiBaseURL
	if base == "" {
		base = "https://api.openai.com"
	}
	a, err := url.Parse(address)
	b, err2 := url.Parse(base)
	return err == nil && err2 == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

// Bounds of ADMIN_PASSWORD in bytes, the same as for a password chosen in the panel.
const MinPassword, MaxPassword = 12, 256

func (c *Config) checkPassword() error {
	switch n := len(c.AdminPassword.Reveal()); {
	case n > 0 && n < MinPassword:
		return fmt.Errorf("needs at least %d characters", MinPassword)
	case n > MaxPassword:
		return fmt.Errorf("is longer than %d bytes", MaxPassword)
	}
	return nil
}
