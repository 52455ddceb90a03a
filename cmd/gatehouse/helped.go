package main

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
)

// maxToolName bounds a tool's name in the audit log, in characters.
const maxToolName = 64

// helpers are the sub-turns of Task in the audit log.
type helpers struct{ db *store.DB }

// use records which tools a helper of a turn is about to use, and for which call of Task.
func (h helpers) use(ctx context.Context, t *orchestrator.Turn, parent string, calls []core.Block) error {
	by := core.Actor{User: t.User, Via: "chat"}
	if t.Rows[0].Bot == core.APIBot {
		by.Via = "api"
	}
	return h.db.Tx(ctx, func(tx *store.Tx) error {
		for i := range calls {
			err := store.Audit(ctx, tx, by, "tool.use", t.Session.ID, map[string]any{
				"run": t.Run, "tool": core.CutRunes(core.CleanName(calls[i].Name), maxToolName), "call": calls[i].ID, "parent": parent,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
