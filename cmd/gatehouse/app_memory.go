package main

import (
	"context"

	panelmemory "gatehouse/admin/memory"
	"gatehouse/cmd/gatehouse/remembering"
	chatask "gatehouse/connectors/chat/ask"
	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	chatcommand "gatehouse/core/command"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
	corememory "gatehouse/core/memory"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/memory/extract"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	apimemory "gatehouse/web/api/memory"
)

// remembered is what users want of answers.
type remembered struct {
	corrections *corememory.Store
	handoff     func(ctx context.Context, s session.Session, reader int64) (text string, err error)
	extractor   *extract.Reader // reads messages after they were answered
	recalls     bool            // corrections are used in runs and shown in chats
}

// remembers builds the memory of corrections, and returns it as runs use it.
func (a *app) remembers() orchestrator.Memory {
	kept := corememory.Options{DB: a.db, Clock: a.clock, Log: a.log, Box: a.sealed, Metrics: corememory.NewMetrics(a.reg), Domain: domainOf}
	if m := a.library.Meaning; m != nil {
		kept.Near = func(ctx context.Context, user int64, text string, others []string) []float64 {
			return m.Near(ctx, user, user, text, others)
		}
	}
	a.corrections = corememory.New(kept)
	handoffs := remembering.Handoffs{DB: a.db, Notes: a.handoffs}
	if a.recalls = bool(a.cfg.Memory); a.recalls {
		handoffs.Store = a.corrections
	}
	a.handoff = handoffs.Markdown
	o := remembering.Options{Store: a.corrections, Off: !a.recalls, Log: a.log, Clock: a.clock, Open: a.asks.Open}
	cards := remembering.Cards{Clock: a.clock, Open: a.asks.Open, Post: a.outbox.Post, Reach: a.pairing.People.Reach,
		Render: func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) }}
	a.extractor = extract.New(extract.Options{DB: a.db, Clock: a.clock, Log: a.log, Memory: a.corrections, Usage: a.usage, Cost: a.spending.cost, Registry: a.reg,
		Day: allowance.Day{DB: a.db, Clock: a.clock, Tokens: func() int64 { return a.cfg.MemoryBudget.Tokens }}, Ask: cards.Ask, Known: a.pairing.People.Remembered,
		Models: func() (cheap, guest llm.Model) {
			return readers(a.models.Now())
		}})
	o.Reader = a.extractor
	if len(a.cfg.Council) > 0 {
		o.Judged = a.council
	}
	return remembering.New(o)
}

// readers returns the models that read messages for corrections: those of guests go to no
// model but that of GUEST_MODEL, if there is one.
func readers(m *registry.Models) (cheap, guest llm.Model) {
	cheap = cheapOf(m)
	if m.Guest == nil {
		return cheap, cheap
	}
	return cheap, reads(m.Guest)
}

// cheapOf returns the model of TITLE_MODEL, nil for none and for one that does not read.
func cheapOf(m *registry.Models) llm.Model { return reads(m.Title) }

// reads returns m; nil for one that is no language model of its own: that of tests, and the
// council.
func reads(m llm.Model) llm.Model {
	if m == nil || registry.Local(m.About().Name) || core.CouncilLevel(m.About().Name) != "" {
		return nil
	}
	return m
}

// memoryCommands returns the chat commands of the memory.
func (m *remembered) memoryCommands(db *store.DB, sessions *session.Store, asks *chatask.Buttons, clock core.Clock) []chatcommand.Command {
	if !m.recalls {
		return nil
	}
	place := func(ctx context.Context, at core.Address) (corememory.Place, error) {
		s, _, err := sessions.Current(ctx, db, at)
		return corememory.Place{Session: s.ID, Project: s.Project}, err
	}
	return chatmemory.New(m.corrections, place, asks, clock).Commands()
}

// apiMemory returns what the memory's endpoints need.
func (m *remembered) apiMemory() apimemory.Options {
	return apimemory.Options{Store: m.corrections}
}

// panelMemory returns what the panel's page of the memory needs.
func (m *remembered) panelMemory() panelmemory.Options {
	return panelmemory.Options{Store: m.corrections}
}
