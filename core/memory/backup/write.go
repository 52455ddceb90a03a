package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/core/usage/charged"
)

// Limits of what the model reads and writes.
const (
	maxConversation = 100_000 // bytes of the conversation, its newest part
	windowPart      = 2       // of the model's window, at 4 bytes a token
	maxResult       = 600     // bytes of a tool's result or arguments
	maxAnswer       = 2_000   // tokens
	maxTime         = 3 * time.Minute
)

// write writes the backup that c is due for and stores it. An error is one of the model,
// a budget, or the database; ErrNothing without anything new.
func (s *Store) write(ctx context.Context, c counter, trigger string, background bool) (Backup, int64, error) {
	sess, err := s.o.Sessions.ByID(ctx, s.o.DB, c.Session)
	if err != nil {
		return Backup{}, 0, err
	}
	guest := c.Trust <= core.Sandboxed && c.User != core.Operator
	model, err := s.o.Model(c.Model, guest)
	if err != nil {
		return Backup{}, 0, fmt.Errorf("model %s: %w", c.Model, err)
	}
	if model == nil {
		return Backup{}, 0, core.Errorf(core.Conflict, "%s keeps its conversations on its own", c.Model)
	}
	last, has, err := s.Newest(ctx, s.o.DB, c.Session, c.Model)
	if err != nil {
		return Backup{}, 0, err
	}
	text, covers, err := s.conversation(ctx, sess, last, room(model.About().Window))
	if err != nil {
		return Backup{}, 0, err
	}
	if covers == "" {
		return Backup{}, 0, ErrNothing
	}
	w := writing{s: s, model: model, group: sess.Scope == core.ScopeGroup, background: background,
		row: usage.Row{Run: "backup", Session: c.Session, User: c.User, Bot: c.Bot}, trust: c.Trust}
	if has {
		w.earlier = last.Text
	}
	note, err := w.note(ctx, text)
	if err != nil {
		return Backup{}, w.spent, err
	}
	var b Backup
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		now, err := s.o.Sessions.ByID(ctx, tx, c.Session) // deleted, or another's, in the meantime
		if err != nil {
			return err
		}
		if count, found, err := s.counter(ctx, tx, c.Session, c.Model); err != nil {
			return err
		} else if !found || count.ID != c.ID {
			return core.Errorf(core.Conflict, "a person of this conversation was forgotten while the backup was written")
		}
		b, err = s.Add(ctx, tx, &now, Backup{Model: c.Model, Text: note, Trigger: trigger, Covers: covers}, Seen{c.Messages, c.Tokens})
		return err
	})
	return b, w.spent, err
}

// ErrNothing is returned where nothing was written since the last backup.
var ErrNothing = core.Errorf(core.Conflict, "nothing was said in this conversation since its last backup")

// room returns how many bytes of a conversation a model with this window reads.
func room(window int) int {
	if window <= 0 {
		return maxConversation
	}
	return min(maxConversation, window/windowPart*4)
}

// conversation returns the messages behind the last backup as text, at most most bytes,
// and the id of the last one: of an answer, so that no half turn is covered.
func (s *Store) conversation(ctx context.Context, sess session.Session, last Backup, most int) (text, covers string, err error) {
	err = s.o.Sessions.Whole(ctx, sess, func(all []transcript.Message, _ bool) {
		if last.Covers != "" {
			for i := range all {
				if all[i].Line() == last.Covers {
					all = all[i+1:]
					break
				}
			}
		}
		end := len(all)
		for end > 0 && (all[end-1].Role != "assistant" || all[end-1].Stop == "tool_use") {
			end--
		}
		if end == 0 {
			return
		}
		covers = all[end-1].Line()
		var parts []string // newest first
		for i, size := end-1, 0; i >= 0; i-- {
			part := spoken(&all[i])
			if part == "" {
				continue
			}
			if size += len(part) + 2; size > most && len(parts) > 0 {
				parts = append(parts, "[… earlier messages are left out …]")
				break
			}
			parts = append(parts, cut(part, most))
		}
		var b strings.Builder
		for i := len(parts) - 1; i >= 0; i-- {
			b.WriteString(parts[i] + "\n\n")
		}
		text = strings.TrimSpace(b.String())
	})
	return text, covers, err
}

// spoken returns a message as the model reads it in a conversation.
func spoken(m *transcript.Message) string {
	var parts []string
	for _, b := range m.Blocks {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "tool_use":
			parts = append(parts, "[calls "+b.Name+" "+cut(string(b.Input), maxResult)+"]")
		case "tool_result":
			parts = append(parts, "[result: "+cut(b.Text, maxResult)+"]")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	who := "Assistant"
	if m.Role == "user" {
		if who = "User"; m.Author != nil && m.Author.Name != "" {
			who = "User " + m.Author.Name
		}
	}
	if m.Summary {
		who = "Earlier summary"
	}
	return who + ": " + strings.Join(parts, "\n")
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " […]"
}

// A writing is one note on its way.
type writing struct {
	s          *Store
	model      llm.Model
	group      bool
	background bool
	earlier    string // the text of the last note
	row        usage.Row
	trust      core.Trust
	spent      int64 // tokens
}

// note asks the model for a note, and once more where it has faults.
func (w *writing) note(ctx context.Context, conversation string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	var b strings.Builder
	if w.earlier != "" {
		b.WriteString("<earlier_note>\n" + untagged(w.earlier) + "\n</earlier_note>\n\n")
	}
	b.WriteString("<conversation>\n" + untagged(conversation) + "\n</conversation>\n\n" + handoff.Ask(w.group))
	messages := []llm.Message{said("user", b.String())}
	answer, err := w.ask(ctx, messages)
	if err != nil {
		return "", err
	}
	note, faults := handoff.Check(answer)
	if len(faults) == 0 {
		return note, nil
	}
	if answer == "" {
		answer = "(nothing)"
	}
	answer, err = w.ask(ctx, append(messages, said("assistant", answer), said("user", handoff.Repair(faults))))
	if err != nil {
		return "", err
	}
	if note, faults = handoff.Check(answer); len(faults) > 0 {
		return "", fmt.Errorf("%s wrote no valid note, also when asked again: %s", w.model.About().Name, strings.Join(faults, "; "))
	}
	return note, nil
}

func said(role, text string) llm.Message {
	return llm.Message{Role: role, Blocks: []core.Block{{Type: "text", Text: text}}}
}

// untagged returns s without what could close a tag of the prompt.
func untagged(s string) string { return strings.ReplaceAll(s, "</", "< /") }

// ask makes one call of the model, which counts against the budget and the usage of the
// conversation's user.
func (w *writing) ask(ctx context.Context, messages []llm.Message) (string, error) {
	row := w.row
	size := len(handoff.System)
	for _, m := range messages {
		size += len(m.Blocks[0].Text)
	}
	row.Background = w.background
	row.Input, row.Output = int64(size)/4, handoff.MaxTokens
	req := &llm.Request{System: handoff.System, Messages: messages, MaxTokens: maxAnswer, Sender: llm.Sender{User: w.row.User, Trust: w.trust}}
	o := &w.s.o
	text, spent, err := charged.Caller{DB: o.DB, Usage: o.Usage, Cost: o.Cost}.Ask(ctx, w.model, req, row, maxConversation)
	if w.spent += spent; err != nil {
		return "", err
	}
	return text, nil
}
