package settings

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// settingsPath is the index of the settings; each section is a page below it.
const settingsPath = "/admin/settings"

// Keys of the sections, which are the last part of their addresses.
const (
	secBots      = "bots"
	secModels    = "models"
	secLimits    = "limits"
	secAccess    = "access"
	secBackups   = "backups"
	secVariables = "variables"
)

// A section is one page of the settings.
type section struct {
	Key, Label, About string
	Current           bool
	owns              []string // beginnings of the names of its settings; endings begin with _
}

// Path returns the address of the section's page.
func (s section) Path() string { return settingsPath + "/" + s.Key }

// sections are all sections in their order. A setting belongs to the first that owns it;
// the last owns the rest.
var sections = []section{
	{Key: secBots, Label: "Bots", About: "The bots with their tokens, who may write to them, and their texts.",
		owns: []string{"_TOKEN", "_API_URL", "_DM_POLICY", "_ALLOWED_USERS", "BOTS_FILE"}},
	{Key: secModels, Label: "Models and budgets", About: "Which model and which agent answer, and what they may cost.",
		owns: []string{"MODEL", "_MODEL", "DEFAULT_AGENT", "BUDGET_", "ANTHROPIC_", "OPENAI_", "CLAUDE_"}},
	{Key: secLimits, Label: "Limits", About: "How fast people may write, and how long and large answers, files and commands may be.",
		owns: []string{"RATE_LIMIT", "BUSY_MODE", "ACTIVITY", "PACE", "LIMIT_", "FILES_", "RETENTION_", "DRAIN_", "SANDBOX"}},
	{Key: secAccess, Label: "Access and keys", About: "Preset trust levels, what guests read, who reaches the panel and the API, and API keys.",
		owns: []string{"DM_TRUST", "GROUP_TRUST", "GUEST_READ", "ALLOWED_", "CORS_", "TRUSTED_", "LOCALHOST_", "ADMIN_"}},
	{Key: secBackups, Label: "Backups", About: "Make, download, restore and delete backups.",
		owns: []string{"BACKUP_", "VAULT_", "DATABASE_"}},
	{Key: secVariables, Label: "All variables", About: "Every variable with its value and where it comes from; the log level.",
		owns: []string{""}},
}

// short returns the name of a setting without the prefix.
func short(name string) string { return strings.TrimPrefix(name, "GATEHOUSE_") }

// sectionOf returns the section that a setting belongs to; name is without prefix.
func sectionOf(name string) section {
	i := slices.IndexFunc(sections, func(s section) bool {
		return slices.ContainsFunc(s.owns, func(x string) bool {
			return strings.HasPrefix(name, x) || x != "" && x[0] == '_' && strings.HasSuffix(name, x)
		})
	})
	return sections[i]
}

// sections returns those that have something to show, with the current one marked.
func (p *valuePages) sections(current string) (out []section) {
	for _, s := range sections {
		if s.Key == secBackups && !p.hasBackups() {
			continue
		}
		s.Current = s.Key == current
		out = append(out, s)
	}
	return out
}

func (p *valuePages) hasBackups() bool { return p.o.Backups != nil && p.o.BackupJob != nil }

// ---- the index

// maxHits bounds what a search finds, maxQuery what is searched for.
const (
	maxHits  = 60
	maxQuery = 100
)

// A hit is a place in the settings.
type hit struct {
	Path, Label, About string
	Section            string // its label; "" where it is one
	Setting            []Setting
	words              string // more to find it by
}

type indexBody struct {
	Sections []section
	Query    string
	Hits     []hit
	Found    string // how many
	Changed  []hit  // settings that were changed here
	Can      canDo
}

// canDo is what the index offers.
type canDo struct{ Add, Change, Keys bool }

