// Package council answers turns with several models: it decides which members are
// asked, compares, rates and reviews what they answer, and chooses whose answer is
// shown. The loop, the tools, the transcript and the bill are the run's
// (orchestrator.Sitting).
package council

import (
	"context"
	"log/slog"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/council/ledger"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Ledger stores questions, what members return, and what outcomes say about them;
// *ledger.Store is one.
type Ledger interface {
	Begin(ctx context.Context, q ledger.Query) (stored ledger.Query, resumed bool, err error)
	Stages(ctx context.Context, query string) ([]ledger.Stage, error)
	// SaveAll stores stages in one transaction, in which also is called.
	SaveAll(ctx context.Context, stages []ledger.Stage, also func(context.Context, *store.Tx) error) error
	// Finish stores in tx how a question ended.
	Finish(ctx context.Context, tx *store.Tx, r ledger.Result) error
}

// Evidence is the outcomes about models; *ledger.Store is one.
type Evidence interface {
	Records(ctx context.Context, models []string) (map[string]*choice.Record, error)
	// ResolveDomain returns the domain of a name that a model used, and counts the name unless
	// it was counted for this answer. near is as in domains.Tree.Resolve.
	ResolveDomain(ctx context.Context, model, raw string, counted bool, near func(name string, labels []string) []float64) (domains.Resolution, error)
	// Tree returns the domains in effect.
	Tree(ctx context.Context) (*domains.Tree, error)
}

// Members are the models of a council.
type Members struct {
	Models []llm.Model   // 2 to 9; the first is asked where nothing is known
	Judge  llm.Model     // nil: a member judges
	Cheap  llm.Model     // judges whether answers follow what a user wants of them; nil: Judge does
	Wait   time.Duration // for further answers after the second
	Most   int64         // of one question, in millionths of a dollar; 0: no limit
}

// Options of New. All but Near, Metrics, Pick and Log are required.
type Options struct {
	Members  func() Members // as they are configured now
	Ledger   Ledger
	Evidence Evidence
	// Near returns how near the name of a domain, in an answer to a user, is in meaning to
	// each of labels, from 0 to 1; nil where that is not known. Nil: words are compared alone.
	Near    func(ctx context.Context, user int64, name string, labels []string) []float64
	Pick    func(query, model string) string // data of the button that picks an answer; nil: no buttons
	Clock   core.Clock
	Metrics *Metrics
	Log     *slog.Logger // gets how each answer was rated, for diagnosis
}

// A Council is an orchestrator.Council. It is safe for concurrent use.
type Council struct{ o Options }

// New returns a council.
func New(o Options) *Council {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Council{o}
}

// Level implements orchestrator.Council.
func (c *Council) Level(model string) string { return core.CouncilLevel(model) }

// Answer implements orchestrator.Council.
func (c *Council) Answer(ctx context.Context, s *orchestrator.CouncilTurn) (orchestrator.Verdict, error) {
	h, err := c.open(ctx, s)
	if err != nil {
		return orchestrator.Verdict{}, err
	}
	switch h.level {
	case choice.Fast, choice.Balanced:
		err = h.single(ctx)
	default:
		err = h.several(ctx)
	}
	if err == nil && ctx.Err() == nil {
		err = h.follow(ctx)
	}
	if err != nil || ctx.Err() != nil {
		return orchestrator.Verdict{Text: h.shown(), Model: h.primary}, err
	}
	return h.end(), nil
}

// open reads what an earlier attempt has stored, and decides on the level.
func (c *Council) open(ctx context.Context, s *orchestrator.CouncilTurn) (*hearing, error) {
	h := &hearing{c: c, s: s, id: s.Turn.Run, asked: s.Level, m: c.o.Members(), stored: map[place]ledger.Stage{}, saved: map[place]bool{}}
	h.question = s.Turn.Text()
	h.level = h.affordable(s.Level)
	tree, err := c.o.Evidence.Tree(ctx)
	if err != nil {
		return nil, err
	}
	q, resumed, err := c.o.Ledger.Begin(ctx, ledger.Query{ID: h.id, User: s.Turn.User, Conversation: s.Turn.Session.ID, Run: s.Turn.Run,
		Level: h.level, Asked: h.asked, Question: h.question, Domains: tree.Refine(domains.Classify(h.question), h.question), Seed: seedOf(h.id)})
	if err != nil {
		return nil, err
	}
	h.level, h.asked, h.domains, h.seed = q.Level, q.Asked, q.Domains, q.Seed
	if h.level != h.asked {
		h.notes = append(h.notes, texts.Text("council_lowered", texts.With{"Asked": h.asked, "Level": h.level}))
	}
	if resumed {
		stages, err := c.o.Ledger.Stages(ctx, h.id)
		if err != nil {
			return nil, err
		}
		for _, st := range stages {
			h.stored[place{st.Stage, st.Model}] = st
		}
	}
	var names []string
	for _, m := range h.m.Models {
		names = append(names, m.About().Name)
	}
	records, err := c.o.Evidence.Records(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		h.members = append(h.members, choice.Member{Model: name, Confidence: unreported, Record: records[name]})
	}
	h.route = choice.Choose(h.seed, h.domains, h.members)
	h.began = c.o.Clock.Now()
	return h, nil
}
