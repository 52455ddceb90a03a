package views

import (
	"cmp"
	"context"
	"strconv"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/runs"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// Retry has the message of a failed run answered again, behind what waits in its
// chat, in the name of its sender: no one's message runs at the trust of who presses
// the button. The queue takes it once: the button in the chat stores the same update.
func (v panelActs) Retry(ctx context.Context, run string, by core.Actor) error {
	line, err := v.c.Events.Line(ctx, run)
	if err != nil {
		return err
	}
	if line.State != "error" {
		return core.Errorf(core.Conflict, "this message has an answer, or is being answered")
	}
	if last, err := v.c.Events.LatestOf(ctx, line.Session); err != nil || last.ID != run {
		return cmp.Or(err, core.Errorf(core.Conflict, "the conversation has gone on since; only its newest message can be answered again"))
	}
	update := "again:" + run
	if _, _, found, err := v.c.Inspect.Stored(ctx, line.Bot, update); err != nil || found {
		return cmp.Or(err, core.Errorf(core.Conflict, "this message is being answered again already"))
	}
	in, err := v.again(ctx, line)
	if err != nil {
		return err
	}
	in.UpdateID, in.Kind, in.At, in.Again, in.Addressed = update, core.KindMessage, v.c.Clock.Now().UTC(), run, true
	if err := v.c.Queue.Put(ctx, []core.Inbound{in}, nil); err != nil {
		return err
	}
	return logView{v.c.DB, v.c.Ledger}.Did(ctx, by, "run.retry", run)
}

// again returns the message of a run: where it came from, who sent it, and its text.
func (v panelActs) again(ctx context.Context, line runs.Line) (in core.Inbound, err error) {
	sess, err := v.c.SessionStore.ByID(ctx, v.c.DB, line.Session)
	if err != nil {
		return in, err
	}
	turn, err := v.c.SessionStore.Turn(ctx, sess, transcript.LineID(line.ID, 0))
	switch {
	case core.KindOf(err) == core.NotFound:
		return in, core.Errorf(core.Conflict, "the text of this message is not stored; ask its sender to write it again")
	case err != nil:
		return in, err
	}
	in.Text = cmp.Or(turn[0].Text(), texts.Text("said_files"))
	if line.Bot == core.ScheduleBot {
		return in, core.Errorf(core.Conflict, "a daily agent has started this; run the agent again")
	}
	if line.Bot == core.APIBot {
		if line.User != core.Operator {
			return in, core.Errorf(core.Conflict, "this message came from a program with a key of its own; the program can send it again")
		}
		in.Address = core.Address{Bot: core.APIBot, Chat: sess.ID}
		in.From = core.Peer{Platform: core.APIBot, ID: "user:" + strconv.FormatInt(line.User, 10)}
		in.Turn = &core.Options{Session: sess.ID, Run: uuid.NewString(), User: line.User, Respond: true}
		return in, nil
	}
	at, bound, err := v.Bound(ctx, sess.ID)
	if err != nil {
		return in, err
	}
	if !bound || at.Bot != line.Bot || at.Chat != line.Chat {
		return in, core.Errorf(core.Conflict, "its chat has another conversation now")
	}
	in.Address = at
	in.From, err = v.c.Pairing.People.Peer(ctx, v.c.DB, line.User, v.c.BotList.Platform(line.Bot))
	return in, err
}
