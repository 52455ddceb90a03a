// Package views has the core as the panel and the API ask for it: the types that they
// declare are made of those of the core here, so that neither knows the other.
package views

import (
	"context"

	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/library"
	"gatehouse/core"
	"gatehouse/core/agent"
	coreask "gatehouse/core/ask"
	"gatehouse/core/backup/directory"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/erasure/tasks"
	"gatehouse/core/importer"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission/guard"
	"gatehouse/core/queue"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/pairing"
	"gatehouse/web/auth"
)

// Core is what the views read and change. All fields are required.
type Core struct {
	DB            *store.DB
	Clock         core.Clock
	Bus           *bus.Bus
	Queue         *queue.Queue
	Inspect       *inspect.Reader
	Pairing       *pairing.Gate
	AskStore      *coreask.Store
	Guard         *guard.Guard
	Ledger        *usage.Ledger
	AgentList     *agent.Agents
	Models        func(guest bool) []string // that guests, or others, may choose
	SessionStore  *session.Store
	Conversations Conversations
	Events        *runs.Store
	Orchestrator  *orchestrator.Orchestrator
	Running       *dispatch.Running
	BotList       *fleet.Bots
	Fleet         *fleet.Fleet
	Importer      *importer.Importer
	Tasks         *tasks.Tasks
	KeyStore      *auth.Keys
	Library       *library.Library
	Directory     *directory.Directory
}

// Conversations changes and deletes sessions, with what other packages keep of them.
type Conversations interface {
	Update(ctx context.Context, id string, change session.Change, by core.Actor) (session.Detail, error)
	Delete(ctx context.Context, id string, versions []string, by core.Actor) error
}

// The views, by what asks for them.

func (c *Core) Log() logView              { return logView{c.DB, c.Ledger} }
func (c *Core) Keys() keysView            { return keysView{c.KeyStore, c.DB, c.Pairing.People} }
func (c *Core) Bots() botsView            { return botsView{c.Fleet, c.Log()} }
func (c *Core) Runs() runsView            { return runsView{c} }
func (c *Core) Sessions() sessionsView    { return sessionsView{c} }
func (c *Core) Reader() sessionView       { return sessionView{c.SessionStore, c, true} }
func (c *Core) Failures() failuresView    { return failuresView{c.Events} }
func (c *Core) Asks() asksView            { return asksView{c.Guard, c} }
func (c *Core) Answers() answersView      { return answersView{c} }
func (c *Core) Agents() agentsView        { return agentsView{c.AgentList} }
func (c *Core) PanelBots() panelBots      { return panelBots{c.Fleet} }
func (c *Core) People() peopleView        { return peopleView{c} }
func (c *Core) Backups() backupsView      { return backupsView{c.Directory} }
func (c *Core) AgentFiles() agentFiles    { return agentFiles{c.AgentList, c.Log()} }
func (c *Core) Chats() sessionView        { return sessionView{c.SessionStore, c, false} }
func (c *Core) Acts() panelActs           { return panelActs{c} }
func (c *Core) Questions() panelQuestions { return panelQuestions{c.Answers()} }
func (c *Core) Index() panelIndex         { return panelIndex{c.Library} }
