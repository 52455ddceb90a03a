// Package settings is the panel's pages about how the gateway is set up: its
// settings, keys, backups, bots' policies and texts, and the files of agents.
package settings

import (
	"context"
	"embed"
	"html/template"
	"io"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/tool/mcp"
	"gatehouse/web/auth"
)

// What the pages show and do. A nil one takes its page, or its section, out.
type (
	// A Setting is one value, fit to be shown: of a secret only whether it is set.
	Setting struct {
		Name, Value, Source, About string
		Configured                 string // the value that a change made here overrides
		Effect                     string // of another value: "at once", "next message" or "restart"
	}
	// Settings are the configuration, and the few values that the panel changes.
	Settings interface {
		Settings() []Setting
		// SetLogLevel takes effect at once and is kept over a restart; "" is the
		// configured one.
		SetLogLevel(ctx context.Context, level string, by core.Actor) error
	}
	// Keys are the API's (auth.Keys).
	Keys interface {
		List(ctx context.Context, limit int) ([]auth.KeyRow, error)
		Create(ctx context.Context, n auth.NewKey, by core.Actor) (secret string, row auth.KeyRow, err error)
		KeyChanges
	}
	// KeyChanges change one key.
	KeyChanges interface {
		Change(ctx context.Context, id string, c auth.KeyChange, by core.Actor) (auth.KeyRow, error)
		Rotate(ctx context.Context, id string, o auth.KeyRotation, by core.Actor) (secret string, row auth.KeyRow, err error)
		Revoke(ctx context.Context, id string, by core.Actor) error
	}
	// Changes are what of the configuration can be changed here: kept, taken at
	// once, and audited. What can't be is core.Invalid and names its field.
	Changes interface {
		// Change gives settings values as the environment would hold them; the
		// configured value takes a change away.
		Change(ctx context.Context, values map[string]string, by core.Actor) error
		BotSettings() []BotSettings
		// SetPolicy with nil is as configured.
		SetPolicy(ctx context.Context, bot string, p *BotPolicy, by core.Actor) error
		// SetTokenFile has a bot use the token in a file; "" is as configured.
		SetTokenFile(ctx context.Context, bot, path string, by core.Actor) error
	}
	// NewBots adds bots that no configuration names. What can't be added is
	// core.Invalid, or core.Busy where the platform can't be asked; the text begins
	// with the field's name where one is wrong. No text has the token in it.
	NewBots interface {
		Platforms() []string
		// AddBot asks the platform who the token is, stores it and starts the bot.
		AddBot(ctx context.Context, b NewBot, by core.Actor) (Identified, error)
		// SetToken gives a bot that was added another token.
		SetToken(ctx context.Context, bot, token string, by core.Actor) (Identified, error)
		// RemoveBot stops a bot that was added and deletes its token.
		RemoveBot(ctx context.Context, bot string, by core.Actor) error
	}
	// A NewBot is a bot to be added.
	NewBot struct {
		Name, Platform, Token string
		BotPolicy
	}
	// Identified is what a platform states about a token.
	Identified struct {
		Account string   // the account's name
		Hints   []string // sentences: what is left to do on the platform
	}
	// A BotPolicy is how a bot treats users without access.
	BotPolicy struct{ DMPolicy, AllowedUsers, DMTrust, GroupTrust string }
	// A BotSettings is a bot as it is set.
	BotSettings struct {
		Bot, Platform string
		BotPolicy
		Token        string // its source, never its value
		Off          bool   // it stays stopped
		PolicyFromUs bool   // set here
		TokenFromUs  bool
		Added        bool // here; it can be removed here
	}
	// Texts are the messages that bots send automatically and that can be
	// changed. A bot or text that does not exist is core.NotFound.
	Texts interface {
		Texts(bot string) ([]BotText, error)
		// TryText returns the message that body makes. A fault in body is
		// core.Invalid and names the line.
		TryText(bot, name, body string) (BotText, error)
		// SetText sets the text; "" resets it to the default. version is that of
		// the text that was edited.
		SetText(ctx context.Context, bot, name, version, body string, by core.Actor) error
	}
	// A BotText is one of them, as it is now.
	BotText struct {
		Name, Title, When string
		Body, Default     string // as they are written
		Own               bool   // Body was written here
		Version           string
		Fields            []TextField
		Said              core.Part // with the example's values
		Size, Most        int       // of Said, and the limit of a message
	}
	// A TextField is what a text may fill in.
	TextField struct{ Name, About, Example string }
	// Backups are the archives that were made here.
	Backups interface {
		Backups(ctx context.Context) ([]BackupFile, error)
		// Backup starts one, which goes on after the request.
		Backup(ctx context.Context, by core.Actor) error
		OpenBackup(ctx context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error)
		RemoveBackup(ctx context.Context, name string, by core.Actor) error
	}
	// A BackupFile is one.
	BackupFile struct {
		Name, Path string
		Size       int64
		At         time.Time
		SHA256     string // "": unknown
		Before     bool   // made before another one was restored
	}
	// Agents are those that can answer (agent.Agents).
	Agents interface {
		List() []agent.Agent
		Choose(name string) (agent.Agent, []core.Warning)
	}
	// A Library is the other files in the directory of agents, and those of
	// them that can't be used (agent.Agents).
	Library interface {
		AllSkills() []agent.Skill
		Workspaces() []agent.Workspace
		Faults() []agent.Fault
		Notes() []agent.Fault
	}
	// Drafts are the files of agents, skills and workspaces as text (agent.Agents).
	Drafts interface {
		Text(file string) (text, version string, err error)
		Try(file, text string) agent.Draft
	}
)

