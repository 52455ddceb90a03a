package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/command"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// Stopper stops what is being answered in the chat of a request: what was asked before it, or
// one run. In a group a guest stops only what they have asked for: others reports that there was
// more.
type Stopper interface {
	Stop(ctx context.Context, r command.Request) (stopped, others bool, err error)
	StopRun(ctx context.Context, r command.Request, run string) (stopped, others bool, err error)
}

// Updates reads what is stored in the queue.
type Updates interface {
	// Backlog returns how many messages wait in the lane; those of run, which is being answered, do not.
	Backlog(ctx context.Context, lane, run string) (int, error)
	Stored(ctx context.Context, bot, update string) (message, chat string, found bool, err error)
}

// answers handles /stop and the buttons of previews and answers.
type answers struct {
	db       *store.DB
	users    Users
	sessions *session.Store
	inbox    *queue.Queue
	updates  Updates
	outbox   *outbox.Outbox
	stopper  Stopper
	runs     *runs.Store
	files    *attach.Keeper
	platform func(bot string) string
}

// stop stops the run of the chat.
func (a *answers) stop(ctx context.Context, r command.Request) (command.Outcome, error) {
	switch stopped, others, err := a.stopper.Stop(ctx, r); {
	case err != nil:
		return command.Outcome{}, err
	case stopped && r.In.Slot != "": // the message that is there for the answer
		return command.Respond("stopped")
	case stopped:
		return command.Outcome{}, nil // the end of the run is its answer
	case others:
		return command.Respond("stop_another")
	}
	return command.Respond("stop_nothing")
}

// stopButton stops the run whose preview carries the button, and no other.
func (a *answers) stopButton(ctx context.Context, r command.Request, run string) (command.Outcome, error) {
	switch stopped, others, err := a.stopper.StopRun(ctx, r, run); {
	case err != nil:
		return command.Outcome{}, err
	case stopped:
		return command.Outcome{}, nil // the end of the run is its answer
	case others:
		return command.Respond("stop_not_yours")
	}
	return command.Respond("answer_ended")
}

// line returns the run of an answer that was posted in the chat of r.
func (a *answers) line(ctx context.Context, r command.Request, run string) (runs.Line, error) {
	line, err := a.runs.Line(ctx, run)
	if core.KindOf(err) == core.NotFound || err == nil && (line.Bot != r.In.Bot || line.Chat != r.In.Chat) {
		return line, texts.Error(core.Invalid, "answer_old")
	}
	return line, err
}

// again answers the message of a run again, as a new turn in the name of that
// message's sender: a guest's message never runs at the trust of an owner who
// presses the button. The earlier answer loses the button.
func (a *answers) again(ctx context.Context, r command.Request, run string) (command.Outcome, error) {
	line, err := a.line(ctx, r, run)
	if err != nil {
		return command.Outcome{}, err
	}
	from, err := a.sender(ctx, r, line)
	if err != nil {
		return command.Outcome{}, err
	}
	out := command.Outcome{Write: func(ctx context.Context, tx *store.Tx) error { return a.removeAgain(ctx, tx, r.In.Address, run) }}
	update := "again:" + run
	if _, _, found, err := a.updates.Stored(ctx, r.In.Bot, update); err != nil || found {
		out.Text = texts.Text("again_asked")
		return out, err
	}
	text, err := a.latestMessage(ctx, r, line)
	if err != nil || text == "" {
		out.Text = texts.Text("again_said_since")
		return out, err
	}
	row := core.Inbound{UpdateID: update, Address: r.In.Address, Kind: core.KindMessage, MessageID: r.In.MessageID,
		From: from, At: r.In.At, Text: text, Again: run, Addressed: true, PlaceName: r.In.PlaceName}
	out.Text = texts.Text("again_pressed")
	return out, a.inbox.Put(ctx, []core.Inbound{row}, nil)
}

// sender returns the sender of the message that a run answered; Denied unless
// r is from that user, the owner or an admin.
func (a *answers) sender(ctx context.Context, r command.Request, line runs.Line) (core.Peer, error) {
	switch {
	case r.User != 0 && r.User == line.User:
		return r.In.From, nil
	case !r.Manages():
		return core.Peer{}, texts.Error(core.Denied, "again_not_yours")
	}
	return a.users.Peer(ctx, a.db, line.User, a.platform(r.In.Bot))
}

