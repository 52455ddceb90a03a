package admin

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

// What the pages show and do, each as narrow as its page needs. A nil one
// takes its page, or its section, out of the panel.
type (
	// Asks are the tool calls that wait for the operator's word and those just
	// settled (permission.Guard). The second decision on one is a core.Conflict
	// whose text says who was first.
	Asks interface {
		Pending(ctx context.Context, limit int) ([]permission.Waiting, error)
		Recent(ctx context.Context, limit int) ([]permission.Ask, error)
		// Grant allows the call once, or with a suggested pattern also what it covers.
		Grant(ctx context.Context, id, pattern string, by core.Actor) error
		Deny(ctx context.Context, id string, by core.Actor) error
	}
	// Chats are all conversations (session.Store with its database).
	Chats interface {
		List(ctx context.Context, f session.Filter) (page []session.Session, next string, err error)
		Detail(ctx context.Context, id string) (session.Detail, error)
		Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error)
		CommonTags(ctx context.Context) ([]session.TagCount, error)
	}
	// ChatActs are what the operator can do with one.
	ChatActs interface {
		Update(ctx context.Context, id string, c session.Change, by core.Actor) error
		// Lower sets a lower ceiling of trust; it never goes up again.
		Lower(ctx context.Context, id string, level core.Trust, by core.Actor) error
		// Stop ends the answer that is being made and says whether there was one.
		Stop(ctx context.Context, id string, by core.Actor) (bool, error)
		Ends
	}
	// Ends are the rest of what ChatActs are: where a conversation is led, and its end.
	Ends interface {
		// Bound is the chat that it is led in, and whether there is one.
		Bound(ctx context.Context, id string) (core.Address, bool, error)
		// Delete moves it to the trash.
		Delete(ctx context.Context, id string, by core.Actor) error
	}
	// Runs are the answers that were made (orchestrator.Events).
	Runs interface {
		Line(ctx context.Context, run string) (orchestrator.RunLine, error)
		LinesOf(ctx context.Context, session string, limit int) ([]orchestrator.RunLine, error)
	}
	// Traces is what became of messages (queue.Queue).
	Traces interface {
		Update(ctx context.Context, bot, id string) (queue.Step, error)
		UpdatesOf(ctx context.Context, run string) ([]queue.Step, error)
		RepliesOf(ctx context.Context, key string) ([]queue.Sent, error)
	}
	// Agents are the files of agents, skills and workspaces (agent.Agents).
	Agents interface {
		List() []agent.Agent
		Choose(name string) (agent.Agent, []core.Warning)
		AllSkills() []agent.Skill
		Workspaces() []agent.Workspace
		Faults() []agent.Fault
		Drafts
	}
	// Drafts are these files as text (agent.Agents).
	Drafts interface {
		Text(file string) (text, version string, err error)
		Try(file, text string) agent.Draft
	}
	// Grants are the patterns that stand (permission.Guard).
	Grants interface {
		Grants(ctx context.Context, session string, user int64) ([]permission.GrantRow, error)
		Revoke(ctx context.Context, id string, by core.Actor) error
	}
)
