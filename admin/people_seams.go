package admin

import (
	"context"
	"io"
	"time"

	"gatehouse/core"
	"gatehouse/core/usage"
	"gatehouse/pairing"
)

type (
	// Persons are people with all their accounts (pairing.Book).
	Persons interface {
		Persons(ctx context.Context, limit int) ([]pairing.PersonRow, error)
		PersonOf(ctx context.Context, user int64) (pairing.PersonRow, error)
		AccessOf(ctx context.Context, user int64) ([]core.AccessRow, error)
	}
	// Terms change what a person may do, and which accounts are theirs (pairing.Book).
	Terms interface {
		ChangeAccess(ctx context.Context, id int64, a core.Approval, by core.Actor) error
		// GiveAccess opens a bot's direct messages, or with a place a group.
		GiveAccess(ctx context.Context, user int64, bot, place string, a core.Approval, by core.Actor) error
		Unlink(ctx context.Context, user int64, platform string, by core.Actor) error
	}
	// Spending is what people use, and may use in a day and in a month.
	Spending interface {
		Standing(ctx context.Context, user int64) (usage.Standing, error)
		// SetBudget takes amounts as settings do: "200k", "$2", "off" for no
		// bound; "" is what holds for everybody, who have no bound of a month.
		SetBudget(ctx context.Context, user int64, day, month string, by core.Actor) error
	}
	// Care is what takes long with what is known of a person: orders that go on
	// while nobody looks. One that is given while it runs is the same one.
	Care interface {
		Forget(ctx context.Context, user int64, by core.Actor) error
		Export(ctx context.Context, user int64, by core.Actor) error
		// Job is how an order of this kind ("forget", "export") stands.
		Job(kind string, user int64) (Job, bool)
		// OpenExport is the file that an export has made; core.NotFound without one.
		OpenExport(ctx context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error)
	}
	// A Job is how a long order stands.
	Job struct {
		Running bool
		Tell    string    // how far it is, while it runs
		Said    []string  // what came of it
		Error   string    // why nothing came of it, fit to be shown
		At      time.Time // when it ended
		Size    int64     // of the file that it made
	}
)