// latestMessage returns the text of the message that a run answered, or "" if it
// is not the newest of the chat's conversation.
func (a *answers) latestMessage(ctx context.Context, r command.Request, line runs.Line) (string, error) {
	sess, ok, err := a.sessions.Current(ctx, a.db, r.In.Address)
	if err != nil || !ok || sess.ID != line.Session {
		return "", err
	}
	if last, err := a.runs.LatestOf(ctx, sess.ID); err != nil || last.ID != line.ID {
		return "", err
	}
	turn, err := a.sessions.Turn(ctx, sess, transcript.LineID(line.ID, 0))
	if core.KindOf(err) == core.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if text := lastText(turn[:1], "\n\n"); text != "" {
		return text, nil
	}
	return texts.Text("said_files"), nil // files alone, which the conversation has
}

// lastText returns the text blocks, joined by sep, of the last message that has
// any.
func lastText(messages []transcript.Message, sep string) string {
	for _, m := range slices.Backward(messages) {
		var blocks []string
		for _, b := range m.Blocks {
			if b.Type == "text" {
				blocks = append(blocks, b.Text)
			}
		}
		if len(blocks) > 0 {
			return strings.Join(blocks, sep)
		}
	}
	return ""
}

// removeAgain removes the button to ask again from the answer of a run, if the
// outbox has it.
func (a *answers) removeAgain(ctx context.Context, tx *store.Tx, to core.Address, run string) error {
	key := "run:" + run
	p, found, err := a.outbox.Posting(ctx, tx, key)
	if err != nil || !found {
		return err
	}
	isAgain := func(b core.Button) bool { _, ok := command.AgainRun(b.Data); return ok }
	for i := range p.Parts {
		part := p.Parts[i].Part
		if len(part.Buttons) != 1 || !slices.ContainsFunc(part.Buttons[0], isAgain) {
			continue
		}
		if part.Buttons[0] = slices.DeleteFunc(part.Buttons[0], isAgain); len(part.Buttons[0]) == 0 {
			part.Buttons = nil
		}
		return postOnce(ctx, tx, a.outbox, core.Reply{Address: to, Key: key, First: len(p.Parts), Replaces: fmt.Sprintf("@%s/%d", key, i), Parts: []core.Part{part}})
	}
	return nil
}

// postOnce posts a reply unless its key and part are taken.
func postOnce(ctx context.Context, tx *store.Tx, outbox *outbox.Outbox, r core.Reply) error {
	err := outbox.Post(ctx, tx, r)
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// asFile posts the answer of a run as a Markdown document in the chat that
// shows it, once.
func (a *answers) asFile(ctx context.Context, r command.Request, run string) (command.Outcome, error) {
	line, err := a.line(ctx, r, run)
	if err != nil {
		return command.Outcome{}, err
	}
	key := "file:" + run
	if _, found, err := a.outbox.Posting(ctx, a.db, key); err != nil || found {
		return command.Outcome{Text: texts.Text("file_sent")}, err
	}
	f, err := a.saveDocument(ctx, line)
	if err != nil {
		return command.Outcome{}, err
	}
	part := core.Part{File: &f, ReplyTo: r.In.MessageID}
	return command.Outcome{Text: texts.Text("file_pressed"), Write: func(ctx context.Context, tx *store.Tx) error {
		err := a.outbox.Post(ctx, tx, core.Reply{Address: r.In.Address, Key: key, Parts: []core.Part{part}})
		if core.KindOf(err) == core.Conflict {
			a.files.Remove([]core.File{f})
			return nil
		}
		return err
	}}, nil
}

// saveDocument saves the answer of a run as a file of its user.
func (a *answers) saveDocument(ctx context.Context, line runs.Line) (core.File, error) {
	name, text, err := a.document(ctx, line)
	if core.KindOf(err) == core.NotFound || err == nil && text == "" {
		return core.File{}, texts.Error(core.NotFound, "answer_gone")
	}
	if err != nil {
		return core.File{}, err
	}
	f, err := a.files.Save(ctx, line.User, name, "text/markdown", 0, strings.NewReader(text+"\n"))
	if err != nil {
		return core.File{}, err
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		return attach.Record(ctx, tx, line.User, line.Session, line.ID, []core.File{f})
	})
	if err != nil {
		a.files.Remove([]core.File{f})
	}
	return f, err
}

// document returns the answer of a run and a file name for it.
func (a *answers) document(ctx context.Context, line runs.Line) (name, text string, err error) {
	sess, err := a.sessions.ByID(ctx, a.db, line.Session)
	if err != nil {
		return "", "", err
	}
	turn, err := a.sessions.Turn(ctx, sess, transcript.LineID(line.ID, 0))
	if err != nil {
		return "", "", err
	}
	return documentName(sess.Title), lastText(turn[1:], ""), nil
}

// documentName returns a file name from the title of a conversation.
func documentName(title string) string {
	title = core.CutRunes(core.CleanName(strings.NewReplacer("/", "-", "\\", "-").Replace(title)), 60)
	if title = strings.Trim(title, " ."); title == "" {
		title = texts.Text("file_title")
	}
	return title + ".md"
}