// A SaveAgent writes a file of agents as agent.Agents.Save does, and notes in
// the audit who did.
type SaveAgent func(ctx context.Context, file, version, text string, by core.Actor) error

// Options for New.
type Options struct {
	Settings  Settings // the page Settings; the following are sections of it
	Keys      Keys
	Changes   Changes // what of it can be changed here
	NewBots   NewBots // with Changes
	Texts     Texts   // with Changes: the messages that bots send automatically
	Backups   Backups
	BackupJob func() (page.Job, bool) // the backup that is being made, or was; with Backups
	Restores  Restores                // with Backups: restores one
	Agents    Agents                  // with Library, Drafts and SaveAgent: the page Agents
	Library   Library
	Drafts    Drafts
	SaveAgent SaveAgent
	Servers   func() []mcp.Health // a section of it (mcp.Servers.Health)
}

// Links are what other pages of the panel offer to these.
type Links struct {
	Bots   func() []core.BotState // sorted by name
	Names  func(ctx context.Context) page.Names
	Models func() []string // names of the configured ones
	Switch page.Action     // starts, stops or tests {bot}; nil: not here
}

// Pages are the pages of this package.
type Pages struct {
	values valuePages
	agents agentPages
}

type (
	// valuePages are the settings, and what else is on their page.
	valuePages struct {
		frame *page.Frame
		o     Options
		links Links
	}
	// agentPages are the list of agents and the editor of their files.
	agentPages struct {
		frame *page.Frame
		o     Options
	}
)

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	f.Templates(files, template.FuncMap{"edit": editURL, "kind": agent.KindOf, "pieces": pieces, "effect": takesEffect, "short": short}, "settingsparts")
	p := &Pages{values: valuePages{f, o, l}, agents: agentPages{f, o}}
	p.values.routes()
	if p.agents.there() {
		f.Page("GET "+agentsPath, p.agents.agentsPage)
		f.Page("GET "+editPath, p.agents.editPage)
		f.Form("POST "+editPath, maxEdit, p.agents.edit)
	}
	return p
}

// Items returns the pages for the menu.
func (p *Pages) Items() (items []page.Item) {
	if p.agents.there() {
		items = append(items, page.Item{Key: "agents", Path: agentsPath, Label: "Agents", Words: "not well", Urgent: true,
			Count: func(context.Context) int { return p.agents.unwell() }})
	}
	if p.values.o.Settings != nil {
		items = append(items, page.Item{Key: "settings", Path: settingsPath, Label: "Settings"})
	}
	return items
}

// Agents returns the names of those that can be chosen to answer.
func (p *Pages) Agents() (names []string) {
	if p.agents.o.Agents == nil {
		return nil
	}
	for _, a := range p.agents.o.Agents.List() {
		names = append(names, a.Name)
	}
	return names
}

func (p *agentPages) there() bool {
	return p.o.Agents != nil && p.o.Library != nil && p.o.Drafts != nil && p.o.SaveAgent != nil
}

func (p *valuePages) routes() {
	if p.o.Settings == nil {
		return
	}
	p.frame.Page("GET "+settingsPath, p.indexPage)
	for _, in := range p.sections("") {
		p.frame.Page("GET "+in.Path(), p.sectionPage(in.Key))
	}
	p.frame.Post("POST "+settingsPath+"/log", p.setLogLevel)
	if p.o.Keys != nil {
		p.frame.Page("POST "+settingsPath+"/keys", p.newKey)
		p.frame.Page("POST "+settingsPath+"/keys/{id}/rotate", p.rotateKey)
		p.frame.Post("POST "+settingsPath+"/keys/{id}/change", p.changeKey)
		p.frame.Post("POST "+settingsPath+"/keys/{id}/revoke", p.revokeKey)
	}
	if p.o.Changes != nil {
		for _, key := range []string{secModels, secLimits, secAccess} {
			p.frame.Page("POST "+pathOf(key), p.saveSection(key))
		}
		p.frame.Post("POST "+settingsPath+"/bots/{bot}/policy", p.setPolicy)
		p.frame.Post("POST "+settingsPath+"/bots/{bot}/token", p.setTokenFile)
		if p.o.Texts != nil {
			p.frame.Page("GET "+textsPath+"/{bot}", p.textsPage)
			p.frame.Page("GET "+textsPath+"/{bot}/{name}", p.textPage)
			p.frame.Page("POST "+textsPath+"/{bot}/{name}", p.text)
		}
		if p.o.NewBots != nil {
			p.frame.Page("GET "+addBotPath, p.addBotPage)
			p.frame.Page("POST "+addBotPath, p.addBot)
			p.frame.Post("POST "+pathOf(secBots)+"/{bot}/newtoken", p.setToken)
			p.frame.Post("POST "+pathOf(secBots)+"/{bot}/remove", p.removeBot)
		}
		if p.links.Switch != nil {
			p.frame.Post("POST "+settingsPath+"/bots/{bot}/{verb}", p.switchBot)
		}
	}
	if p.hasBackups() {
		p.frame.Post("POST "+settingsPath+"/backups", p.backUp)
		p.frame.Secret("GET "+settingsPath+"/backups/{name}", p.downloadBackup)
		p.frame.Post("POST "+settingsPath+"/backups/{name}/delete", p.deleteBackup)
		if p.o.Restores != nil {
			p.frame.Post("POST "+settingsPath+"/backups/{name}/restore", p.restore)
			p.frame.Post("POST "+restorePath+"/cancel", p.cancelRestore)
			p.frame.Post("POST "+restorePath+"/dismiss", p.dismissRestore)
		}
	}
}
