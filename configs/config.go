// Package configs holds every setting of the gateway: its name, default,
// bounds and example. Settings come from the environment under the prefix
// GATEHOUSE_; nothing else is read, so that a key that lies in the shell for
// another program never reaches a model or a platform by accident. An env file
// can go before (UseEnvFile); more bots are in a file of their own (ReadBots).
//
// The package is somewhat larger than the house allows one to be: the three
// ways to give settings share their checks and the rule that no value is
// repeated in an error.
package configs

import (
	"path/filepath"
	"time"
)

// Prefix begins the name of every setting in the environment.
const Prefix = "GATEHOUSE"

// A Config is the whole configuration. Load fills and checks one, Default
// gives the defaults. Callers may change fields (the demo does) and then ask
// Validate again.
//
// The names in the environment are the fields' names split at words. Only
// VaultPath and Port carry an explicit name, because such a name is also read
// without the prefix: VAULT_PATH and PORT.
type Config struct {
	// VaultPath is absolute after Load; "~/" is the home directory.
	VaultPath   string `envconfig:"VAULT_PATH" default:"~/Gatehouse" example:"/srv/gatehouse" desc:"Folder of plain files that holds everything; created with mode 0700 if missing. Also read as VAULT_PATH."`
	DatabaseURL string `split_words:"true" example:"/var/lib/gatehouse/sessions.db" desc:"File of the SQLite database. Empty: Chat/sessions.db in the vault."`

	// Addr is host:port, with Port already put in place by Load.
	Addr            string  `split_words:"true" default:"127.0.0.1:3333" example:"127.0.0.1:3333" desc:"Address of the panel and the API. Beyond loopback it needs an ADMIN_PASSWORD."`
	Port            int     `envconfig:"PORT" example:"8080" desc:"Replaces the port of ADDR. Also read as PORT."`
	AllowedHosts    List    `split_words:"true" example:"gatehouse.example.org" desc:"Host names under which browsers may reach the gateway, beside the loopback names."`
	CORSOrigins     List    `split_words:"true" example:"https://app.example.org" desc:"Origins of web pages on other hosts that may call the API."`
	TrustedProxies  Proxies `split_words:"true" example:"10.0.0.0/8" desc:"Addresses or networks of reverse proxies whose forwarded headers count."`
	LocalhostAccess string  `split_words:"true" default:"off" choice:"off,chat" example:"chat" desc:"chat: requests from this machine may chat without a key, at trust sandboxed."`
	AdminPassword   Secret  `split_words:"true" example:"a-long-phrase" desc:"The panel's password. Empty: a one-time password is made at the first start."`

	TelegramToken        Secret `split_words:"true" example:"123456:ABC-DEF" desc:"Token of the bot named telegram, from @BotFather. Empty: no bot."`
	TelegramApiURL       string `split_words:"true" default:"https://api.telegram.org" example:"http://127.0.0.1:8081" desc:"The Bot API's server, as scheme://host:port."`
	TelegramDMPolicy     string `split_words:"true" default:"pairing" choice:"pairing,allowlist,open,disabled" example:"pairing" desc:"What a stranger's direct message meets: pairing, allowlist, open or disabled."`
	TelegramAllowedUsers List   `split_words:"true" example:"12345678,23456789" desc:"Numeric user ids for the policy allowlist; empty means nobody."`

	DiscordToken        Secret `split_words:"true" example:"MTk4NjIyNDgzNDcx.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs" desc:"Token of the bot named discord, from the developer portal. Empty: no bot."`
	DiscordApiURL       string `split_words:"true" default:"https://discord.com" example:"http://127.0.0.1:8082" desc:"Discord's API server, as scheme://host:port; it names the gateway."`
	DiscordDMPolicy     string `split_words:"true" default:"pairing" choice:"pairing,allowlist,open,disabled" example:"pairing" desc:"What a stranger's direct message meets there: pairing, allowlist, open or disabled."`
	DiscordAllowedUsers List   `split_words:"true" example:"80351110224678912" desc:"Numeric user ids for its policy allowlist; empty means nobody."`

	BotsFile string `split_words:"true" example:"/etc/gatehouse/bots.yaml" desc:"File with more bots, mode 0600 (configs/bots.example.yaml shows one). Empty: .parachute/bots.yaml in the vault, if it is there; off: none."`

	DMTrust    string `split_words:"true" default:"sandboxed" choice:"sandboxed,vault" example:"vault" desc:"Trust level that is preset when a direct message is approved: sandboxed or vault."`
	GroupTrust string `split_words:"true" default:"sandboxed" choice:"sandboxed,vault" example:"sandboxed" desc:"The same for a request from a group."`
	GuestRead  List   `split_words:"true" example:"Public/**" desc:"Globs of vault files that sandboxed people may be quoted from; empty means none."`

	DefaultAgent string `split_words:"true" example:"researcher" desc:"The agent of .parachute/agents that answers where a session names none; empty: the one that every vault has."`
	GuestModel   string `split_words:"true" example:"openai/gpt-4o-mini" desc:"The model that answers sandboxed people, and no other does; empty: MODEL."`
	TitleModel   string `split_words:"true" example:"openai/gpt-4o-mini" desc:"The model that gives a conversation its title after the first answer, out of its person's budget; empty: the first words are the title."`

	BudgetUserDay Budget `split_words:"true" example:"200k" desc:"What one person may use in a day (UTC), in tokens (200k, 1.5m) or dollars ($2); empty: no bound."`
	BudgetBotDay  Budget `split_words:"true" example:"$5" desc:"The same for all people of one bot together."`
	BudgetDay     Budget `split_words:"true" example:"$20" desc:"The same for the whole gateway."`

	BusyMode  string `split_words:"true" default:"collect" choice:"collect,queue,interrupt" example:"queue" desc:"Messages that come while an answer is being made: collect them into one turn, queue one turn each, or interrupt the answer and answer them instead. /busy sets it for a chat."`
	RateLimit Rate   `split_words:"true" default:"10/60s" example:"10/60s" desc:"Messages per person and bot in a time, or off."`
	Pace      Switch `split_words:"true" default:"on" example:"off" desc:"Hold back outgoing messages to what the platform allows: on or off."`

	Model            string `split_words:"true" example:"anthropic/claude-sonnet-5" desc:"The model that answers: anthropic/NAME, openai/NAME or local/quote. Empty: the first of these providers with a key or base URL, else local/quote."`
	ModelFallbacks   List   `split_words:"true" example:"openai/gpt-4o,local/quote" desc:"Models to try in order when MODEL cannot answer."`
	AnthropicAPIKey  Secret `split_words:"true" example:"sk-ant-..." desc:"Key for Anthropic."`
	AnthropicBaseURL string `split_words:"true" example:"https://api.anthropic.com" desc:"Address of a server that speaks Anthropic's Messages API; empty means Anthropic's own."`
	OpenaiAPIKey     Secret `split_words:"true" example:"sk-..." desc:"Key for an OpenAI-compatible provider."`
	OpenaiBaseURL    string `split_words:"true" example:"http://127.0.0.1:11434/v1" desc:"Address of an OpenAI-compatible server; empty means OpenAI's own."`
	ClaudeCLI        string `split_words:"true" example:"/usr/local/bin/claude" desc:"The program of Claude Code; then the models claudecli/NAME answer the owner at full trust. Empty: there are none."`
	ClaudeProjects   string `split_words:"true" example:"~/.claude/projects" desc:"Folder of Claude Code, such as ~/.claude/projects, in which the transcripts of the owner's sessions are looked for that the vault does not hold; it is only read, and such a session goes on in a copy in the vault. Empty: off."`

	LimitRuns         int           `split_words:"true" default:"64" min:"1" max:"10000" example:"64" desc:"Answers being made at the same time."`
	LimitRunTime      time.Duration `split_words:"true" default:"30m" min:"1s" max:"24h" example:"30m" desc:"Longest time for one answer."`
	LimitSilence      time.Duration `split_words:"true" default:"300s" min:"1s" max:"24h" example:"300s" desc:"Longest time without a word from the model."`
	LimitOutputTokens int           `split_words:"true" default:"16000" min:"1" max:"1000000" example:"16000" desc:"Longest answer, in tokens."`
	LimitRounds       int           `split_words:"true" default:"50" min:"1" max:"1000" example:"50" desc:"How often one answer may call tools and think again."`

	Sandbox       string `split_words:"true" default:"auto" choice:"auto,bubblewrap,container,none" example:"auto" desc:"What isolates shells below full trust: auto and bubblewrap use bubblewrap, container uses podman or docker; none, or a machine where the chosen one does not work, leaves no shell below full."`
	SandboxImage  string `split_words:"true" example:"localhost/tools:1" desc:"With SANDBOX=container: an image with programs of its own, which podman or docker already has (none is pulled). Empty: the programs of this machine's /usr, read-only."`
	SandboxCgroup string `split_words:"true" default:"auto" example:"auto" desc:"Control group (cgroup v2) below which each command below full trust gets one of its own, so that the kernel holds its limits: auto is the gateway's own where that was delegated to it; a folder, such as /sys/fs/cgroup/gatehouse; none. Without one limits are watched."`
	MCPEnv        List   `split_words:"true" example:"GITHUB_TOKEN,NOTES_DIR" desc:"Names of variables of the gateway's environment that .mcp.json may use as ${NAME}; empty means none."`
	SearxngURL    string `split_words:"true" example:"http://127.0.0.1:8888" desc:"Address of a SearXNG server for the tool WebSearch; empty: the search of the model's provider (Anthropic), else no WebSearch."`

	TranscribeURL string `split_words:"true" example:"http://127.0.0.1:9000/v1" desc:"Address of a server with OpenAI's /v1/audio/transcriptions, which writes voice messages down; it gets OPENAI_API_KEY where it is OPENAI_BASE_URL's. Empty: voice messages are kept and not heard."`

	MetricsAddr  string        `split_words:"true" example:"127.0.0.1:9090" desc:"A listener of its own for /metrics, without a key. Empty: /metrics on ADDR, with a key of scope metrics."`
	LogLevel     Level         `split_words:"true" default:"info" example:"debug" desc:"debug, info, warn or error."`
	LogFormat    string        `split_words:"true" choice:"text,json" example:"json" desc:"text or json. Empty: text on a terminal, else json."`
	DrainTimeout time.Duration `split_words:"true" default:"30s" min:"0s" max:"10m" example:"30s" desc:"Time that running answers get when the gateway is asked to stop."`

	FilesPersonMB int `split_words:"true" default:"2000" min:"0" max:"100000000" example:"500" desc:"Megabytes that the files of one person, sent with messages or shown in answers, may take in the vault; the owner's do not count here; 0: no bound."`
	FilesMB       int `split_words:"true" default:"20000" min:"0" max:"100000000" example:"100000" desc:"The same for all people's files together, the owner's too."`

	BackupPath string `split_words:"true" example:"/srv/backups" desc:"Folder, outside of the vault, for the backups that are made in the panel. Empty: a folder beside the vault, named like it with -backups behind."`

	RetentionDays int `split_words:"true" default:"0" min:"0" max:"36500" example:"365" desc:"Archived sessions that nobody has used for so many days go to the trash; 0: never."`

	source map[string]string   // by name without prefix; what is absent has its default
	files  map[string]fromFile // secrets that were read from files, by name without prefix
	more   []Secret            // tokens of BOTS_FILE, once Load has read it

	changes map[string]BotChange // what the panel has set of bots (With)
	envFile string
}

