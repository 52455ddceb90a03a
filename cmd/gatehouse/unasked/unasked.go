// Package unasked sends messages that programs ask for, not users: checked, stored once
// for each id, and delivered by the outbox.
package unasked

import (
	"context"
	"path"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
	"gatehouse/web/api/bots"
)

// MaxWaiting is how many messages may wait in one chat before another one is
// refused: what cannot be sent must not pile up.
const MaxWaiting = 100

// Options for a Mail; all are needed.
type Options struct {
	DB       *store.DB
	Outbox   *outbox.Outbox
	Sessions *session.Store
	People   *people.Store
	Render   func(to core.Address, markdown string) []core.Part
	Copy     func(ctx context.Context, t *orchestrator.Turn, name string) (core.File, error) // of a file of the vault that the turn may read
	Remove   func(files []core.File)                                                         // deletes copies that no message has
}

// A Mail sends messages of programs through a bot, by the outbox (bots.Mail).
type Mail struct{ Options }

func sendKey(id string) string { return "send:" + id }

// Send implements bots.Mail. The text is made into the platform's messages
// before the transaction: that takes the longest.
func (m Mail) Send(ctx context.Context, u bots.Unasked, by core.Actor) (posted bots.Posted, err error) {
	stored := false
	defer func() {
		if !stored {
			m.Remove(u.Files)
		}
	}()
	parts := m.Render(core.Address{Bot: u.Bot}, u.Text)
	if len(parts) == 0 && len(u.Attachments)+len(u.Files) == 0 {
		return posted, core.Errorf(core.Invalid, "the text would be empty")
	}
	files, err := m.files(ctx, u, by)
	if err != nil {
		return posted, err
	}
	parts = append(parts, files...)
	err = m.DB.Tx(ctx, func(tx *store.Tx) error {
		stored = false // a closure may run twice
		to, err := m.address(ctx, tx, u)
		if err != nil {
			return err
		}
		old, found, err := m.Outbox.Posting(ctx, tx, sendKey(u.ID))
		if err != nil {
			return err
		}
		if found {
			posted = postedAs(u.ID, old)
			return m.same(old, to, parts)
		}
		if err := m.mayWrite(ctx, tx, to, u.User); err != nil {
			return err
		}
		if err := m.Outbox.Post(ctx, tx, core.Reply{Address: to, Key: sendKey(u.ID), Parts: parts}); err != nil {
			return err
		}
		stored = true
		posted = bots.Posted{ID: u.ID, Bot: to.Bot, Chat: to.Chat, Status: "queued", Parts: len(parts), CreatedAt: tx.Time().UTC()}
		return store.Audit(ctx, tx, by, "message.send", u.ID, map[string]any{"bot": to.Bot})
	})
	stored = stored && err == nil
	return posted, err
}

// files returns the parts of what goes along, copied to where no one changes them
// before they are sent. Of a message that was stored before they are only named.
func (m Mail) files(ctx context.Context, u bots.Unasked, by core.Actor) (parts []core.Part, err error) {
	_, stored, err := m.Outbox.Posting(ctx, m.DB, sendKey(u.ID))
	if err != nil {
		return nil, err
	}
	for _, name := range u.Attachments {
		f := core.File{Name: path.Base(name)}
		if !stored {
			if f, err = m.Copy(ctx, &orchestrator.Turn{User: by.User, Trust: u.Trust}, name); err != nil {
				kind, why := core.KindOf(err), core.TextOf(err)
				if kind != core.TooLarge && kind != core.Invalid {
					kind, why = core.Invalid, "it is not there"
				}
				return nil, core.Errorf(kind, "the attachment %s cannot be sent: %s", core.CleanName(core.CutRunes(name, 200)), why)
			}
		}
		parts = append(parts, core.Part{File: &f})
	}
	for i := range u.Files {
		parts = append(parts, core.Part{File: &u.Files[i]})
	}
	return parts, nil
}

