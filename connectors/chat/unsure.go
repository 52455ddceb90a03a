package chat

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// UnsureNotice returns the notice that the message of a row of the outbox may be missing.
func UnsureNotice(row int64) core.Part {
	return core.Part{Text: texts.Text("unsure"), Buttons: [][]core.Button{{{Label: texts.Text("button_unsure"), Data: command.UnsureData(row)}}}}
}

// UnsureResolved returns what takes the place of that notice.
func UnsureResolved(again bool) core.Part {
	if again {
		return core.Part{Text: texts.Text("unsure_again")}
	}
	return core.Part{Text: texts.Text("unsure_arrived")}
}

// showAgain sends a message again that may be missing in the chat of the button, once. The
// gate has admitted the sender to that chat.
func (a *answers) showAgain(ctx context.Context, r command.Request, row int64) (command.Outcome, error) {
	yes, err := a.outbox.Unsure(ctx, a.db, row, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if !yes {
		return command.Respond("unsure_settled")
	}
	return command.Outcome{Text: texts.Text("unsure_pressed"), Write: func(ctx context.Context, tx *store.Tx) error {
		return a.outbox.ShowAgain(ctx, tx, row, r.In.Address, r.In.Aside, r.By())
	}}, nil
}
