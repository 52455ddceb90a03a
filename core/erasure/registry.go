// Package erasure forgets, exports and merges what is kept of one user. Each
// owner of tables registers a Participant; the package itself knows no table.
package erasure

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Participant owns tables with data of users. It implements those of the
// interfaces below that apply to them.
type Participant interface{ Tables() []string }

// A Forgetter removes what its tables keep of the user, in r's transaction. It
// may be called again for the same person.
type Forgetter interface {
	Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error
}

// A Blanker removes what its tables keep of a session of which turns of one user are
// blanked, in the transaction that replaces the transcript. No run is in the session then.
type Blanker interface {
	Blank(ctx context.Context, tx *store.Tx, session string) error
}

// A Revoker removes a user's access, before anything else is removed and again
// with the last of it.
type Revoker interface {
	Revoke(ctx context.Context, tx *store.Tx, user int64) error
}

// A Sweeper removes most of the user's rows in transactions of its own, before
// Forget, and returns how far it read each table. note is called with files of
// the vault in the transaction that removes the last row that names them.
type Sweeper interface {
	Sweep(ctx context.Context, p core.Person, note func(tx *store.Tx, files []string) error) (map[string]int64, error)
}

// A Merger makes the rows of one user another's, or removes them: two accounts
// of one user were linked.
type Merger interface {
	Merge(ctx context.Context, tx *store.Tx, from, to int64) error
}

// A Mover rewrites the id of a chat to which its platform gave a new one.
type Mover interface {
	Move(ctx context.Context, tx *store.Tx, bot, from, to string) error
}

// A Keeper has regular housekeeping.
type Keeper interface{ Chores() []core.Chore }

// An Exporter has statements that return what its tables keep of a user.
type Exporter interface{ Exports() []store.Export }

// A Registry is the list of participants. Register them before it is used.
type Registry struct{ all []Participant }

// Register adds participants, in the order in which they forget: an owner whose
// rows depend on another's is behind it.
func (r *Registry) Register(all ...Participant) { r.all = append(r.all, all...) }

// Merge makes everything of one user another's.
func (r *Registry) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	for _, m := range having[Merger](r) {
		if err := m.Merge(ctx, tx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// Move rewrites a chat's id everywhere.
func (r *Registry) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	for _, m := range having[Mover](r) {
		if err := m.Move(ctx, tx, bot, from, to); err != nil {
			return err
		}
	}
	return nil
}

// Chores returns the housekeeping of all participants.
func (r *Registry) Chores() (all []core.Chore) {
	for _, k := range having[Keeper](r) {
		all = append(all, k.Chores()...)
	}
	return all
}

// Tables returns the tables of all participants.
func (r *Registry) Tables() (all []string) {
	for _, p := range r.all {
		all = append(all, p.Tables()...)
	}
	return all
}

// Exports returns the statements of all participants.
func (r *Registry) Exports() (all []store.Export) {
	for _, x := range having[Exporter](r) {
		all = append(all, x.Exports()...)
	}
	return all
}

func (r *Registry) revoke(ctx context.Context, tx *store.Tx, user int64) error {
	for _, x := range having[Revoker](r) {
		if err := x.Revoke(ctx, tx, user); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) forget(ctx context.Context, tx *store.Tx, x *core.Removal) error {
	for _, f := range having[Forgetter](r) {
		if err := f.Forget(ctx, tx, x); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) blank(ctx context.Context, tx *store.Tx, session string) error {
	for _, b := range having[Blanker](r) {
		if err := b.Blank(ctx, tx, session); err != nil {
			return err
		}
	}
	return nil
}

// having returns the participants that have the interface T, in order.
func having[T any](r *Registry) (all []T) {
	for _, p := range r.all {
		if x, ok := p.(T); ok {
			all = append(all, x)
		}
	}
	return all
}
