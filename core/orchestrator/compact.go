package orchestrator

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// Budgets of a conversation, in tokens.
const (
	historyBudget = 50_000  // of earlier turns
	runBudget     = 120_000 // of all that a run works on
)

// Backups keeps the notes that models write on conversations. A compaction uses the newest
// one, and what it writes is one.
type Backups interface {
	// Note returns the newest note of a model on a conversation; false without one.
	Note(ctx context.Context, session, model string) (handoff.Note, bool, error)
	// Keep stores a note that a run has made. One that is not valid is left out.
	Keep(ctx context.Context, sess *session.Session, model string, n handoff.Note) error
	// Count adds an answered turn, in the transaction that ends it.
	Count(ctx context.Context, tx *store.Tx, t handoff.Turn) error
}

// compact inserts a note in place of an over-long conversation's older part.
// Where that does not work out the conversation stays as it is: the newest
// part is given to the model in any case.
func (t *talk) compact(ctx context.Context, budget int) error {
	r := t.r
	c, needed, err := r.conv.NeedsCompaction(r.budget(budget))
	if err != nil || !needed {
		return err
	}
	done, err := t.shorten(ctx, c, r.budget(budget))
	if err != nil {
		return err
	}
	if !done {
		t.long = false // not again in this run: each try costs as much as an answer
		return nil
	}
	past, _, err := r.conv.History(r.budget(budget))
	if err != nil {
		return err
	}
	t.req.Messages = r.messagesForModel(past, r.memory.Relevant)
	t.show(core.Warning{Code: "compacted", Message: "The conversation was long: its older part was summed up."})
	return nil
}

// shorten replaces the older part of the conversation by the model's newest note on it,
// or by a new one. A failure of the model leaves it as it is, and is logged.
func (t *talk) shorten(ctx context.Context, c transcript.Compaction, budget int) (done bool, err error) {
	r := t.r
	if done, err := r.reuse(ctx, budget); done || err != nil {
		return done, err
	}
	text, fault, err := t.summary(ctx, c.Messages)
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	if fault != nil || text == "" {
		r.o.Log.Warn("conversation not summed up", "session", r.t.Session.ID, "err", fault)
		return false, nil
	}
	if err := r.conv.Compact(text, c.Keep); err != nil {
		return false, err
	}
	return true, r.keepNote(ctx, text, c)
}

// mostBehind is the part of a budget, in percent, that messages behind a note may take.
const mostBehind = 50

// reuse replaces what the model's newest note covers with the note; false where there is
// none, or too much was written since.
func (r *run) reuse(ctx context.Context, budget int) (bool, error) {
	if r.o.Backups == nil {
		return false, nil
	}
	n, ok, err := r.o.Backups.Note(ctx, r.t.Session.ID, r.name)
	if err != nil {
		r.o.Log.Warn("the newest context backup cannot be used", "session", r.t.Session.ID, "err", err)
		return false, nil
	}
	if !ok {
		return false, nil
	}
	keep, tokens, ok, err := r.conv.Behind(n.Covers, budget)
	if err != nil || !ok || tokens+handoff.Tokens(n.Text) > budget*mostBehind/100 {
		return false, err
	}
	return true, r.conv.Compact(n.Text, keep)
}

// keepNote stores what the model wrote as its note on the messages that c takes out.
func (r *run) keepNote(ctx context.Context, text string, c transcript.Compaction) error {
	if r.o.Backups == nil || c.Keep == 0 || len(c.Messages) == 0 { // within a turn
		return nil
	}
	n := handoff.Note{Text: text, Covers: c.Messages[len(c.Messages)-1].Line()}
	return r.o.Backups.Keep(ctx, &r.t.Session, r.name, n)
}

// summary returns the note that the model writes on messages, "" where it wrote nothing.
// The model reads neither the memory of the person nor what was overheard: others, and later
// turns, read the note.
func (t *talk) summary(ctx context.Context, past []transcript.Message) (string, *llm.Fault, error) {
	r := t.r
	system := ""
	if t.req.System != "" {
		var err error
		if system, _, err = r.prompt(ctx, r.t.Dir, false); err != nil {
			return "", nil, err
		}
	}
	messages := append(r.messagesForModel(past, ""), llm.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: handoff.Ask(r.t.Shared())}}})
	sub := &talk{r: r, name: t.name, show: func(core.Event) {}, keep: func(transcript.Message) error { return nil },
		req: &llm.Request{System: system, Messages: messages, Tools: t.req.Tools, MaxTokens: r.answerTokens(), Sender: t.req.Sender}}
	m, fault, err := sub.ask(ctx)
	text := strings.TrimSpace(core.BlocksText(m.Blocks))
	if note, faults := handoff.Check(text); len(faults) == 0 {
		text = note
	}
	return text, fault, err
}

// messagesForModel returns the conversation, and behind it what was said, as the model may read it again,
// with the memory in front of the message of this run, or of the summary that it is in. Blocks
// may be those of past: they are not to be changed.
func (r *run) messagesForModel(past []transcript.Message, memory string, said ...transcript.Message) []llm.Message {
	out, spoken, summed := make([]llm.Message, 0, len(past)+len(said)+2), -1, -1 // an answer and its results may follow
	for _, part := range [][]transcript.Message{transcript.ForModel(past, r.name), said} {
		for i := range part {
			m := &part[i]
			if m.Role == "assistant" && m.Run == r.t.Run && (m.Stop == "aborted" || m.Stop == "error") {
				continue // an interrupted attempt without a stored end
			}
			msg := r.messageForModel(m)
			if len(msg.Blocks) == 0 {
				continue
			}
			switch out = append(out, msg); {
			case m.Summary:
				summed = len(out) - 1
			case r.speaks(m):
				spoken = len(out) - 1
			}
		}
	}
	if spoken < 0 {
		spoken = summed
	}
	if spoken >= 0 && memory != "" {
		out[spoken].Blocks = append([]core.Block{{Type: "text", Text: memory}}, out[spoken].Blocks...)
	}
	return out
}
