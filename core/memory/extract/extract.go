// Package extract has a model read messages for corrections after they were answered: it says
// which sentences of the person are some, and of which type. The texts are the person's own;
// no text of a model is stored. Whatever fails leaves what the rules found.
package extract

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/strict"
	"gatehouse/core/memory"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/core/usage/charged"
)

// Limits.
const (
	maxWaiting   = 64   // messages
	maxSentences = 10   // of one message
	maxFindings  = 2    // new ones in one message
	maxAnswer    = 2000 // bytes of the answer that the model reads
	maxTokens    = 400  // of a reply
	maxReply     = 8 << 10
	maxTime      = time.Minute
)

// A Job is one message.
type Job struct {
	memory.Message
	Run       string
	Bot       string
	At        core.Address // the chat; without a Chat none is notified
	Trust     core.Trust
	Found     string   // the id of what the rules ask about; "" for nothing
	Sentences []string // memory.Readable; the first is that of Found, if there is one
}

// guest reports whether the message is a guest's.
func (j *Job) guest() bool { return j.Trust <= core.Sandboxed }

// Options of New. All are required.
type Options struct {
	DB     *store.DB
	Clock  core.Clock
	Log    *slog.Logger
	Memory *memory.Store
	Usage  *usage.Ledger
	Day    allowance.Day
	// Cost is a call's price in millionths of a dollar, and whether it is known.
	Cost func(model string, u core.Tokens) (int64, bool)
	// Models returns the model that reads, and the model that reads messages of guests; nil for
	// none.
	Models func() (cheap, guest llm.Model)
	// Known reports whether a user is known and was not forgotten.
	Known func(ctx context.Context, q store.Queryer, user int64) (bool, error)
	// Ask notifies the person in the chat of a card, in the transaction that stores it.
	Ask      func(ctx context.Context, tx *store.Tx, j *Job, l memory.Learnt) error
	Registry prometheus.Registerer
}

// A Reader reads messages, one at a time. It is safe for concurrent use.
type Reader struct {
	o    Options
	jobs chan Job
	read *prometheus.CounterVec
}

// Outcomes of a message.
const (
	outcomeRead    = "read"
	outcomeFailed  = "failed"  // the model, or its reply
	outcomeBudget  = "budget"  // of the day or of the user
	outcomeDropped = "dropped" // too many waited, or the person was forgotten
)

// New returns a Reader; Run does its work.
func New(o Options) *Reader {
	r := &Reader{o: o, jobs: make(chan Job, maxWaiting), read: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_memory_read_total", Help: "Messages that a model was to read for corrections, by outcome.",
	}, []string{"outcome"})}
	o.Registry.MustRegister(r.read)
	for _, outcome := range []string{outcomeRead, outcomeFailed, outcomeBudget, outcomeDropped} {
		r.read.WithLabelValues(outcome)
	}
	return r
}

// On reports whether a model reads messages.
func (r *Reader) On() bool {
	cheap, _ := r.o.Models()
	return cheap != nil && r.o.Day.Tokens() > 0
}

// Offer has a message read later. It does not block: where too many wait, or the gateway ends
// before it is read, the rules alone decide.
func (r *Reader) Offer(j Job) {
	if r.model(&j) == nil {
		return
	}
	j.Answer, j.Question = cut(j.Answer), cut(j.Question) // many may wait
	select {
	case r.jobs <- j:
	default:
		r.read.WithLabelValues(outcomeDropped).Inc()
	}
}

// model returns the model that reads a message; nil for none.
func (r *Reader) model(j *Job) llm.Model {
	cheap, guest := r.o.Models()
	if j.guest() {
		return guest // guests' messages go to that model only
	}
	return cheap
}

// Run reads messages until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-r.jobs:
			outcome, err := r.Read(ctx, j)
			if ctx.Err() != nil {
				return
			}
			r.read.WithLabelValues(outcome).Inc()
			if err != nil {
				r.o.Log.Info("a message was read for corrections by the rules alone", "run", j.Run, "outcome", outcome, "err", err)
			}
		}
	}
}

