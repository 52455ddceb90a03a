package guard

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/tool"
)

var (
	ctx   = context.Background()
	owner = core.Actor{User: core.Operator, Via: "chat"}
)

type world struct {
	t     *testing.T
	clock *coretest.Clock
	db    *store.DB
	store *ask.Store
}

func newWorld(t *testing.T) *world {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	return &world{t, clock, db, ask.New(db, clock)}
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(a ask.Ask) ask.Ask {
	w.t.Helper()
	a, err := w.tryOpen(a)
	w.ok(err)
	return a
}

func (w *world) tryOpen(a ask.Ask) (out ask.Ask, err error) {
	err = w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		out, err = w.store.Open(ctx, tx, a)
		return err
	})
	return out, err
}

func (w *world) decide(id, option string, by core.Actor) (a ask.Ask, err error) {
	err = w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		a, err = w.store.Decide(ctx, tx, id, option, by)
		return err
	})
	return a, err
}

func wantKind(t *testing.T, err error, kind core.Kind) {
	t.Helper()
	if core.KindOf(err) != kind {
		t.Fatalf("error %v is of kind %d, want %d", err, core.KindOf(err), kind)
	}
}

// Tools of each kind.
var (
	readTool  = tool.Tool{Name: "Read", Kind: tool.Read}
	writeTool = tool.Tool{Name: "Write", Kind: tool.Write}
	bashTool  = tool.Tool{Name: "Bash", Kind: tool.Shell, Isolated: true}
	fetchTool = tool.Tool{Name: "WebFetch", Kind: tool.Network}
)

func access(t tool.Tool, what string) tool.Access {
	switch t.Kind {
	case tool.Read:
		return tool.Access{Read: []string{what}}
	case tool.Write:
		return tool.Access{Write: []string{what}}
	case tool.Shell:
		return tool.Access{Command: what}
	}
	return tool.Access{}
}