func fileName(p core.Part) string {
	if p.File == nil {
		return ""
	}
	return path.Base(p.File.Name)
}

// sameSize compares what is known: of a file of the vault that is only named nothing is.
func sameSize(was, is *core.File) bool {
	return was == nil || is == nil || was.Size == 0 || is.Size == 0 || was.Size == is.Size
}

// same: a message under an id that was used must be the one that it was used for.
func (m Mail) same(old outbox.Posting, to core.Address, parts []core.Part) error {
	equal := old.Bot == to.Bot && old.Chat == to.Chat && len(old.Parts) == len(parts)
	for i := range parts {
		equal = equal && old.Parts[i].Text == parts[i].Text && fileName(old.Parts[i].Part) == fileName(parts[i]) && sameSize(old.Parts[i].File, parts[i].File)
	}
	if !equal {
		return core.Errorf(core.Conflict, "this Idempotency-Key was used for another message")
	}
	return nil
}

// address returns where the message goes: a chat that someone has talked in is
// known with its thread and group; an enabled group is one also before.
func (m Mail) address(ctx context.Context, tx *store.Tx, u bots.Unasked) (core.Address, error) {
	if u.Chat == bots.OwnerChat {
		to, ok, err := m.People.OwnerChat(ctx, tx, u.Bot) // not an admin's
		if err == nil && !ok {
			err = core.Errorf(core.NotFound, "the owner has not claimed this bot yet, or not written to it: 'gatehouse claim' prints a code")
		}
		return to, err
	}
	to, known, err := m.Sessions.Address(ctx, tx, u.Bot, u.Chat)
	if err != nil || known {
		return to, err
	}
	group := core.Address{Bot: u.Bot, Chat: u.Chat, Place: u.Chat}
	ok, err := m.People.Reach(ctx, tx, group, nil)
	if ok {
		return group, err
	}
	return to, err
}

func (m Mail) mayWrite(ctx context.Context, tx *store.Tx, to core.Address, whose *int64) error {
	ok, err := m.People.Reach(ctx, tx, to, whose)
	if err != nil {
		return err
	}
	if !ok {
		return core.Errorf(core.NotFound, "the bot knows no such chat, or may not write there: it writes to approved people and to enabled groups")
	}
	n, err := m.Outbox.Waiting(ctx, tx, to)
	if err == nil && n >= MaxWaiting {
		err = core.Errorf(core.Busy, "%d messages wait for this chat already; wait until they are sent", n)
	}
	return err
}

// Sent implements bots.Mail.
func (m Mail) Sent(ctx context.Context, id string) (bots.Posted, error) {
	old, found, err := m.Outbox.Posting(ctx, m.DB, sendKey(id))
	if err == nil && !found {
		err = core.Errorf(core.NotFound, "there is no message %s, or it was delivered over two days ago", core.CleanName(id))
	}
	return postedAs(id, old), err
}

// postedAs sums up the parts: what went wrong with one went wrong with all.
func postedAs(id string, p outbox.Posting) bots.Posted {
	out := bots.Posted{ID: id, Bot: p.Bot, Chat: p.Chat, Status: "queued", Parts: len(p.Parts)}
	states := map[string]string{} // state → the first error; bounded by the states
	for i, part := range p.Parts {
		if i == 0 {
			out.CreatedAt = part.CreatedAt
		}
		if part.State == "sent" {
			out.Delivered++
			if part.SentAt.After(out.SentAt) {
				out.SentAt = part.SentAt
			}
		}
		if states[part.State] == "" {
			states[part.State] = part.Error
		}
	}
	for _, state := range []string{"failed", "unknown", "sending", "ready"} {
		if why, there := states[state]; there {
			out.Status, out.Error = state, why
			break
		}
	}
	switch {
	case out.Delivered == out.Parts && out.Parts > 0:
		out.Status = "sent"
		return out
	case out.Status == "ready":
		out.Status = "queued"
	}
	out.SentAt = time.Time{}
	return out
}
