package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/snapshot"
)

// A Report is what a running gateway returns to the command line about its
// settings. It holds no secret.
type Report struct {
	Changes  configs.Changes   `json:"changes"`
	LogLevel string            `json:"log_level,omitempty"` // as set in the panel
	Settings []configs.Setting `json:"settings"`            // in effect
	NoModel  []string          `json:"no_model,omitempty"`  // agents and workspaces whose model is not configured
}

// Report returns the settings in effect with the addresses that were
// configured, which the gateway replaces by those it listens on.
func (s *Settings) Report(ctx context.Context, addr, metricsAddr string) (*Report, error) {
	ch, err := readChanges(ctx, s.db)
	if err != nil {
		return nil, err
	}
	level, _, err := store.Metadata(ctx, s.db, logLevelKey)
	as := *s.Now()
	as.Addr, as.MetricsAddr = addr, metricsAddr
	return &Report{Changes: ch, LogLevel: level, Settings: as.Redacted()}, err
}

// A View is the settings as a command of another process sees them: those of
// its environment with the panel's changes, and those of the running gateway.
type View struct {
	*configs.Config                 // with the panel's changes
	Given           *configs.Config // the environment's alone
	Running         *Report         // nil: no gateway runs
	Left            []error         // changes of the panel that are not valid here
	Fault           error           // why the panel's changes cannot be read

	level string // the log's, as set in the panel; "": it is not
}

// NewView returns the settings that cfg's gateway has, if running is its
// report, or would start with: then the changes are read from the database
// file, which is not changed.
func NewView(ctx context.Context, cfg *configs.Config, running *Report) View {
	v := View{Config: cfg, Given: cfg, Running: running}
	var ch configs.Changes
	if running != nil {
		ch, v.level = running.Changes, running.LogLevel
	} else {
		stored, err := peek(ctx, cfg, changesKey, logLevelKey)
		if text := stored[changesKey]; err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &ch)
		}
		if v.Fault = err; err != nil {
			return v
		}
		v.level = stored[logLevelKey]
	}
	v.Config, _, v.Left = cfg.Holding(ch)
	return v
}

// peekTime is for a database on a server.
const peekTime = 10 * time.Second

// peek reads the metadata of a database that a gateway may have open.
func peek(ctx context.Context, cfg *configs.Config, keys ...string) (map[string]string, error) {
	if cfg.OnServer() {
		ctx, cancel := context.WithTimeout(ctx, peekTime)
		defer cancel()
		found, err := postgres.Look(ctx, cfg.DatabasePath(), cfg.DatabasePassword.Reveal(), keys...)
		return found.Metadata, err
	}
	stored := map[string]string{}
	for _, key := range keys {
		value, err := snapshot.Peek(ctx, cfg.DatabasePath(), key)
		if err != nil {
			return nil, err
		}
		stored[key] = value
	}
	return stored, nil
}

// Value returns the effective value of a setting and its source: the running
// gateway's, or what the next start would have. name is without prefix.
func (v View) Value(name string) (value, source string) {
	list := v.Redacted()
	if v.Running != nil {
		list = v.Running.Settings
	}
	for _, x := range list {
		if x.Name == configs.Prefix+"_"+name {
			return x.Value, x.Source
		}
	}
	return "", configs.SourceDefault
}

// GuestRead returns the globs of what guests read, and their source.
func (v View) GuestRead() (globs values.List, source string) {
	value, source := v.Value("GUEST_READ")
	_ = globs.Decode(value) // accepts any text
	return globs, source
}

// SourceText returns a source as text.
func SourceText(source string) string {
	switch source {
	case configs.SourcePanel:
		return "set in the panel"
	case configs.SourceEnvironment:
		return "from the environment"
	case configs.SourceFile:
		return "from a file"
	case configs.SourceDemo:
		return "set by the demo"
	}
	return "the default"
}

// WhereSet returns where the effective value of a setting is changed.
func WhereSet(cfg *configs.Config, name string) string {
	if cfg.Source(name) == configs.SourcePanel {
		return name + " on the panel's page Settings"
	}
	return configs.Prefix + "_" + name
}

// Changed returns the panel's changes as text, each with the value that it
// overrides.
func (v View) Changed() (words []string) {
	was := map[string]configs.Setting{}
	for _, x := range v.Given.Redacted() {
		was[x.Name] = x
	}
	for _, x := range v.Redacted() {
		short := strings.TrimPrefix(x.Name, configs.Prefix+"_")
		if x.Source != configs.SourcePanel || !slices.Contains(configs.Changeable(), short) {
			continue
		}
		words = append(words, fmt.Sprintf("%s is %s (%s: %s)", short, cmp.Or(x.Value, "nothing"), SourceText(was[x.Name].Source), cmp.Or(was[x.Name].Value, "nothing")))
	}
	if v.level != "" {
		words = append(words, fmt.Sprintf("LOG_LEVEL is %s (%s: %s)", v.level, SourceText(v.Given.Source("LOG_LEVEL")), was[configs.Prefix+"_LOG_LEVEL"].Value))
	}
	changes := v.BotChanges()
	for _, bot := range slices.Sorted(maps.Keys(changes)) {
		words = append(words, "the bot "+bot+" "+botText(changes[bot]))
	}
	return words
}

func botText(c configs.BotChange) string {
	var words []string
	if c.Added != nil {
		words = append(words, "was added on "+c.Added.Platform)
	}
	if p := c.Policy; p != nil {
		words = append(words, fmt.Sprintf("has the policy %s, with %s in direct messages and %s in groups", p.DMPolicy, p.DMTrust, p.GroupTrust))
	}
	if c.TokenFile != "" {
		words = append(words, "takes its token from "+c.TokenFile)
	}
	if n := len(c.Texts); n == 1 {
		words = append(words, "has 1 text of its own")
	} else if n > 1 {
		words = append(words, fmt.Sprintf("has %d texts of its own", n))
	}
	if c.Off {
		words = append(words, "is stopped")
	}
	return strings.Join(words, ", ")
}

// Different returns the settings whose values the running gateway has from
// another environment than this one's.
func (v View) Different() (names []string) {
	if v.Running == nil {
		return nil
	}
	here := map[string]string{}
	for _, x := range v.Redacted() {
		here[x.Name] = x.Value
	}
	for _, x := range v.Running.Settings {
		if value, known := here[x.Name]; known && value != x.Value && x.Source != configs.SourcePanel {
			names = append(names, x.Name)
		}
	}
	return names
}
