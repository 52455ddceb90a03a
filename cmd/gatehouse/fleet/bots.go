// Package fleet runs the configured bots: it builds their connectors, and while
// the gateway runs it starts, stops and replaces them as settings, the file of
// bots and files of tokens change.
package fleet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/pairing/bots"
)

// Bots are the configured bots as they are now. Methods may be called
// concurrently.
type Bots struct {
	mu      sync.RWMutex
	list    []configs.Bot // at most configs.MaxBots
	trouble string        // why the file of bots is not used as it is; "": it is
	since   time.Time     // of trouble
}

// Read returns the bots of cfg. At the start a bot without a valid token is an
// error; later it only keeps that bot from running.
func Read(cfg *configs.Config) (*Bots, error) {
	list, err := cfg.ReadBots(nil)
	if err != nil {
		return nil, err
	}
	var faults configs.Problems
	for _, b := range list {
		if b.Fault != "" {
			faults = append(faults, configs.Problem{Name: b.Where, Fault: b.Fault})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return &Bots{list: list}, nil
}

// Refresh reads the bots of cfg again. An error leaves them as they were.
func (f *Bots) Refresh(cfg *configs.Config) error {
	list, err := cfg.ReadBots(f.All())
	if err == nil {
		f.set(list, "", time.Time{})
	}
	return err
}

// All returns the configured bots.
func (f *Bots) All() []configs.Bot {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.list)
}

// Find returns the bot of that name.
func (f *Bots) Find(name string) (configs.Bot, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return named(f.list, name)
}

// Working returns the names of the bots that are not stopped.
func (f *Bots) Working() (names []string) {
	for _, b := range f.All() {
		if !b.Off && b.Fault == "" {
			names = append(names, b.Name)
		}
	}
	return names
}

// Names returns the names of the configured bots.
func (f *Bots) Names() (names []string) {
	for _, b := range f.All() {
		names = append(names, b.Name)
	}
	return names
}

// Places returns the bots' names and platforms.
func (f *Bots) Places() (out []bots.Bot) {
	for _, b := range f.All() {
		out = append(out, bots.Bot{Name: b.Name, Platform: b.Platform})
	}
	return out
}

// Platform returns the platform of a bot. For a bot that is not configured it
// returns the name: bots of the environment are named like their platform.
func (f *Bots) Platform(name string) string {
	if b, ok := f.Find(name); ok {
		return b.Platform
	}
	return name
}

// Sources returns where conversations can begin: the platforms of the bots, the panel, the API, and the schedule.
func (f *Bots) Sources() []string {
	list := []string{core.APIBot, core.PanelSource, core.ScheduleBot}
	for _, b := range f.All() {
		if !slices.Contains(list, b.Platform) {
			list = append(list, b.Platform)
		}
	}
	slices.Sort(list)
	return list
}

// Policy returns how a bot treats strangers; one that is not configured does
// not answer them.
func (f *Bots) Policy(name string) bots.Policy {
	b, ok := f.Find(name)
	if !ok {
		return bots.Policy{DM: bots.Disabled}
	}
	dm, _ := core.ParseTrust(b.DMTrust) // checked by configs
	group, _ := core.ParseTrust(b.GroupTrust)
	return bots.Policy{Platform: b.Platform, DM: b.DMPolicy, Allowed: b.AllowedUsers, DMTrust: dm, GroupTrust: group}
}

// Preset returns the trust level that is offered first when access to a bot is
// approved.
func (f *Bots) Preset(bot string, scope core.Scope) core.Trust {
	p := f.Policy(bot)
	if scope == core.ScopeGroup {
		return p.GroupTrust
	}
	return p.DMTrust
}

// Trouble returns why the file of bots is not used as it is, and since when;
// "" if it is.
func (f *Bots) Trouble() (text string, since time.Time) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.trouble, f.since
}

// Files returns the files that name bots and hold their tokens.
func (f *Bots) Files(cfg *configs.Config) (files []string) {
	if path, _ := cfg.BotsPath(); path != "" {
		files = append(files, path)
	}
	for _, b := range f.All() {
		if b.TokenFile != "" {
			files = append(files, b.TokenFile)
		}
	}
	return files
}

// set replaces the bots and reports whether the trouble is another one.
func (f *Bots) set(list []configs.Bot, trouble string, now time.Time) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if changed = trouble != f.trouble; changed {
		f.since = now
	}
	f.list, f.trouble = list, trouble
	return changed
}

func named(list []configs.Bot, name string) (configs.Bot, bool) {
	i := slices.IndexFunc(list, func(b configs.Bot) bool { return b.Name == name })
	if i < 0 {
		return configs.Bot{}, false
	}
	return list[i], true
}

// Named returns the name of the configured bot that name refers to: its own, or
// a platform's or "" where that means one bot only. Otherwise it returns
// core.NotFound or core.Invalid.
func (f *Bots) Named(name string) (string, error) {
	var of, all []string
	for _, b := range f.All() {
		all = append(all, b.Name)
		if b.Name == name {
			return name, nil
		}
		if b.Platform == name || name == "" {
			of = append(of, b.Name)
		}
	}
	slices.Sort(of)
	slices.Sort(all)
	switch {
	case len(of) == 1:
		return of[0], nil
	case len(all) == 0:
		return "", core.Errorf(core.NotFound, "no bot is configured: add one in the panel, under Settings, Bots, or by 'gatehouse init'")
	case len(of) == 0:
		return "", core.Errorf(core.NotFound, "there is no bot %s; the bots are %s", core.CleanName(name), strings.Join(all, ", "))
	}
	return "", core.Errorf(core.Invalid, "there are several bots; name one of them: %s", strings.Join(of, ", "))
}
