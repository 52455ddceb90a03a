// Package configs holds every setting of the gateway: its name, default,
// bounds and example. Settings come from the environment under the prefix
// GATEHOUSE_; nothing else is read, so that a key that lies in the shell for
// another program never reaches a model or a platform by accident. An env file
// can go before (UseEnvFile); more bots are in a file of their own (ReadBots).
package configs

import (
	"path/filepath"
	"time"

	"gatehouse/configs/check"
	"gatehouse/configs/providers"
	"gatehouse/configs/values"
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
	VaultPath   string `envconfig:"VAULT_PATH" default:"~/Gatehouse" example:"/srv/gatehouse" desc:"Directory of plain files that holds everything; created with mode 0700 if missing. VAULT_PATH sets it too."`
	DatabaseURL string `split_words:"true" example:"/var/lib/gatehouse/sessions.db" desc:"File of the SQLite database, or a PostgreSQL database as postgres://user@host/name. Empty: Chat/sessions.db in the vault."`

	DatabasePassword values.Secret `split_words:"true" example:"a-long-phrase" desc:"Password for the PostgreSQL database. Empty: none is needed."`

	// Addr is host:port; Load has replaced the port if Port is set.
	Addr            string         `split_words:"true" default:"127.0.0.1:3333" example:"127.0.0.1:3333" desc:"Address of the panel and the API. An address that is not loopback requires ADMIN_PASSWORD."`
	Port            int            `envconfig:"PORT" example:"8080" desc:"Replaces the port of ADDR. PORT sets it too."`
	AllowedHosts    values.List    `split_words:"true" example:"gatehouse.example.org" desc:"Additional host names under which browsers may reach the gateway; loopback names are always allowed."`
	CORSOrigins     values.List    `split_words:"true" example:"https://app.example.org" desc:"Origins of web pages on other hosts that may call the API."`
	TrustedProxies  values.Proxies `split_words:"true" example:"10.0.0.0/8" desc:"Addresses or networks of reverse proxies whose forwarded headers are trusted."`
	LocalhostAccess string         `split_words:"true" default:"off" choice:"off,chat" example:"chat" desc:"chat: requests from this machine may chat without a key, at trust sandboxed."`
	AdminPassword   values.Secret  `split_words:"true" example:"a-long-phrase" desc:"The panel's password, 12 to 256 bytes. Empty: a one-time password is created at the first start."`

	TelegramToken        values.Secret `split_words:"true" example:"123456:ABC-DEF" desc:"Token of the bot telegram, from @BotFather. Empty: no bot."`
	TelegramApiURL       string        `split_words:"true" default:"https://api.telegram.org" example:"http://127.0.0.1:8081" desc:"The Bot API's server, as scheme://host:port."`
	TelegramDMPolicy     string        `split_words:"true" default:"pairing" choice:"pairing,allowlist,open,disabled" example:"pairing" desc:"Policy for direct messages of strangers: pairing, allowlist, open or disabled."`
	TelegramAllowedUsers values.List   `split_words:"true" example:"12345678,23456789" desc:"Numeric user ids for the policy allowlist. Empty: none."`

	DiscordToken        values.Secret `split_words:"true" example:"MTk4NjIyNDgzNDcx.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs" desc:"Token of the bot discord, from the developer portal. Empty: no bot."`
	DiscordApiURL       string        `split_words:"true" default:"https://discord.com" example:"http://127.0.0.1:8082" desc:"Discord's API server, as scheme://host:port; its gateway address is asked there."`
	DiscordDMPolicy     string        `split_words:"true" default:"pairing" choice:"pairing,allowlist,open,disabled" example:"pairing" desc:"Policy for direct messages of strangers: pairing, allowlist, open or disabled."`
	DiscordAllowedUsers values.List   `split_words:"true" example:"80351110224678912" desc:"Numeric user ids for the policy allowlist. Empty: none."`

	BotsFile string `split_words:"true" example:"/etc/gatehouse/bots.yaml" desc:"File with more bots, mode 0600. Empty: .parachute/bots.yaml in the vault if it exists; off: none."`

	DMTrust    string      `split_words:"true" default:"sandboxed" choice:"sandboxed,vault" example:"vault" desc:"Preset trust level when you approve a request from a direct message, and the level of users on an allowlist: sandboxed or vault."`
	GroupTrust string      `split_words:"true" default:"sandboxed" choice:"sandboxed,vault" example:"sandboxed" desc:"Preset trust level when you approve a request from a group."`
	GuestRead  values.List `split_words:"true" example:"Public/**" desc:"Globs of vault files that sandboxed users may read. Empty: none."`

	DefaultAgent string `split_words:"true" example:"researcher" desc:"Agent (a file in .parachute/agents) for sessions that name none. Empty: the built-in agent."`
	GuestModel   string `split_words:"true" example:"openai/gpt-4o-mini" desc:"The only model for sandboxed users. Empty: MODEL."`
	TitleModel   string `split_words:"true" example:"openai/gpt-4o-mini" desc:"Model that writes titles of conversations, and the summaries of the owner's, after each answer, reads messages for corrections, and judges whether answers of the council follow the memory; charged to their user. Empty: the first words."`

	BudgetUserDay values.Budget `split_words:"true" example:"200k" desc:"Budget per user and day (UTC), in tokens (200k, 1.5m) or dollars ($2). Empty: no limit."`
	BudgetBotDay  values.Budget `split_words:"true" example:"$5" desc:"Budget per bot and day."`
	BudgetDay     values.Budget `split_words:"true" example:"$20" desc:"Budget of the whole gateway per day."`

	MemoryBudget values.Budget `split_words:"true" default:"100k" example:"100k" desc:"Tokens per day for context backups of conversations that lack one and for reading messages for corrections with TITLE_MODEL, or off. Backups of long conversations are written in any case."`

	BusyMode  string        `split_words:"true" default:"collect" choice:"collect,queue,interrupt" example:"queue" desc:"What to do with messages that arrive while a run is active: collect them into one turn, queue one turn each, or interrupt the run. /busy overrides it per chat."`
	RateLimit values.Rate   `split_words:"true" default:"10/60s" example:"10/60s" desc:"Messages per user and bot in a time, or off."`
	Pace      values.Switch `split_words:"true" default:"on" example:"off" desc:"Limit outgoing messages to the platform's rate limits: on or off."`

	Model            string        `split_words:"true" example:"anthropic/claude-sonnet-5" desc:"Default model: anthropic/NAME, openai/NAME, a model of a provider in PROVIDERS_FILE, or local/quote. Empty: the first of these providers with a key or base URL, then the first model of PROVIDERS_FILE, else local/quote."`
	ModelFallbacks   values.List   `split_words:"true" example:"openai/gpt-4o,local/quote" desc:"Models to try, in order, when MODEL fails."`
	ModelWindows     values.Sizes  `split_words:"true" example:"openai/llama3.1=8192" desc:"Context windows in tokens, as provider/model=tokens with commas between, for models whose window is not known. Conversations are summed up before they reach it."`
	ModelPrices      values.Prices `split_words:"true" example:"openai/llama3.1=0.2:0.6" desc:"Prices in USD per million tokens, as provider/model=input:output with commas between. They override the built-in ones; cached tokens then cost what input does."`
	ProvidersFile    string        `split_words:"true" example:"/etc/gatehouse/providers.yaml" desc:"YAML file with further providers of models by name, their keys' files, models and prices. It is read again when it changes. Empty: none."`
	Council          values.List   `split_words:"true" example:"anthropic/claude-sonnet-5,openai/gpt-5.4,judge=openai/gpt-5.4-mini" desc:"2 to 9 models that answer together as council/fast, council/balanced, council/high and council/maximum. judge= names one that compares and reviews; without it a member does. Empty: no council."`
	CouncilWait      time.Duration `split_words:"true" default:"20s" min:"1s" max:"10m" example:"20s" desc:"Time for further members of COUNCIL after the second answer; three times that after the first."`
	CouncilMaxCost   values.Budget `split_words:"true" example:"$0.50" desc:"Most that one question to COUNCIL may be expected to cost, in dollars. A dearer one is asked at the next lower level. Empty: no limit."`
	AnthropicAPIKey  values.Secret `split_words:"true" example:"sk-ant-..." desc:"Key for Anthropic."`
	AnthropicBaseURL string        `split_words:"true" example:"https://api.anthropic.com" desc:"Server with Anthropic's Messages API. Empty: Anthropic's own."`
	OpenaiAPIKey     values.Secret `split_words:"true" example:"sk-..." desc:"Key for an OpenAI-compatible provider."`
	OpenaiBaseURL    string        `split_words:"true" example:"http://127.0.0.1:11434/v1" desc:"OpenAI-compatible server. Empty: OpenAI's own."`
	ClaudeCLI        string        `split_words:"true" example:"/usr/local/bin/claude" desc:"Program of Claude Code; enables the models claudecli/NAME for the owner at full trust. Empty: disabled."`
	ClaudeProjects   string        `split_words:"true" example:"~/.claude/projects" desc:"Claude Code's directory of transcripts, such as ~/.claude/projects. The owner's sessions that are not in the vault are read from there and continue in a copy in the vault. Empty: disabled."`

	LimitRuns         int           `split_words:"true" default:"64" min:"1" max:"10000" example:"64" desc:"Concurrent runs."`
	LimitRunTime      time.Duration `split_words:"true" default:"30m" min:"1s" max:"24h" example:"30m" desc:"Timeout of one run."`
	LimitSilence      time.Duration `split_words:"true" default:"300s" min:"1s" max:"24h" example:"300s" desc:"Longest time without output from the model."`
	LimitOutputTokens int           `split_words:"true" default:"16000" min:"1" max:"1000000" example:"16000" desc:"Longest answer, in tokens."`
	LimitRounds       int           `split_words:"true" default:"50" min:"1" max:"1000" example:"50" desc:"Tool rounds per run."`

	Sandbox           string        `split_words:"true" default:"auto" choice:"auto,bubblewrap,container,none" example:"auto" desc:"Isolation of commands below full trust: auto and bubblewrap use bubblewrap, container uses podman or docker. With none, or where the chosen one does not work, there are no commands below full trust."`
	SandboxImage      string        `split_words:"true" example:"localhost/tools:1" desc:"With SANDBOX=container: a local image with its own programs (never pulled). Empty: this machine's /usr, read-only."`
	SandboxCgroup     string        `split_words:"true" default:"auto" example:"auto" desc:"Parent control group (cgroup v2) of commands below full trust: auto uses the gateway's own if it is delegated; or a directory such as /sys/fs/cgroup/gatehouse; or none. Without one, limits are polled."`
	MCPEnv            values.List   `split_words:"true" example:"GITHUB_TOKEN,NOTES_DIR" desc:"Environment variables that .mcp.json may use as ${NAME}. Empty: none."`
	SearxngURL        string        `split_words:"true" example:"http://127.0.0.1:8888" desc:"SearXNG server for the tool WebSearch. Empty: the provider's own search (Anthropic), else no WebSearch."`
	TranscribeURL     string        `split_words:"true" example:"http://127.0.0.1:9000/v1" desc:"Server with OpenAI's /v1/audio/transcriptions that transcribes voice messages, video notes and attached audio files. It gets OPENAI_API_KEY if it is the host of OPENAI_BASE_URL. Empty: they are stored and not transcribed."`
	TranscribeCommand string        `split_words:"true" example:"whisper-cli -nt -np -m {model} -f {file}" desc:"Command that transcribes instead of TRANSCRIBE_URL, isolated and without network. {file} is a WAV file, without it the command reads one from its input; {model} is TRANSCRIBE_MODEL. It prints text, or JSON with a text."`
	TranscribeMinutes int           `split_words:"true" default:"240" min:"0" max:"1440" example:"240" desc:"Minutes of speech that are transcribed for a user on a day (UTC). More is kept, and transcribed later for journals. 0: no limit."`
	TranscribeModel   string        `split_words:"true" example:"/srv/models/ggml-base.bin" desc:"Model that TRANSCRIBE_URL is asked for (empty: whisper-1), or the file that {model} stands for in TRANSCRIBE_COMMAND."`
	MetricsAddr       string        `split_words:"true" example:"127.0.0.1:9090" desc:"Separate listener for /metrics, without a key. Empty: /metrics on ADDR, with a key of scope metrics."`
	LogLevel          values.Level  `split_words:"true" default:"info" example:"debug" desc:"debug, info, warn or error."`
	LogFormat         string        `split_words:"true" choice:"text,json" example:"json" desc:"text or json. Empty: text on a terminal, else json."`
	DrainTimeout      time.Duration `split_words:"true" default:"30s" min:"0s" max:"10m" example:"30s" desc:"Time for running answers to finish when the gateway stops."`

	FilesPersonMB int `split_words:"true" default:"2000" min:"0" max:"100000000" example:"500" desc:"Megabytes of attachments per user, sent or received. The owner is not limited by it. 0: no limit."`
	FilesMB       int `split_words:"true" default:"20000" min:"0" max:"100000000" example:"100000" desc:"Megabytes of attachments of all users, the owner included. 0: no limit."`

	Index           string        `split_words:"true" default:"on" choice:"on,words,off" example:"off" desc:"Index the vault's documents for the search: on; words, without their meaning although EMBED_URL is set; or off, then conversations alone are found."`
	IndexMaxMB      int           `split_words:"true" default:"500" min:"0" max:"100000" example:"2000" desc:"Megabytes of documents that are indexed, in the order of their paths. 0: no limit."`
	EmbedURL        string        `split_words:"true" example:"http://127.0.0.1:11434/v1" desc:"Server with OpenAI's /v1/embeddings, so that documents are found, and the memory is chosen, by their meaning too. It gets the text of all indexed documents and conversations, what users search for, and what is remembered of them. Empty: words are compared, and nothing leaves this machine."`
	EmbedModel      string        `split_words:"true" default:"text-embedding-3-small" example:"nomic-embed-text" desc:"Model of EMBED_URL. When it changes, all documents are embedded again in the background."`
	EmbedDimensions int           `split_words:"true" default:"0" min:"0" max:"4096" example:"512" desc:"Dimensions that it is asked for. 0: the model's own."`
	EmbedPrefixes   string        `split_words:"true" default:"auto" choice:"auto,none,nomic,e5,bge" example:"e5" desc:"What EMBED_MODEL expects in front of passages and searches: auto, by its name; none; or as the models nomic, e5 or bge (mxbai too) do. When that of passages changes, all documents are embedded again."`
	EmbedAPIKey     values.Secret `split_words:"true" example:"sk-..." desc:"Key for the server of EMBED_URL. Empty: OPENAI_API_KEY if it is the host of OPENAI_BASE_URL."`
	Activity        values.Switch `split_words:"true" default:"on" example:"off" desc:"Log the owner's conversations in Daily/chat-log and Daily/.activity of the vault: on or off."`

	Memory values.Switch `split_words:"true" default:"on" example:"off" desc:"Learn from the corrections of each person, and use them in answers to the same person: on or off. Off keeps what is stored."`

	BackupPath string `split_words:"true" example:"/srv/backups" desc:"Directory outside the vault for backups made in the panel. Empty: next to the vault, with the suffix -backups."`

	ContentKeyFile string `split_words:"true" example:"/var/lib/gatehouse-keys/content.key" desc:"File outside the vault with the keys of the encrypted columns of the database, mode 0600; made at the first start. Keep a copy of it. Empty: content.key in the directory next to the vault with the suffix -keys."`

	RetentionDays int `split_words:"true" default:"0" min:"0" max:"36500" example:"365" desc:"Days after which unused archived sessions move to the trash. 0: never."`

	source map[string]string   // by name without prefix; what is absent has its default
	files  map[string]fromFile // secrets that were read from files, by name without prefix
	more   []values.Secret     // tokens of BOTS_FILE, once Load has read it

	changes map[string]BotChange // what the panel has set of bots (With)

	providers *providers.Source // of PROVIDERS_FILE, shared with copies; nil without one
	envFile   string
}

