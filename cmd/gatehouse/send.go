package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
	"gatehouse/web/api"
)

// maxUnasked is how many messages may wait in one chat before another one is
// taken unasked: what cannot be sent must not pile up.
const maxUnasked = 100

// mail sends messages of programs through a bot, by the outbox.
type mail struct{ a *app }

func sendKey(id string) string { return "send:" + id }

// Send implements api.Mail. The text is made into the platform's messages
// before the transaction: that takes the longest.
func (m mail) Send(ctx context.Context, u api.Unasked, by core.Actor) (posted api.Posted, err error) {
	stored := false
	defer func() {
		if !stored {
			m.a.files.Remove(u.Files)
		}
	}()
	parts := m.a.hub.Render(core.Address{Bot: u.Bot}, u.Text)
	if len(parts) == 0 && len(u.Attachments)+len(u.Files) == 0 {
		return posted, core.Errorf(core.Invalid, "the text would be empty")
	}
	files, err := m.files(ctx, u, by)
	if err != nil {
		return posted, err
	}
	parts = append(parts, files...)
	err = m.a.db.Tx(ctx, func(tx *store.Tx) error {
		stored = false // a closure may run twice
		to, err := m.address(ctx, tx, u)
		if err != nil {
			return err
		}
		old, found, err := m.a.outbox.Posting(ctx, tx, sendKey(u.ID))
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
		if err := m.a.outbox.Post(ctx, tx, core.Reply{Address: to, Key: sendKey(u.ID), Parts: parts}); err != nil {
			return err
		}
		stored = true
		posted = api.Posted{ID: u.ID, Bot: to.Bot, Chat: to.Chat, Status: "queued", Parts: len(parts), CreatedAt: tx.Time().UTC()}
		return store.Audit(ctx, tx, by, "message.send", u.ID, map[string]any{"bot": to.Bot})
	})
	stored = stored && err == nil
	return posted, err
}