// fromFile is where a secret was read.
type fromFile struct {
	path  string
	value Secret
}

// ReadFrom notes that UseEnvFile was called with path before Load; "" is no file.
func (c *Config) ReadFrom(path string) { c.envFile = path }

// EnvFile returns the env file that settings were read from, "" for none.
func (c *Config) EnvFile() string { return c.envFile }

// SecretFiles returns the files that secrets of the settings were read from, by
// name of the setting.
func (c *Config) SecretFiles() map[string]string {
	paths := map[string]string{}
	for short, from := range c.files {
		paths[Prefix+"_"+short+"_FILE"] = from.path
	}
	return paths
}

// Where a value came from.
const (
	SourceDefault     = "default"
	SourceEnvironment = "environment"
	SourceFile        = "file" // named by the variable that ends in _FILE
)

// Source reports where the setting with this name (without the prefix, such as
// "VAULT_PATH") came from.
func (c *Config) Source(name string) string {
	if s := c.source[name]; s != "" {
		return s
	}
	return SourceDefault
}

// DatabasePath returns the file of the database: DatabaseURL, or its place in the vault.
func (c *Config) DatabasePath() string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return filepath.Join(c.VaultPath, "Chat", "sessions.db")
}

// BackupDir returns the directory for backups made in the panel.
func (c *Config) BackupDir() string {
	if c.BackupPath != "" {
		return c.BackupPath
	}
	return filepath.Clean(c.VaultPath) + "-backups"
}