// fromFile is where a secret was read.
type fromFile struct {
	path  string
	value values.Secret
}

// ReadFrom notes that UseEnvFile was called with path before Load; "" is no file.
func (c *Config) ReadFrom(path string) { c.envFile = path }

// EnvFile returns the env file that settings were read from, "" for none.
func (c *Config) EnvFile() string { return c.envFile }

// Providers returns the file PROVIDERS_FILE as it is in use; it may be nil, which
// names no provider.
func (c *Config) Providers() *providers.Source { return c.providers }

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
	SourceDemo        = "demo" // set by the demo
)

// CameFrom notes the source of settings that the caller has set, by their names
// without the prefix.
func (c *Config) CameFrom(source string, names ...string) {
	for _, name := range names {
		c.source[name] = source
	}
}

// Source reports where the setting with this name (without the prefix, such as
// "VAULT_PATH") came from.
func (c *Config) Source(name string) string {
	if s := c.source[name]; s != "" {
		return s
	}
	return SourceDefault
}

// DatabasePath returns the file of the database: DatabaseURL, or its place in the vault.
// Where OnServer it is a URL without a password.
func (c *Config) DatabasePath() string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return filepath.Join(c.VaultPath, "Chat", "sessions.db")
}

// OnServer reports whether the database is PostgreSQL's.
func (c *Config) OnServer() bool {
	return check.OnServer(c.DatabaseURL)
}

