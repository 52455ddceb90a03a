package activity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/activity/daylog"
	"gatehouse/core/activity/summary"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// follow does what is to be done about a run, but for writing files. An error is one of
// the database or of ctx; whatever else fails is noted, and the run counts as followed.
func (w *Worker) follow(ctx context.Context, f runs.Finished) error {
	s, err := w.o.Sessions.ByID(ctx, w.o.DB, f.Session)
	if core.KindOf(err) == core.NotFound {
		return w.o.DB.Tx(ctx, func(tx *store.Tx) error { return w.o.Runs.Followed(ctx, tx, f.ID) })
	}
	if err != nil {
		return err
	}
	trust, title, line := todo(f.Follow)
	if line = line && trust <= core.Vault; line { // others read the log at trust vault
		if line, err = w.own(ctx, &s, f); err != nil {
			return err
		}
	}
	r := row{Run: f.ID, Session: s.ID, User: f.User, State: stateNew}
	if title = title && s.TitleSource == session.TitleDefault; title || line {
		x := summary.Exchange{Run: f.ID, Session: s.ID, Bot: f.Bot, User: f.User, Trust: trust}
		var shared bool
		x.Said, x.Answer, shared, err = w.exchange(ctx, s, f)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if trust > core.Vault { // the title is read at trust vault, and is of what the user wrote alone
			x.Answer = ""
		}
		if line = line && !shared; err != nil {
			w.metrics.failed(failTranscript)
			w.o.Log.Warn("an exchange cannot be read for the log of activity", "session", s.ID, "run", f.ID, "err", err)
			r.State, r.Fault = stateFault, "its transcript cannot be read: "+reason(err)
		} else if err := w.describe(ctx, &s, x, title, line, &r.Summary); err != nil {
			return err
		}
	}
	if !line {
		return w.o.DB.Tx(ctx, func(tx *store.Tx) error { return w.o.Runs.Followed(ctx, tx, f.ID) })
	}
	return w.keep(ctx, &s, f, r)
}

// own reports whether an exchange is of a conversation that is the owner's alone. One of
// which that is not known is not.
func (w *Worker) own(ctx context.Context, s *session.Session, f runs.Finished) (bool, error) {
	if !w.o.On() || !Logged(s) || f.User != core.Operator {
		return false, nil
	}
	private, err := w.o.Sessions.Private(ctx, s.ID)
	if err != nil || !private[s.ID] {
		return false, err
	}
	shared, err := w.o.Runs.Shared(ctx, w.o.DB, s.ID, core.Operator)
	return !shared, err
}

// describe gives the session a title and writes a summary of x into line, as far as each
// is wanted. Where the model fails, the title stays and the summary is extracted.
func (w *Worker) describe(ctx context.Context, s *session.Session, x summary.Exchange, title, summed bool, line *string) error {
	if title {
		text, err := w.o.Writer.Title(ctx, x)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.note("title", s.ID, err)
		err = w.o.DB.Tx(ctx, func(tx *store.Tx) error {
			_, err := w.o.Sessions.SetTitle(ctx, tx, s.ID, text, session.TitleModel)
			return err
		})
		if err != nil && core.KindOf(err) != core.NotFound { // deleted since
			return err
		}
	}
	if !summed {
		return nil
	}
	text, err := w.o.Writer.Line(ctx, x)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.note("summary", s.ID, err)
	*line = cmp.Or(text, summary.Extract(x.Said, x.Answer))
	return nil
}

// note logs and counts a failure of the model; none is fine.
func (w *Worker) note(what, session string, err error) {
	switch {
	case err == nil:
		return
	case summary.Refused(err):
		w.metrics.failed(failBudget)
	default:
		w.metrics.failed(failModel)
	}
	w.o.Log.Info("the model wrote no "+what+"; the first words are taken", "session", session, "err", err)
}