func (p *valuePages) indexPage(w http.ResponseWriter, r *http.Request) error {
	b := indexBody{Sections: p.sections(""), Query: core.CutRunes(strings.TrimSpace(r.URL.Query().Get("q")), maxQuery)}
	b.Can = canDo{Add: p.o.NewBots != nil, Change: p.o.Changes != nil, Keys: p.o.Keys != nil}
	if b.Query != "" {
		b.Hits = found(p.places(), b.Query)
		b.Found = foundWords(len(b.Hits), page.Cut(&b.Hits, maxHits))
	} else {
		for _, h := range p.places() {
			if len(h.Setting) > 0 && h.Setting[0].Source == fromPanel {
				b.Changed = append(b.Changed, h)
			}
		}
	}
	return p.frame.Show(w, r, http.StatusOK, "settings", page.View{Title: "Settings", In: "settings", Topics: []core.Topic{core.TopicBots}, Body: b})
}

// fromPanel is the source of a value that was set here.
const fromPanel = "panel"

// foundWords returns how many places a search has found, and that some are not shown.
func foundWords(all, more int) string {
	switch {
	case all == 0:
		return "Nothing found"
	case more > 0:
		return page.Count(all, "place", "places") + " found, the first " + strconv.Itoa(all-more) + " are shown"
	}
	return page.Count(all, "place", "places") + " found"
}

// found returns the places that have every word of query.
func found(all []hit, query string) (out []hit) {
	words := strings.Fields(strings.ToLower(query))
	for _, h := range all {
		text := h.Label + " " + h.About + " " + h.Section + " " + h.words
		for _, s := range h.Setting {
			text += " " + s.Name + " " + s.About
		}
		text = strings.ToLower(text)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			out = append(out, h)
		}
	}
	return out
}

// places returns everything that a search can find: sections, what can be done, bots, and
// each setting. Settings come last.
func (p *valuePages) places() (out []hit) {
	for _, s := range p.sections("") {
		out = append(out, hit{Path: s.Path(), Label: s.Label, About: s.About})
	}
	add := func(when bool, key, path, label, about, words string) {
		if when {
			s := sections[slices.IndexFunc(sections, func(s section) bool { return s.Key == key })]
			out = append(out, hit{Path: path, Label: label, About: about, Section: s.Label, words: words})
		}
	}
	add(p.o.NewBots != nil, secBots, addBotPath, "Add a bot", "On any platform, with its token.", "new create")
	add(p.o.Keys != nil, secAccess, newKeyPath, "Make an API key", "For a program that talks to the gateway.", "new create token")
	add(p.o.Keys != nil, secAccess, rotatePath, "New secret for an API key", "The old secret ends at once or later.", "rotate")
	add(p.hasBackups(), secBackups, pathOf(secBackups), "Backup now", "The gateway keeps running.", "make create")
	add(p.hasBackups(), secBackups, pathOf(secBackups)+"#list", "Restore a backup", "What is there now is saved first.", "undo go back")
	add(p.hasBackups(), secBackups, pathOf(secBackups)+"?open=restore#restore", "Restore a backup on another machine", "How to, step by step.", "move")
	for _, b := range p.botKnobs() {
		add(true, secBots, pathOf(secBots)+"#bot-"+b.Bot, "Bot "+b.Bot, "Who may talk to it, its token; start, stop and test it.", b.Platform+" policy")
		if can, _ := p.ownTexts(b.Bot); can {
			add(true, secBots, textsPath+"/"+url.PathEscape(b.Bot), "Texts of "+b.Bot, "What people read before they have access.", "welcome denied")
		}
	}
	all := p.o.Settings.Settings()
	knobs := p.knobs(all)
	for _, s := range all {
		name := short(s.Name)
		in := sectionOf(name)
		h := hit{Path: in.Path() + "#v-" + name, Label: s.Name, About: s.About, Section: in.Label, Setting: []Setting{s}}
		if i := slices.IndexFunc(knobs, func(k knob) bool { return k.Short == name }); i >= 0 {
			h.Path, h.Label, h.words = in.Path()+"#"+name, knobs[i].Label, knobs[i].Hint+" "+knobs[i].Group
		} else if name == logLevel {
			h.Path, h.Label = in.Path()+"#"+name, "Log level"
		}
		out = append(out, h)
	}
	return out
}