// Read has the model read one message, and stores what it found.
func (r *Reader) Read(ctx context.Context, j Job) (outcome string, err error) {
	j.Sentences = j.Sentences[:min(len(j.Sentences), maxSentences)]
	model := r.model(&j)
	if model == nil || len(j.Sentences) == 0 {
		return outcomeFailed, nil
	}
	if known, err := r.o.Known(ctx, r.o.DB, j.User); err != nil || !known {
		return outcomeDropped, err
	}
	who := allowance.Who{User: j.User, Guest: j.guest()}
	left, err := r.o.Day.Left(ctx, who)
	if err != nil || left == 0 {
		return outcomeBudget, err
	}
	c := call{r: r, job: &j, model: model}
	findings, err := c.findings(ctx)
	if e := r.spend(context.WithoutCancel(ctx), who, c.spent); err == nil {
		err = e
	}
	if core.KindOf(err) == core.Busy {
		return outcomeBudget, err
	}
	if err != nil {
		return outcomeFailed, err
	}
	return outcomeRead, r.keep(ctx, &j, findings)
}

// spend counts tokens for a user; of one who was forgotten meanwhile, they are no one's.
func (r *Reader) spend(ctx context.Context, who allowance.Who, tokens int64) error {
	return r.o.DB.Tx(ctx, func(tx *store.Tx) error {
		known, err := r.o.Known(ctx, tx, who.User)
		if err != nil {
			return err
		}
		if !known {
			return r.o.Day.Spend(ctx, tx, allowance.Who{Guest: who.Guest}, tokens)
		}
		return r.o.Day.Spend(ctx, tx, who, tokens)
	})
}

// keep stores what the model found: each finding in a transaction of its own, in which the
// person is also asked.
func (r *Reader) keep(ctx context.Context, j *Job, findings []finding) error {
	fresh := 0
	for _, f := range findings {
		found := memory.Finding{Sentence: j.Sentences[f.Sentence-1], Type: f.Type, Scope: f.Scope}
		refines := j.Found != "" && f.Sentence == 1
		if !refines {
			if fresh++; fresh > maxFindings {
				continue
			}
		}
		err := r.o.DB.Tx(ctx, func(tx *store.Tx) error {
			if known, err := r.o.Known(ctx, tx, j.User); err != nil || !known {
				return err
			}
			if refines {
				return r.o.Memory.Refine(ctx, tx, j.User, j.Found, f.Type)
			}
			m := j.Message
			m.Source = fmt.Sprintf("%s:%d", j.Source, f.Sentence)
			l, err := r.o.Memory.Propose(ctx, tx, &m, found)
			if err != nil || l.Outcome != memory.Asked {
				return err
			}
			return r.o.Ask(ctx, tx, j, l)
		})
		if err != nil {
			return fmt.Errorf("store what a model found in a message: %w", err)
		}
	}
	return nil
}

// A call is what reading one message takes.
type call struct {
	r     *Reader
	job   *Job
	model llm.Model
	spent int64 // tokens
}

// findings asks the model, and once more where its reply cannot be read.
func (c *call) findings(ctx context.Context) ([]finding, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	messages := []llm.Message{said("user", prompt(c.job))}
	reply, err := c.ask(ctx, messages)
	if err != nil {
		return nil, err
	}
	found, bad := parse(reply, len(c.job.Sentences))
	if bad == nil {
		return found, nil
	}
	if reply == "" {
		reply = "(nothing)"
	}
	reply, err = c.ask(ctx, append(slices.Clip(messages), said("assistant", core.CutRunes(reply, 2000)), said("user", strict.Repair(bad, string(format.Schema)))))
	if err != nil {
		return nil, err
	}
	return parse(reply, len(c.job.Sentences))
}

func said(role, text string) llm.Message {
	return llm.Message{Role: role, Blocks: []core.Block{{Type: "text", Text: text}}}
}

// ask makes one call of the model, which counts against the budget and the usage of the
// person.
func (c *call) ask(ctx context.Context, messages []llm.Message) (string, error) {
	o, cold := &c.r.o, 0.0
	size := len(system)
	for _, m := range messages {
		size += len(m.Blocks[0].Text)
	}
	row := usage.Row{Run: c.job.Run, Session: c.job.Session, User: c.job.User, Bot: c.job.Bot, Background: true, Input: int64(size) / 4, Output: maxTokens}
	req := &llm.Request{System: system, Messages: messages, MaxTokens: maxTokens, Temperature: &cold, Format: format, Sender: llm.Sender{User: c.job.User, Trust: c.job.Trust}}
	text, spent, err := charged.Caller{DB: o.DB, Usage: o.Usage, Cost: o.Cost, Known: o.Known}.Ask(ctx, c.model, req, row, maxReply)
	c.spent += spent
	if err == nil && len(text) > maxReply {
		err = fmt.Errorf("the model returned more than %d bytes", maxReply)
	}
	return text, err
}
