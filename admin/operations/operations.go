// Package operations is the panel's pages about the running gateway: its bots,
// its queue, its models with their cost, and the audit log.
package operations

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/usage"
)

// What the pages show and do. A nil one takes its page, or its section, out.
type (
	// Bots is how the connectors are, and their switches (connectors.Hub).
	Bots interface {
		States() []core.BotState
		Start(bot string) error
		Stop(bot string) error
		// Test checks the bot's credentials with one cheap call and returns
		// the name the platform knows it by.
		Test(ctx context.Context, bot string) (username string, err error)
	}
	// Lanes lists what waits and what failed (inspect.Reader).
	Lanes interface {
		Depths(ctx context.Context) ([]inspect.Depth, error)
		Lanes(ctx context.Context, limit int) ([]inspect.LaneRow, error)
		// Dead returns messages whose answer failed too often.
		Dead(ctx context.Context, limit int) ([]inspect.DeadRow, error)
		// Unsure returns replies that failed or whose outcome is unknown.
		Unsure(ctx context.Context, limit int) ([]inspect.SendRow, error)
	}
	// Dead decides on the messages of Lanes.Dead (queue.Queue).
	Dead interface {
		Retry(ctx context.Context, seq int64, by core.Actor) error
		Dismiss(ctx context.Context, seq int64, by core.Actor) error
	}
	// Sends decides on the replies of Lanes.Unsure, and by RetryNow and GiveUp on those of
	// Options.Retrying (outbox.Outbox).
	Sends interface {
		SendAgain(ctx context.Context, seq int64, by core.Actor) error
		Settle(ctx context.Context, seq int64, by core.Actor) error
		RetryNow(ctx context.Context, seq int64, by core.Actor) error
		GiveUp(ctx context.Context, seq int64, by core.Actor) error
	}
)

// Options for New.
type Options struct {
	Bots Bots // the page Bots
	// Audit records an act on a bot ("bot.start", "bot.stop"); the other sources
	// write the audit log themselves. nil: not recorded.
	Audit func(ctx context.Context, by core.Actor, did, bot string) error
	Lanes Lanes // any of these three: the page Queue
	Dead  Dead
	Sends Sends
	// Stalled returns updates that are held or rate-limited (inspect.Reader); nil:
	// the page Queue does not list them.
	Stalled func(ctx context.Context, limit int) ([]inspect.Step, error)
	// Retrying returns replies that wait for their next try (inspect.Reader); nil: the
	// page Queue does not list them.
	Retrying func(ctx context.Context, limit int) ([]inspect.SendRow, error)
	Models   Models // with Quantile: the page Models
	// Failing returns the configured models that fail now; nil: the overview does not
	// say.
	Failing func() []Failing
	// Quantile returns the duration that a part of the answers did not exceed;
	// counts are those of each class of durations.
	Quantile func(counts []int64, part float64) time.Duration
	// Usage returns what models took since a time, one row per model
	// (usage.Ledger); nil: the overview does not say.
	Usage    func(ctx context.Context, since time.Time) ([]usage.Total, error)
	AuditLog AuditLog // the page Audit
}

// Links are what other pages of the panel offer to these.
type Links struct {
	Bots       func() []core.BotState               // sorted by name
	Names      func(ctx context.Context) page.Names // of users
	EventNames func(ctx context.Context) EventNames // the names that the audit log needs
}

// Pages are the pages of this package.
type Pages struct {
	bots   botPages
	queue  queuePages
	models modelPages
	audit  auditPages
}

type (
	botPages struct {
		frame  *page.Frame
		o      Options
		states func() []core.BotState
	}
	queuePages struct {
		frame *page.Frame
		o     Options
	}
	modelPages struct {
		frame *page.Frame
		o     Options
		users func(ctx context.Context) page.Names
	}
	auditPages struct {
		frame      *page.Frame
		log        AuditLog
		eventNames func(ctx context.Context) EventNames
	}
)

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	f.Templates(files, template.FuncMap{})
	p := &Pages{bots: botPages{f, o, l.Bots}, queue: queuePages{f, o}, models: modelPages{f, o, l.Names}, audit: auditPages{f, o.AuditLog, l.EventNames}}
	if o.Models != nil {
		f.Page("GET "+modelsPath, p.models.modelsPage)
		f.Post("POST "+modelsPath+"/test", p.models.testModel)
	}
	if o.AuditLog != nil {
		f.Page("GET "+auditPath, p.audit.auditPage)
		f.Page("GET "+auditPath+"/export", p.audit.auditExport)
	}
	if o.Bots != nil {
		f.Page("GET "+botsPath, p.bots.botsPage)
		f.Post("POST "+botsPath+"/{bot}/{verb}", p.bots.act)
	}
	p.queue.routes()
	return p
}

// Items returns the pages for the menu.
func (p *Pages) Items() (items []page.Item) {
	if p.bots.o.Bots != nil {
		items = append(items, page.Item{Key: "bots", Path: botsPath, Label: "Bots", Words: "not well", Urgent: true,
			Count: func(context.Context) int { return len(unwell(p.bots.states())) }})
	}
	if p.queue.there() {
		e := page.Item{Key: "queue", Path: queuePath, Label: "Queue", Words: "stuck", Urgent: true}
		if p.queue.o.Lanes != nil {
			e.Count = func(ctx context.Context) int { return p.queue.stuck(ctx).Value.stuck() }
		}
		items = append(items, e)
	}
	if p.models.o.Models != nil {
		items = append(items, page.Item{Key: "models", Path: modelsPath, Label: "Models"})
	}
	if p.audit.log != nil {
		items = append(items, page.Item{Key: "audit", Path: auditPath, Label: "Audit"})
	}
	return items
}

// BotsAnswer returns the overview's answer on the bots; false without them.
func (p *Pages) BotsAnswer() (page.Answer, bool) {
	if p.bots.o.Bots == nil {
		return page.Answer{}, false
	}
	return p.bots.answer(), true
}

// QueueAnswer returns the overview's answer on the queue; false without it.
func (p *Pages) QueueAnswer(ctx context.Context) (page.Answer, bool) {
	if p.queue.o.Lanes == nil {
		return page.Answer{}, false
	}
	return p.queue.answer(ctx), true
}

// ModelsAnswer returns the overview's answer on models that fail; false without any.
func (p *Pages) ModelsAnswer() (page.Answer, bool) {
	if p.models.o.Failing == nil {
		return page.Answer{}, false
	}
	return failingAnswer(p.models.o.Failing())
}

// CostAnswer returns the overview's answer on today's cost; false without it.
func (p *Pages) CostAnswer(ctx context.Context) (page.Answer, bool) {
	if p.models.o.Usage == nil {
		return page.Answer{}, false
	}
	return p.models.answer(ctx), true
}

// Switch starts, stops or tests {bot}, with {verb}.
func (p *Pages) Switch(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return p.bots.act(r, by)
}

// Models returns the names of the configured models.
func (p *Pages) Models() []string { return p.models.names() }