func pathOf(key string) string { return settingsPath + "/" + key }

// ---- a section

// sectionBody is what the pages of all sections have.
type sectionBody struct {
	CSRF     string
	Section  section
	Sections []section
	Knobs    []knobGroup
	Known    []string  // models, to choose from
	Fixed    []Setting // the section's settings that are read at start
	Field    string    // that Fault is about; "": the whole form
	Fault    string    // why nothing was saved
	Typed    url.Values

	Bots    []botKnobs
	CanAdd  bool
	Backups backupsPart
	Keys    keysPart
	Groups  []settingGroup
	Log     logPart
}

type settingGroup struct {
	Name, Path string
	Settings   []Setting
}

// sectionPage shows the section called key.
func (p *valuePages) sectionPage(key string) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		return p.showSection(w, r, http.StatusOK, key, sectionBody{})
	}
}

func (p *valuePages) showSection(w http.ResponseWriter, r *http.Request, status int, key string, b sectionBody) error {
	v := page.View{In: "settings", Still: b.Fault != ""}
	b.CSRF, b.Sections = page.Token(r), p.sections(key)
	b.Section = b.Sections[slices.IndexFunc(b.Sections, func(s section) bool { return s.Current })]
	v.Title = b.Section.Label
	all := p.o.Settings.Settings()
	for _, k := range p.knobs(all) {
		if sectionOf(k.Short).Key == key {
			b.Knobs = inGroups(b.Knobs, k.typed(b))
		}
	}
	for _, s := range all {
		if sectionOf(short(s.Name)).Key == key && !isKnob(b.Knobs, s.Name) {
			b.Fixed = append(b.Fixed, s)
		}
	}
	name := "settings-section"
	switch key {
	case secBots:
		name, v.Topics = "settings-bots", []core.Topic{core.TopicBots, core.TopicPeople}
		b.CanAdd, b.Bots = p.o.NewBots != nil, p.botKnobs()
		for i := range b.Bots {
			b.Bots[i].CSRF = b.CSRF
			b.Bots[i].Texts, b.Bots[i].OwnTexts = p.ownTexts(b.Bots[i].Bot)
		}
	case secModels:
		b.Known = p.links.Models()
	case secAccess:
		name, v.Still = "settings-access", v.Still || b.Keys.Secret != "" || b.Keys.Error != ""
		p.keysOf(r, &b.Keys)
	case secBackups:
		name, v.Topics = "settings-backups", []core.Topic{core.TopicJobs}
		v.Every = p.backupsOf(r, &b.Backups)
	case secVariables:
		name = "settings-variables"
		b.Log = logOf(all)
		b.Groups = grouping(all)
	}
	v.Body = b
	return p.frame.Show(w, r, status, name, v)
}

func isKnob(groups []knobGroup, name string) bool {
	return slices.ContainsFunc(groups, func(g knobGroup) bool {
		return slices.ContainsFunc(g.Knobs, func(k knob) bool { return k.Name == name })
	})
}

// grouping returns all settings by section.
func grouping(all []Setting) (groups []settingGroup) {
	for _, in := range sections {
		g := settingGroup{Name: in.Label, Path: in.Path()}
		if in.Key == secVariables {
			g.Name = "Everything else"
		}
		for _, s := range all {
			if sectionOf(short(s.Name)).Key == in.Key {
				g.Settings = append(g.Settings, s)
			}
		}
		if len(g.Settings) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// takesEffect returns when a change of a setting takes effect, as text.
func takesEffect(s Setting) string {
	switch s.Effect {
	case "at once":
		return "at once"
	case "next message":
		return "from the next message"
	}
	return "after a restart"
}
