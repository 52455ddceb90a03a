package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// callback carries out a pressed button.
func (c *chat) callback(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	gone := texts.Error(core.Invalid, "button_gone")
	if run, ok := dispatch.StopRun(call.In.Callback.Data); ok {
		return c.stopButton(ctx, call, run)
	}
	if run, ok := dispatch.AgainRun(call.In.Callback.Data); ok {
		return c.again(ctx, call, run)
	}
	if run, ok := dispatch.FileRun(call.In.Callback.Data); ok {
		return c.asFile(ctx, call, run)
	}
	id, option, ok := permission.SplitData(call.In.Callback.Data)
	if !ok {
		return dispatch.Outcome{}, gone
	}
	ask, err := c.desk.ByID(ctx, c.db, id)
	if core.KindOf(err) == core.NotFound || err == nil && ask.Bot != call.In.Bot {
		return dispatch.Outcome{}, gone
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	var text string
	switch {
	case ask.Kind == permission.KindChoice && ask.Chat == call.In.Chat:
		return c.choose(ctx, call, ask, option)
	case ask.Kind == permission.KindQuestion && ask.Chat == call.In.Chat:
		return c.answerBy(ctx, call, ask, option)
	case ask.Kind == permission.KindPermission:
		text, err = c.decide(ctx, call, ask, option)
	case ask.Kind == permission.KindPairing && ask.Chat == call.In.Chat:
		var by core.Actor
		if by, err = c.owner(ctx, call); err == nil {
			text, err = c.approvals.press(ctx, ask, option, by)
		}
	default:
		err = gone
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return dispatch.Outcome{Text: core.CutRunes(text, 150)}, nil
}

// decide lets a tool's call go on, or not: the owner's or an admin's word.
func (c *chat) decide(ctx context.Context, call dispatch.Call, ask permission.Ask, option string) (string, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return "", err
	}
	if err := c.guard.Press(ctx, ask.ID, option, by); err != nil {
		return "", err
	}
	if option == permission.OptionDeny {
		return texts.Text("permission_pressed_deny"), nil
	}
	return texts.Text("permission_pressed_allow"), nil
}

// stopButton stops the run whose preview carries the button, and no other.
func (c *chat) stopButton(ctx context.Context, call dispatch.Call, run string) (dispatch.Outcome, error) {
	ours := func(r bus.Info) bool { return r.Run == run && r.Bot == call.In.Bot && r.Chat == call.In.Chat }
	if !slices.ContainsFunc(c.bus.Active(), ours) {
		return said("answer_ended")
	}
	if ok, err := c.mayStop(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	} else if !ok {
		return said("stop_not_yours")
	}
	c.stopOne(run)
	return dispatch.Outcome{}, nil // the run's own end says that it was stopped
}

// shownHere is the run whose answer stands in the chat where its button was
// pressed; any other's is as good as none.
func (c *chat) shownHere(ctx context.Context, call dispatch.Call, run string) (orchestrator.RunLine, error) {
	gone := texts.Error(core.Invalid, "answer_old")
	line, err := c.events.Line(ctx, run)
	if core.KindOf(err) == core.NotFound || err == nil && (line.Bot != call.In.Bot || line.Chat != call.In.Chat) {
		return line, gone
	}
	return line, err
}

// again has the message of a run answered once more, as a new turn in its
// sender's name, whoever presses: a guest's words never run at the owner's
// trust. The answer that there is stays, without its button.
func (c *chat) again(ctx context.Context, call dispatch.Call, run string) (dispatch.Outcome, error) {
	line, err := c.shownHere(ctx, call, run)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	from, err := c.askedBy(ctx, call, line)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	out := dispatch.Outcome{Write: func(ctx context.Context, tx *store.Tx) error { return c.pressed(ctx, tx, call.In.Address, run) }}
	update := "again:" + run
	if _, _, found, err := c.queue.Stored(ctx, call.In.Bot, update); err != nil || found {
		out.Text = texts.Text("again_asked")
		return out, err
	}
	text, err := c.lastSaid(ctx, call, line)
	if err != nil || text == "" {
		out.Text = texts.Text("again_said_since")
		return out, err
	}
	row := core.Inbound{UpdateID: update, Address: call.In.Address, Kind: core.KindMessage, MessageID: call.In.MessageID,
		From: from, At: call.In.At, Text: text, Again: run, Addressed: true, PlaceName: call.In.PlaceName}
	out.Text = texts.Text("again_pressed")
	return out, c.queue.Put(ctx, []core.Inbound{row}, nil)
}

// askedBy is who asked what a run has answered; Denied for a caller who is
// neither that person nor the owner or an admin.
func (c *chat) askedBy(ctx context.Context, call dispatch.Call, line orchestrator.RunLine) (core.Peer, error) {
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	switch {
	case err != nil:
		return core.Peer{}, err
	case user != 0 && user == line.User:
		return call.In.From, nil
	case role != "owner" && role != "admin":
		return core.Peer{}, texts.Error(core.Denied, "again_not_yours")
	}
	return c.book.Peer(ctx, c.db, line.User, c.platform(call.In.Bot))
}

// lastSaid is the message of a run as text, while it is the newest of the
// conversation that is held in the caller's chat; else "".
func (c *chat) lastSaid(ctx context.Context, call dispatch.Call, line orchestrator.RunLine) (string, error) {
	sess, ok, err := c.sessions.Current(ctx, c.db, call.In.Address)
	if err != nil || !ok || sess.ID != line.Session {
		return "", err
	}
	if last, err := c.events.LatestOf(ctx, sess.ID); err != nil || last.ID != line.ID {
		return "", err
	}
	said, err := c.sessions.Turn(ctx, sess, session.LineID(line.ID, 0))
	if core.KindOf(err) == core.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if text := wordsOf(said[:1], "\n\n"); text != "" {
		return text, nil
	}
	return texts.Text("said_files"), nil // files alone: they stand in the conversation
}

// wordsOf is the text of the last of the messages that has some, its blocks
// with so much between them.
func wordsOf(messages []session.Message, between string) string {
	for _, m := range slices.Backward(messages) {
		var said []string
		for _, b := range m.Blocks {
			if b.Type == "text" {
				said = append(said, b.Text)
			}
		}
		if len(said) > 0 {
			return strings.Join(said, between)
		}
	}
	return ""
}

// pressed takes the button to ask again from a run's answer, as long as it is known.
func (c *chat) pressed(ctx context.Context, tx *store.Tx, to core.Address, run string) error {
	key := "run:" + run
	p, found, err := c.queue.Posting(ctx, tx, key)
	if err != nil || !found {
		return err
	}
	ours := func(b core.Button) bool { _, ok := dispatch.AgainRun(b.Data); return ok }
	for i := range p.Parts {
		part := p.Parts[i].Part
		if len(part.Buttons) != 1 || !slices.ContainsFunc(part.Buttons[0], ours) {
			continue
		}
		if part.Buttons[0] = slices.DeleteFunc(part.Buttons[0], ours); len(part.Buttons[0]) == 0 {
			part.Buttons = nil
		}
		err := c.queue.Post(ctx, tx, core.Reply{Address: to, Key: key, First: len(p.Parts), Replaces: fmt.Sprintf("@%s/%d", key, i), Parts: []core.Part{part}})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}
	return nil
}

// asFile gives a run's answer as a Markdown document, to the chat that has read
// it; once as long as that is known.
func (c *chat) asFile(ctx context.Context, call dispatch.Call, run string) (dispatch.Outcome, error) {
	line, err := c.shownHere(ctx, call, run)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	key := "file:" + run
	if _, found, err := c.queue.Posting(ctx, c.db, key); err != nil || found {
		return dispatch.Outcome{Text: texts.Text("file_sent")}, err
	}
	f, err := c.document(ctx, line)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	part := core.Part{File: &f, ReplyTo: call.In.MessageID}
	return dispatch.Outcome{Text: texts.Text("file_pressed"), Write: func(ctx context.Context, tx *store.Tx) error {
		err := c.queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: key, Parts: []core.Part{part}})
		if core.KindOf(err) == core.Conflict {
			c.files.Remove([]core.File{f})
			return nil
		}
		return err
	}}, nil
}