// keep stores what is to be written of a run, which is then followed. A session that is
// deleted concurrently keeps nothing: removeGone finds it.
func (w *Worker) keep(ctx context.Context, s *session.Session, f runs.Finished, r row) error {
	local := f.Ended.In(w.o.Zone(ctx))
	r.At, r.Agent, r.Day, r.LogDay = core.Stamp(f.Ended), s.AgentType, f.Ended.UTC().Format(dayForm), local.Format(dayForm)
	known := "" // the entry's id, where the file has one that no row names
	if text, err := w.read(logFile(r.LogDay)); err == nil {
		known = daylog.Find(string(text.data), s.ID)
	}
	return w.o.DB.Tx(ctx, func(tx *store.Tx) error {
		now, err := w.o.Sessions.ByID(ctx, tx, s.ID)
		if core.KindOf(err) == core.NotFound {
			return w.o.Runs.Followed(ctx, tx, f.ID)
		}
		if err != nil {
			return err
		}
		r.Title = now.Title
		if r.Number, err = w.number(ctx, tx, f); err != nil {
			return err
		}
		if err := w.insert(ctx, tx, r, local.Format("15:04"), known); err != nil {
			return err
		}
		return w.o.Runs.Followed(ctx, tx, f.ID)
	})
}

// exchange returns what the run's user wrote, then what they forwarded, marked as such, and
// what was answered, and whether someone else has written in what was read.
func (w *Worker) exchange(ctx context.Context, s session.Session, f runs.Finished) (said, answer string, shared bool, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%v\n%s", what, debug.Stack())
		}
	}()
	turn, err := w.o.Sessions.Turn(ctx, s, transcript.LineID(f.ID, 0))
	if core.KindOf(err) == core.NotFound {
		turn, err = w.turnByTime(ctx, s, f)
	}
	if err != nil {
		return "", "", false, err
	}
	var words, passed []string
	for i := range turn {
		m := &turn[i]
		shared = shared || m.Author != nil && m.Author.Place != ""
		switch {
		case m.Role == "assistant":
			answer = cmp.Or(strings.TrimSpace(m.ShownText()), answer)
		case m.Begins():
			wrote, forwarded := written(m)
			words, passed = append(words, wrote...), append(passed, forwarded...)
		}
	}
	return strings.Join(append(words, passed...), "\n\n"), answer, shared, nil
}

// written returns the texts that the user of m wrote, and those that they forwarded, each
// behind whose it is.
func written(m *transcript.Message) (wrote, forwarded []string) {
	if m.Summary {
		return []string{m.Text()}, nil
	}
	_, blocks := m.Shown(true)
	for i := range blocks {
		text := strings.TrimSpace(blocks[i].Text)
		switch q := blocks[i].Quote; {
		case blocks[i].Type != "text" || text == "":
		case q != nil && q.Forwarded:
			forwarded = append(forwarded, "Forwarded from "+cmp.Or(transcript.OneLine(q.Name), "someone else")+": "+text)
		default:
			wrote = append(wrote, text)
		}
	}
	return wrote, forwarded
}

var errNoTurn = errors.New("it has no such message")

// turnByTime returns the messages that were written during the run, for runs whose lines
// another program writes.
func (w *Worker) turnByTime(ctx context.Context, s session.Session, f runs.Finished) ([]transcript.Message, error) {
	p, err := w.o.Sessions.Page(ctx, s, transcript.PageQuery{Limit: 200})
	if err != nil {
		return nil, err
	}
	all := p.Messages
	from := slices.IndexFunc(all, func(m transcript.Message) bool {
		return m.Run == f.ID || m.Run == "" && m.Begins() && !m.At.Before(f.Started)
	})
	if from < 0 || all[from].At.After(f.Ended) {
		return nil, errNoTurn
	}
	to := from + 1
	for to < len(all) && (all[to].Run == f.ID || all[to].Run == "" && !all[to].At.After(f.Ended)) {
		to++
	}
	return all[from:to], nil
}
