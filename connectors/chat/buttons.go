package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Callback carries out a pressed button.
func (c *Chat) Callback(ctx context.Context, call command.Call) (command.Outcome, error) {
	gone := texts.Error(core.Invalid, "button_gone")
	if run, ok := command.StopRun(call.In.Callback.Data); ok {
		return c.stopButton(ctx, call, run)
	}
	if run, ok := command.AgainRun(call.In.Callback.Data); ok {
		return c.again(ctx, call, run)
	}
	if run, ok := command.FileRun(call.In.Callback.Data); ok {
		return c.asFile(ctx, call, run)
	}
	id, option, ok := permission.SplitData(call.In.Callback.Data)
	if !ok {
		return command.Outcome{}, gone
	}
	a, err := c.o.Desk.ByID(ctx, c.o.DB, id)
	if core.KindOf(err) == core.NotFound || err == nil && a.Bot != call.In.Bot {
		return command.Outcome{}, gone
	}
	if err != nil {
		return command.Outcome{}, err
	}
	var text string
	switch {
	case a.Kind == permission.KindChoice && a.Chat == call.In.Chat:
		return c.choose(ctx, call, a, option)
	case a.Kind == permission.KindQuestion && a.Chat == call.In.Chat:
		return c.answerBy(ctx, call, a, option)
	case a.Kind == permission.KindPermission:
		text, err = c.decide(ctx, call, a, option)
	case a.Kind == permission.KindPairing && a.Chat == call.In.Chat:
		var by core.Actor
		if by, err = c.owner(ctx, call); err == nil {
			text, err = c.press(ctx, a, option, by)
		}
	default:
		err = gone
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: core.CutRunes(text, 150)}, nil
}

// decide lets a tool's call go on, or not: the owner's or an admin's word.
func (c *Chat) decide(ctx context.Context, call command.Call, a permission.Ask, option string) (string, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return "", err
	}
	if err := c.o.Guard.Press(ctx, a.ID, option, by); err != nil {
		return "", err
	}
	if option == permission.OptionDeny {
		return texts.Text("permission_pressed_deny"), nil
	}
	return texts.Text("permission_pressed_allow"), nil
}

// press decides a pairing request by a button of the owner or an admin.
func (c *Chat) press(ctx context.Context, a permission.Ask, option string, by core.Actor) (string, error) {
	switch option {
	case core.Sandboxed.String(), core.Vault.String():
		trust, err := core.ParseTrust(option)
		if err != nil {
			return "", err
		}
		r, err := c.o.Book.Approve(ctx, a.Run, core.Approval{Trust: trust}, by)
		if err != nil {
			return "", err
		}
		return texts.Text("request_pressed_approve", texts.With{"Name": r.Display}), nil
	case ask.OptionDeny:
		r, err := c.o.Book.Deny(ctx, a.Run, by)
		if err != nil {
			return "", err
		}
		return texts.Text("request_pressed_deny", texts.With{"Name": r.Display}), nil
	case ask.OptionBlock:
		r, err := c.o.Book.Block(ctx, a.Run, by)
		if err != nil {
			return "", err
		}
		return texts.Text("request_pressed_block", texts.With{"Name": r.Display}), nil
	}
	return "", texts.Error(core.Invalid, "button_gone")
}

// stopButton stops the run whose preview carries the button, and no other.
func (c *Chat) stopButton(ctx context.Context, call command.Call, run string) (command.Outcome, error) {
	ours := func(r bus.Info) bool { return r.Run == run && r.Bot == call.In.Bot && r.Chat == call.In.Chat }
	if !slices.ContainsFunc(c.o.Bus.Active(), ours) {
		return said("answer_ended")
	}
	if ok, err := c.mayStop(ctx, call); err != nil {
		return command.Outcome{}, err
	} else if !ok {
		return said("stop_not_yours")
	}
	c.o.StopOne(run)
	return command.Outcome{}, nil // the run's own end says that it was stopped
}

// shownHere is the run whose answer stands in the chat where its button was
// pressed; any other's is as good as none.
func (c *Chat) shownHere(ctx context.Context, call command.Call, run string) (orchestrator.RunLine, error) {
	gone := texts.Error(core.Invalid, "answer_old")
	line, err := c.o.Events.Line(ctx, run)
	if core.KindOf(err) == core.NotFound || err == nil && (line.Bot != call.In.Bot || line.Chat != call.In.Chat) {
		return line, gone
	}
	return line, err
}

