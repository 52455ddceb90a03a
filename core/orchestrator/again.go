package orchestrator

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// stillLast refuses a turn that answers a message again and has waited for others,
// because later messages may have changed the request. A turn that began before a crash
// continues.
func (o *Orchestrator) stillLast(ctx context.Context, tx *store.Tx, t *Turn) error {
	again := t.Rows[0].Again
	if again == "" {
		return nil
	}
	if begun, err := runs.Begun(ctx, tx, t.Run); err != nil || begun {
		return err
	}
	last, err := runs.Newest(ctx, tx, t.Session.ID)
	if err != nil {
		return err
	}
	if last != again {
		return texts.Error(core.Conflict, "again_said_since")
	}
	return nil
}

// repeated returns the message of an earlier run that the row is to have answered
// again, with what came with it; nil if it is not found any more, so that its text is
// used instead.
func (r *run) repeated(ctx context.Context, row *core.Inbound) (*transcript.Message, error) {
	if row.Again == "" {
		return nil, nil
	}
	said, err := r.o.Sessions.Turn(ctx, r.t.Session, transcript.LineID(row.Again, 0))
	if core.KindOf(err) == core.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &said[0], nil
}

// withoutAnsweredAgain returns past without the turns that are answered again, so that the model does
// not read its first answer. Turns with tool calls stay, because their effects exist and
// must not be repeated.
func (r *run) withoutAnsweredAgain(past []transcript.Message) []transcript.Message {
	for i := range r.t.Rows {
		run := r.t.Rows[i].Again
		of := func(m transcript.Message) bool { return m.Run == run }
		worked := func(m transcript.Message) bool { return of(m) && len(calls(m.Blocks)) > 0 }
		if run != "" && !slices.ContainsFunc(past, worked) {
			past = slices.DeleteFunc(slices.Clone(past), of)
		}
	}
	return past
}