// Secrets returns all secrets that are set, those of BOTS_FILE too once LoadAll has
// read it, for anyone who must keep them out of sight.
func (c *Config) Secrets() []Secret {
	var list []Secret
	for _, f := range fields() {
		if s, ok := f.in(c).Interface().(Secret); ok && s.IsSet() {
			list = append(list, s)
		}
	}
	return append(list, c.more...)
}

// SecretNames returns the names of the variables that may hold a secret.
func (c *Config) SecretNames() (names []string) {
	for _, f := range fields() {
		if f.secret() {
			names = append(names, f.Name)
		}
	}
	return names
}

// HasProvider reports whether a provider of language models has a key or an address.
func (c *Config) HasProvider() bool {
	return c.AnthropicAPIKey.IsSet() || c.AnthropicBaseURL != "" || c.OpenaiAPIKey.IsSet() || c.OpenaiBaseURL != ""
}

// A Setting is one value as it may be shown.
type Setting struct {
	Name   string `json:"name"` // as in the environment
	Value  string `json:"value"`
	Source string `json:"source"`
	About  string `json:"about"`
}

// Redacted lists every setting in the order of Config, fit to be shown: of a
// secret only whether it is set.
func (c *Config) Redacted() []Setting {
	var list []Setting
	for _, f := range fields() {
		list = append(list, Setting{
			Name: f.Name, Value: shown(f.in(c).Interface()), Source: c.Source(f.short()), About: f.about,
		})
	}
	return list
}