// again has the message of a run answered once more, as a new turn in its
// sender's name, whoever presses: a guest's words never run at the owner's
// trust. The answer that there is stays, without its button.
func (c *Chat) again(ctx context.Context, call command.Call, run string) (command.Outcome, error) {
	line, err := c.shownHere(ctx, call, run)
	if err != nil {
		return command.Outcome{}, err
	}
	from, err := c.askedBy(ctx, call, line)
	if err != nil {
		return command.Outcome{}, err
	}
	out := command.Outcome{Write: func(ctx context.Context, tx *store.Tx) error { return c.pressed(ctx, tx, call.In.Address, run) }}
	update := "again:" + run
	if _, _, found, err := c.o.Queue.Stored(ctx, call.In.Bot, update); err != nil || found {
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
	return out, c.o.Queue.Put(ctx, []core.Inbound{row}, nil)
}

// askedBy is who asked what a run has answered; Denied for a caller who is
// neither that person nor the owner or an admin.
func (c *Chat) askedBy(ctx context.Context, call command.Call, line orchestrator.RunLine) (core.Peer, error) {
	user, role, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	switch {
	case err != nil:
		return core.Peer{}, err
	case user != 0 && user == line.User:
		return call.In.From, nil
	case role != "owner" && role != "admin":
		return core.Peer{}, texts.Error(core.Denied, "again_not_yours")
	}
	return c.o.Book.Peer(ctx, c.o.DB, line.User, c.o.Platform(call.In.Bot))
}

// lastSaid is the message of a run as text, while it is the newest of the
// conversation that is held in the caller's chat; else "".
func (c *Chat) lastSaid(ctx context.Context, call command.Call, line orchestrator.RunLine) (string, error) {
	sess, ok, err := c.o.Sessions.Current(ctx, c.o.DB, call.In.Address)
	if err != nil || !ok || sess.ID != line.Session {
		return "", err
	}
	if last, err := c.o.Events.LatestOf(ctx, sess.ID); err != nil || last.ID != line.ID {
		return "", err
	}
	said, err := c.o.Sessions.Turn(ctx, sess, session.LineID(line.ID, 0))
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
func (c *Chat) pressed(ctx context.Context, tx *store.Tx, to core.Address, run string) error {
	key := "run:" + run
	p, found, err := c.o.Queue.Posting(ctx, tx, key)
	if err != nil || !found {
		return err
	}
	ours := func(b core.Button) bool { _, ok := command.AgainRun(b.Data); return ok }
	for i := range p.Parts {
		part := p.Parts[i].Part
		if len(part.Buttons) != 1 || !slices.ContainsFunc(part.Buttons[0], ours) {
			continue
		}
		if part.Buttons[0] = slices.DeleteFunc(part.Buttons[0], ours); len(part.Buttons[0]) == 0 {
			part.Buttons = nil
		}
		err := c.o.Queue.Post(ctx, tx, core.Reply{Address: to, Key: key, First: len(p.Parts), Replaces: fmt.Sprintf("@%s/%d", key, i), Parts: []core.Part{part}})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}
	return nil
}

// asFile gives a run's answer as a Markdown document, to the chat that has read
// it; once as long as that is known.
func (c *Chat) asFile(ctx context.Context, call command.Call, run string) (command.Outcome, error) {
	line, err := c.shownHere(ctx, call, run)
	if err != nil {
		return command.Outcome{}, err
	}
	key := "file:" + run
	if _, found, err := c.o.Queue.Posting(ctx, c.o.DB, key); err != nil || found {
		return command.Outcome{Text: texts.Text("file_sent")}, err
	}
	f, err := c.document(ctx, line)
	if err != nil {
		return command.Outcome{}, err
	}
	part := core.Part{File: &f, ReplyTo: call.In.MessageID}
	return command.Outcome{Text: texts.Text("file_pressed"), Write: func(ctx context.Context, tx *store.Tx) error {
		err := c.o.Queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: key, Parts: []core.Part{part}})
		if core.KindOf(err) == core.Conflict {
			c.o.Files.Remove([]core.File{f})
			return nil
		}
		return err
	}}, nil
}

// document keeps what a run answered, out of its conversation, as a file of
// its sender's.
func (c *Chat) document(ctx context.Context, line orchestrator.RunLine) (core.File, error) {
	gone := texts.Error(core.NotFound, "answer_gone")
	sess, err := c.o.Sessions.ByID(ctx, c.o.DB, line.Session)
	if core.KindOf(err) == core.NotFound {
		return core.File{}, gone
	}
	if err != nil {
		return core.File{}, err
	}
	turn, err := c.o.Sessions.Turn(ctx, sess, session.LineID(line.ID, 0))
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
	f, err := c.o.Files.Save(ctx, line.User, documentName(sess.Title), "text/markdown", 0, strings.NewReader(text+"\n"))
	if err != nil {
		return core.File{}, err
	}
	err = c.o.DB.Tx(ctx, func(tx *store.Tx) error {
		return orchestrator.OwnFiles(ctx, tx, line.User, line.Session, line.ID, []core.File{f})
	})
	if err != nil {
		c.o.Files.Remove([]core.File{f})
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
