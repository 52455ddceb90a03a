package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/core/store"
)

// A standing is what the gateway tells the command line of its settings as they
// hold. No secret is in it.
type standing struct {
	Changes  configs.Changes   `json:"changes"`
	LogLevel string            `json:"log_level,omitempty"` // as the panel has set it
	Settings []configs.Setting `json:"settings"`            // as they hold
	NoModel  []string          `json:"no_model,omitempty"`  // agents and workspaces whose model is not there
}

// standing answers the order "settings".
func (a *app) standing(ctx context.Context, _ order) (result, error) {
	ch, err := readChanges(ctx, a.db)
	if err != nil {
		return result{}, err
	}
	level, _, err := store.Metadata(ctx, a.db, logLevelKey)
	as := *a.now()
	as.Addr, as.MetricsAddr = a.asked[0], a.asked[1]
	return result{Standing: &standing{ch, level, as.Redacted(), missingModels(a.models.Now(), a.agents)}}, err
}

// A settled is the configuration of a command's environment with what was set
// in the panel, and what the gateway that serves this vault, if any, goes by.
type settled struct {
	*configs.Config
	given  *configs.Config // the environment's alone
	level  string          // the log's, as the panel has set it; "": it has not
	left   []error         // what was set in the panel and can't hold here
	served *standing       // nil: nobody serves
	fault  error           // why nobody can tell what was set in the panel
}

// settle asks the gateway that serves what was set in the panel, or looks into
// the database's file when none does. It changes nothing.
func settle(ctx context.Context, cfg *configs.Config) settled {
	s := settled{Config: cfg, given: cfg}
	var ch configs.Changes
	if s.served = askStanding(ctx, cfg); s.served != nil {
		ch, s.level = s.served.Changes, s.served.LogLevel
	} else {
		text, err := store.Peek(ctx, cfg.DatabasePath(), changesKey)
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &ch)
		}
		level, levelErr := store.Peek(ctx, cfg.DatabasePath(), logLevelKey)
		if s.fault = errors.Join(err, levelErr); s.fault != nil {
			return s
		}
		s.level = level
	}
	s.Config, s.left = cfg.Holding(ch)
	return s
}

func askStanding(ctx context.Context, cfg *configs.Config) *standing {
	dir, err := runtimeDir(cfg.VaultPath)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveWait)
	defer cancel()
	res, err := askServer(ctx, dir, "settings", order{})
	if err != nil {
		return nil // the file tells the same
	}
	return res.Standing
}

// value is a setting as it holds, with where it comes from: at the gateway that
// serves, else as the next start would have it. name is without prefix.
func (s settled) value(name string) (value, source string) {
	list := s.Redacted()
	if s.served != nil {
		list = s.served.Settings
	}
	for _, x := range list {
		if x.Name == configs.Prefix+"_"+name {
			return x.Value, x.Source
		}
	}
	return "", configs.SourceDefault
}

// guestRead are the globs of what guests read, and where they come from.
func (s settled) guestRead() (globs configs.List, source string) {
	value, source := s.value("GUEST_READ")
	_ = globs.Decode(value) // takes any text
	return globs, source
}

// fromWhere says in words where a value comes from.
func fromWhere(source string) string {
	switch source {
	case configs.SourcePanel:
		return "set in the panel"
	case configs.SourceEnvironment:
		return "from the environment"
	case configs.SourceFile:
		return "from a file"
	}
	return "the default"
}

// whereSet names the place where a setting is changed that holds now.
func whereSet(cfg *configs.Config, name string) string {
	if cfg.Source(name) == configs.SourcePanel {
		return name + " on the panel's page Settings"
	}
	return configs.Prefix + "_" + name
}

// told are the changes of the panel in words, each with what it stands before.
func (s settled) told() (words []string) {
	was := map[string]configs.Setting{}
	for _, x := range s.given.Redacted() {
		was[x.Name] = x
	}
	for _, x := range s.Redacted() {
		short := strings.TrimPrefix(x.Name, configs.Prefix+"_")
		if x.Source != configs.SourcePanel || !slices.Contains(configs.Changeable(), short) {
			continue
		}
		words = append(words, fmt.Sprintf("%s is %s (%s: %s)", short, cmp.Or(x.Value, "nothing"), fromWhere(was[x.Name].Source), cmp.Or(was[x.Name].Value, "nothing")))
	}
	if s.level != "" {
		words = append(words, fmt.Sprintf("LOG_LEVEL is %s (%s: %s)", s.level, fromWhere(s.given.Source("LOG_LEVEL")), was[configs.Prefix+"_LOG_LEVEL"].Value))
	}
	changes := s.BotChanges()
	for _, bot := range slices.Sorted(maps.Keys(changes)) {
		words = append(words, "the bot "+bot+" "+botWords(changes[bot]))
	}
	return words
}

func botWords(c configs.BotChange) string {
	var words []string
	if p := c.Policy; p != nil {
		words = append(words, fmt.Sprintf("has the policy %s, with %s in direct messages and %s in groups", p.DMPolicy, p.DMTrust, p.GroupTrust))
	}
	if c.TokenFile != "" {
		words = append(words, "takes its token from "+c.TokenFile)
	}
	if len(c.Texts) > 0 {
		words = append(words, "has "+counted(len(c.Texts), "text")+" of its own")
	}
	if c.Off {
		words = append(words, "is stopped")
	}
	return strings.Join(words, ", ")
}

// otherThere names settings that hold at the gateway that serves and not here,
// without those of the panel: it was started with another environment.
func (s settled) otherThere() (names []string) {
	if s.served == nil {
		return nil
	}
	here := map[string]string{}
	for _, x := range s.Redacted() {
		here[x.Name] = x.Value
	}
	for _, x := range s.served.Settings {
		if value, known := here[x.Name]; known && value != x.Value && x.Source != configs.SourcePanel {
			names = append(names, x.Name)
		}
	}
	return names
}