// document keeps what a run answered, out of its conversation, as a file of
// its sender's.
func (c *chat) document(ctx context.Context, line orchestrator.RunLine) (core.File, error) {
	gone := texts.Error(core.NotFound, "answer_gone")
	sess, err := c.sessions.ByID(ctx, c.db, line.Session)
	if core.KindOf(err) == core.NotFound {
		return core.File{}, gone
	}
	if err != nil {
		return core.File{}, err
	}
	turn, err := c.sessions.Turn(ctx, sess, session.LineID(line.ID, 0))
	if core.KindOf(err) == core.NotFound {
		return core.File{}, gone
	}
	if err != nil {
		return core.File{}, err
	}
	text := wordsOf(turn[1:], "")
	if text == "" {
		return core.File{}, gone
	}
	f, err := c.files.Save(ctx, line.User, documentName(sess.Title), "text/markdown", 0, strings.NewReader(text+"\n"))
	if err != nil {
		return core.File{}, err
	}
	err = c.db.Tx(ctx, func(tx *store.Tx) error {
		return orchestrator.OwnFiles(ctx, tx, line.User, line.Session, line.ID, []core.File{f})
	})
	if err != nil {
		c.files.Remove([]core.File{f})
	}
	return f, err
}

// documentName is a conversation's title as a name of a file.
func documentName(title string) string {
	title = core.CutRunes(core.CleanName(strings.NewReplacer("/", "-", "\\", "-").Replace(title)), 60)
	if title = strings.Trim(title, " ."); title == "" {
		title = texts.Text("file_title")
	}
	return title + ".md"
}