// BackupDir returns the directory for backups made in the panel.
func (c *Config) BackupDir() string {
	if c.BackupPath != "" {
		return c.BackupPath
	}
	return filepath.Clean(c.VaultPath) + "-backups"
}

// ContentKeyPath returns the file with the keys of the encrypted columns.
func (c *Config) ContentKeyPath() string {
	if c.ContentKeyFile != "" {
		return c.ContentKeyFile
	}
	return filepath.Join(filepath.Clean(c.VaultPath)+"-keys", "content.key")
}

// Secrets returns all secrets that are set, those of BOTS_FILE too once LoadAll has
// read it, for anyone who must keep them out of sight.
func (c *Config) Secrets() []values.Secret {
	var list []values.Secret
	for _, f := range fields() {
		if s, ok := f.in(c).Interface().(values.Secret); ok && s.IsSet() {
			list = append(list, s)
		}
	}
	list = append(list, c.providers.Now().Secrets()...)
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
	return len(c.providers.Now().Providers) > 0 || c.AnthropicAPIKey.IsSet() || c.AnthropicBaseURL != "" || c.OpenaiAPIKey.IsSet() || c.OpenaiBaseURL != ""
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
			Name: f.Name, Value: values.Format(f.in(c).Interface()), Source: c.Source(f.short()), About: f.about,
		})
	}
	return list
}
