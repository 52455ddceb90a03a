package orchestrator

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A Memory has what users want of answers, each user's own.
type Memory interface {
	// Remember learns from the turn's message, once for each run, and returns what
	// belongs into the prompt for it.
	Remember(ctx context.Context, t *Turn, s Said) (Remembered, error)
}

// Said is what a turn's message follows.
type Said struct {
	Voice    string // what the person said in voice messages of the turn; "" for nothing
	Question string // the same person's message before it; "" for none, and in groups
	Answer   string // a model's answer before it; "" for none
	Model    string // that gave it
	Run      string // in which it did; "" where that is not known
	Window   int    // of the model that is asked, in tokens; 0 is unknown
}

// Remembered is what is known of the person of a turn.
type Remembered struct {
	Standing string   // for the system prompt: it changes seldom
	Relevant string   // in front of the message, in the request alone
	IDs      []string // of the corrections in both
	Wishes   []Wish   // those of them that say how answers are to be
	Notice   string   // what was learnt of the message; "" for nothing
	Asides   []Aside  // the same for chats
	// Write stores that the answer was given with it, and what Asides ask, in the
	// transaction that ends the run. Nil: nothing.
	Write func(ctx context.Context, tx *store.Tx, g Given) error
}

// A Wish is what the person wants of answers, as it is in the prompt.
type Wish struct {
	ID     string
	Text   string // the person's own text
	Broken int    // answers in a row that did not follow it, at most 3
	Length bool   // it is about how long answers are
	// Met reports whether an answer follows it. Nil: a program cannot check that.
	Met func(answer string) bool
}

// A Given is what a run has answered.
type Given struct {
	Done   bool // there is an answer
	Model  string
	Answer string
	// Followed reports by the id of a wish whether the answer follows it, where a council
	// has found that out.
	Followed map[string]bool
	Again    []string // wishes for which the answer was written again
}

// An Aside is a message of its own behind a response.
type Aside struct {
	Key     string // of the reply
	Text    string // Markdown
	Buttons []core.Button
}

// askMemory has the memory learn from the message and recall what belongs to it.
func (r *run) askMemory(ctx context.Context) error {
	in := &r.t.Rows[0]
	if r.o.Memory == nil || r.t.User <= 0 || in.Bot == core.ScheduleBot {
		return nil
	}
	said, err := r.precedes()
	if err != nil {
		return err
	}
	said.Voice = r.files.Spoken(ctx, r.t.Rows)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.memory, err = r.o.Memory.Remember(ctx, r.t, said)
	if r.t.Shared() { // the prompt stays the same for all members
		r.memory.Standing, r.memory.Relevant = "", r.memory.Standing+r.memory.Relevant
	}
	return err
}

// promptOf returns the system prompt with what is remembered of the person.
func (r *run) promptOf(ctx context.Context, dir vault.Dir) (string, core.PromptMetadata, error) {
	if err := r.askMemory(ctx); err != nil {
		return "", core.PromptMetadata{}, err
	}
	text, meta, err := r.prompt(ctx, dir, true)
	meta.Memory = r.memory.IDs
	return text, meta, err
}

// precedes returns what the turn's message follows.
func (r *run) precedes() (s Said, err error) {
	s.Window = r.window()
	if before := r.t.options().Before; len(before) > 0 {
		for _, m := range before {
			if m.Role == "assistant" {
				s.Answer = m.Text
			} else {
				s.Question = m.Text
			}
		}
		return s, nil
	}
	past, _, err := r.conv.History(r.budget(historyBudget))
	if err != nil {
		return s, err
	}
	for i := len(past) - 1; i >= 0 && (s.Answer == "" || s.Question == ""); i-- {
		m := &past[i]
		switch {
		case m.Run == r.t.Run: // of an earlier attempt
		case m.Role == "assistant" && s.Answer == "":
			s.Answer, s.Model, s.Run = core.BlocksText(m.Blocks), m.Model, m.Run
		case m.Role == "user" && s.Answer != "" && s.Question == "":
			s.Question = core.BlocksText(m.Blocks)
		}
	}
	if r.t.Shared() { // it may be another member's
		s.Question = ""
	}
	return s, nil
}

// speaks reports whether a message is the person's of this run.
func (r *run) speaks(m *transcript.Message) bool {
	return m.Role == "user" && m.Run == r.t.Run && !slices.ContainsFunc(m.Blocks, func(b core.Block) bool { return b.Type == "tool_result" })
}

// notices are what clients without a chat learn.
func (m *Remembered) notices() []core.Warning {
	if m.Notice == "" {
		return nil
	}
	return []core.Warning{{Code: "memory", Message: m.Notice}}
}

func (m *Remembered) write(ctx context.Context, tx *store.Tx, g Given) error {
	if m.Write == nil {
		return nil
	}
	return m.Write(ctx, tx, g)
}