// files returns the parts of what goes along, copied to where no one changes them
// before they are sent. Of a message that was stored before they are only named.
func (m mail) files(ctx context.Context, u api.Unasked, by core.Actor) (parts []core.Part, err error) {
	_, stored, err := m.a.outbox.Posting(ctx, m.a.db, sendKey(u.ID))
	if err != nil {
		return nil, err
	}
	for _, name := range u.Attachments {
		f := core.File{Name: path.Base(name)}
		if !stored {
			if f, err = m.a.copyShown(ctx, &orchestrator.Turn{User: by.User, Trust: u.Trust}, name); err != nil {
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
func (m mail) same(old outbox.Posting, to core.Address, parts []core.Part) error {
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
func (m mail) address(ctx context.Context, tx *store.Tx, u api.Unasked) (core.Address, error) {
	if u.Chat == api.OwnerChat {
		owners, err := m.a.pairing.People.OwnerChats(ctx, tx, u.Bot)
		if err != nil {
			return core.Address{}, err
		}
		if len(owners) == 0 {
			return core.Address{}, core.Errorf(core.NotFound, "the owner has not claimed this bot yet, or not written to it: 'gatehouse claim' prints a code")
		}
		return owners[0], nil
	}
	to, known, err := m.a.sessions.Address(ctx, tx, u.Bot, u.Chat)
	if err != nil || known {
		return to, err
	}
	group := core.Address{Bot: u.Bot, Chat: u.Chat, Place: u.Chat}
	ok, err := m.a.pairing.People.Reach(ctx, tx, group, nil)
	if ok {
		return group, err
	}
	return to, err
}

func (m mail) mayWrite(ctx context.Context, tx *store.Tx, to core.Address, whose *int64) error {
	ok, err := m.a.pairing.People.Reach(ctx, tx, to, whose)
	if err != nil {
		return err
	}
	if !ok {
		return core.Errorf(core.NotFound, "the bot knows no such chat, or may not write there: it writes to approved people and to enabled groups")
	}
	n, err := m.a.outbox.Waiting(ctx, tx, to)
	if err == nil && n >= maxUnasked {
		err = core.Errorf(core.Busy, "%d messages wait for this chat already; wait until they are sent", n)
	}
	return err
}

// Sent implements api.Mail.
func (m mail) Sent(ctx context.Context, id string) (api.Posted, error) {
	old, found, err := m.a.outbox.Posting(ctx, m.a.db, sendKey(id))
	if err == nil && !found {
		err = core.Errorf(core.NotFound, "there is no message %s, or it was delivered over two days ago", core.CleanName(id))
	}
	return postedAs(id, old), err
}

// postedAs sums up the parts: what went wrong with one went wrong with all.
func postedAs(id string, p outbox.Posting) api.Posted {
	out := api.Posted{ID: id, Bot: p.Bot, Chat: p.Chat, Status: "queued", Parts: len(p.Parts)}
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

type sendCmd struct {
	Text   string        `arg:"" optional:"" help:"The text, in Markdown; - reads it from the standard input."`
	Bot    string        `help:"The bot that sends it; not needed if there is only one."`
	Chat   string        `default:"owner" help:"Where: the chat's id as the platform has it, or owner, your own chat with the bot."`
	Attach []string      `placeholder:"FILE" sep:"none" help:"A file of the vault that goes along; more than once for several."`
	File   []string      `placeholder:"FILE" sep:"none" help:"A file of this machine that goes along, up to 20 MB; more than once for several."`
	ID     string        `name:"id" placeholder:"NAME" help:"A name of your own: a message with the same one is sent only once."`
	Wait   time.Duration `placeholder:"30s" help:"Wait up to this long for delivery; fail if it is not delivered by then."`
	Status string        `placeholder:"ID" help:"Send no message; report whether the one with this id was delivered."`
	JSON   bool          `help:"As JSON."`
}

func (c *sendCmd) Help() string {
	return "The message is stored and sent in its chat's order; without --wait the command ends as soon as it is stored. It reaches approved people and enabled groups. When no gateway runs it is sent at the next start."
}

func (c *sendCmd) Run(p *process) error {
	if (c.Text == "" && len(c.Attach)+len(c.File) == 0) == (c.Status == "") {
		return core.Errorf(core.Invalid, "write the text (- reads it from standard input), or --status with a message's id")
	}
	files, err := c.read()
	if err != nil {
		return err
	}
	var m api.Posted
	if c.Status != "" {
		err = p.get(sentPath(c.Status), &m)
	} else if c.Text, err = c.words(p); err == nil {
		err = p.request(http.MethodPost, "/control/messages", control.Message{
			Unasked: api.Unasked{ID: c.ID, Bot: c.Bot, Chat: c.Chat, Text: c.Text, Attachments: c.Attach}, Attached: files,
		}, &m)
	}
	if err != nil {
		return err
	}
	m, err = c.await(p, m)
	if c.JSON {
		err = errors.Join(printJSON(p.stdout, m), err)
	} else if err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s %s\n", m.Status, m.ID)
	}
	return err
}

func sentPath(id string) string { return control.Path("control", "messages", id) }

// read returns what goes along, within the bounds that the API has.
func (c *sendCmd) read() (files []control.File, err error) {
	if len(c.File)+len(c.Attach) > api.MaxSendFiles {
		return nil, core.Errorf(core.Invalid, "at most %d files go with a message", api.MaxSendFiles)
	}
	total := 0
	for _, name := range c.File {
		f, err := os.Open(name)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%v", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, attach.MaxFile+1))
		_ = f.Close() // it was only read
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%v", err)
		}
		if total += len(data); len(data) > attach.MaxFile || total > api.MaxAttached {
			return nil, core.Errorf(core.TooLarge, "%s is too large: a file may have %s, all together %s", name, core.ByteSize(attach.MaxFile), core.ByteSize(api.MaxAttached))
		}
		files = append(files, control.File{Name: filepath.Base(name), Data: data})
	}
	return files, nil
}

// words returns the text to send, within the API's limit.
func (c *sendCmd) words(p *process) (string, error) {
	text := c.Text
	if text == "" && len(c.Attach)+len(c.File) > 0 {
		return "", nil // the files say it
	}
	if text == "-" {
		if p.stdin == nil {
			return "", core.Errorf(core.Invalid, "there is no standard input")
		}
		b, err := io.ReadAll(io.LimitReader(p.stdin, api.MaxMessage+1))
		if err != nil {
			return "", fmt.Errorf("read the text: %w", err)
		}
		text = string(b)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", core.Errorf(core.Invalid, "the text is empty")
	case len(text) > api.MaxMessage:
		return "", core.Errorf(core.Invalid, "the text is over %d bytes", api.MaxMessage)
	}
	return text, nil
}

// await asks until m is settled or the time has ended; an error where it has not arrived.
func (c *sendCmd) await(p *process, m api.Posted) (api.Posted, error) {
	quiet := *p // report only once that no gateway runs
	quiet.stderr = io.Discard
	end := time.Now().Add(c.Wait)
	for c.Wait > 0 && (m.Status == "queued" || m.Status == "sending") && time.Now().Before(end) && core.Sleep(p.ctx, core.System{}, 100*time.Millisecond) {
		var now api.Posted
		if err := quiet.get(sentPath(m.ID), &now); err != nil {
			return m, err
		}
		m = now
	}
	switch {
	case m.Status == "failed":
		return m, core.Errorf(core.Denied, "%s was not taken by the platform: %s", m.ID, m.Error)
	case m.Status == "unknown":
		return m, core.Errorf(core.Busy, "%s was sent; whether it arrived is unknown: %s", m.ID, m.Error)
	case c.Wait > 0 && m.Status != "sent":
		return m, core.Errorf(core.Busy, "%s has not arrived yet (%s); it stays in the queue", m.ID, strings.TrimSuffix(m.Status+": "+m.Error, ": "))
	}
	return m, nil
}
