package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// People finds a user by reference, or returns core.NotFound.
type People interface {
	Person(ctx context.Context, q store.Queryer, ref string) (core.Person, error)
}

// Runs aborts what runs for a user.
type Runs interface {
	AbortUser(bot string, user int64)
	Busy(user int64) bool
}

// Events removes the stored events of a session's runs.
type Events interface {
	ForgetSession(ctx context.Context, tx *store.Tx, session string) error
}

// Files lists the files that came with a user's messages, a page at a time, by
// name, from behind after on.
type Files interface {
	FilesOf(ctx context.Context, user int64, after string) ([]string, error)
}

// Options of New.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Clock    core.Clock
	Registry *Registry
	People   People
	Runs     Runs
	Sessions *session.Store
	Events   Events
	Files    Files

	Answering func(session string) bool // in a transaction: none is claimed during it
	Area      func(user int64) string   // the user's directory in the vault
	Serving   func() bool               // others may be waiting for the database
	Forgotten func()                    // clears what is kept in memory
}

// An Eraser forgets and exports users. It is safe for concurrent use; it
// forgets one user at a time.
type Eraser struct {
	o         Options
	mu        sync.Mutex
	notBefore time.Time // the database is not rewritten by itself before this
}

// New returns an Eraser.
func New(o Options) *Eraser { return &Eraser{o: o} }

// Forgotten describes what was erased.
type Forgotten struct {
	User      int64    `json:"user_id"`
	Sessions  int      `json:"sessions"`
	Turns     int      `json:"turns"`     // in groups, blanked
	Files     int      `json:"files"`     // that came with messages
	Compacted bool     `json:"compacted"` // the database's file was rewritten
	Left      []string `json:"left"`      // what is still to do or to know
}

const (
	workKey  = "forget:"       // metadata: what is left to do in the vault
	begunKey = "forgetting:"   // metadata: a begun forgetting, by reference
	pagesKey = "forget-pages:" // metadata, by the reference's hash: free pages of the database's file may have traces

	// Step is how many rows one transaction removes of the user: other writers
	// wait for no more than that.
	Step = 500
	// patience is how long a run may take to end.
	patience = time.Minute
	// rest is between two times that upkeep tries to rewrite the database.
	rest = time.Hour
	// maxCompact is the largest database, in bytes, that is rewritten while the
	// gateway serves.
	maxCompact = 1 << 30
)

// Person returns the user that ref names with their sessions and chats, or
// core.NotFound.
func (e *Eraser) Person(ctx context.Context, ref string) (core.Person, error) {
	return e.person(ctx, e.o.DB, ref)
}

func (e *Eraser) person(ctx context.Context, q store.Queryer, ref string) (core.Person, error) {
	p, err := e.o.People.Person(ctx, q, ref)
	if err != nil {
		return p, err
	}
	var chats []core.Address
	p.Sessions, chats, err = e.o.Sessions.Owned(ctx, q, p.User)
	p.Chats = union(p.Chats, chats)
	return p, err
}

// union returns a with what only b has behind it.
func union(a, b []core.Address) []core.Address {
	for _, c := range b {
		if !slices.Contains(a, c) {
			a = append(a, c)
		}
	}
	return a
}

// A begun forgetting is stored in the metadata from the user's last access to
// their last row, so that an interrupted one can be continued.
type begun struct {
	Ref   string         `json:"ref"`
	By    core.Actor     `json:"by"`
	Chats []core.Address `json:"chats"` // no table knows them later
}

// Forget erases the user that ref names. After an
// interruption it is called again: it finishes what is left of any. progress,
// which may be nil, is called with what it is doing. The operator is
// core.Invalid, someone unknown core.NotFound; while a run does not end it
// returns core.Busy.
func (e *Eraser) Forget(ctx context.Context, ref string, by core.Actor, progress func(string)) (f Forgotten, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if progress == nil {
		progress = func(string) {}
	}
	f.Left = []string{}
	finished, err := e.finish(ctx, &f)
	if err != nil {
		return f, err
	}
	p, err := e.Person(ctx, ref)
	if core.KindOf(err) == core.NotFound {
		if traces, failed := e.traces(ctx, pagesOf(ref)); failed != nil || finished > 0 || traces {
			return f, errors.Join(failed, e.compact(ctx, &f))
		}
	}
	if err != nil {
		return f, err
	}
	if p.User == core.Operator {
		return f, core.Errorf(core.Invalid, "the operator cannot be deleted")
	}
	f.User = p.User
	progress("stopping what runs")
	if err := e.begin(ctx, p, ref, by); err != nil {
		return f, err
	}
	if err := e.rows(ctx, ref, progress); err != nil {
		return f, err
	}
	e.o.Forgotten()
	progress("erasing files")
	if _, err := e.finish(ctx, &f); err != nil {
		return f, err
	}
	progress("rewriting the database")
	return f, e.compact(ctx, &f)
}

// Resume finishes interrupted forgettings, unless one is running, and returns
// how many it finished. It is core.Busy where the database's file still has to be rewritten.
func (e *Eraser) Resume(ctx context.Context) (int, error) {
	if !e.mu.TryLock() {
		return 0, nil
	}
	defer e.mu.Unlock()
	n, err := e.finish(ctx, &Forgotten{})
	if err != nil {
		return n, err
	}
	if n == 0 {
		if traces, err := e.traces(ctx, pagesKey); err != nil || !traces || e.o.Clock.Now().Before(e.notBefore) {
			return 0, err
		}
	}
	e.notBefore = e.o.Clock.Now().Add(rest) // writers wait for it: not soon, if it fails
	var f Forgotten
	if err := e.compact(ctx, &f); err != nil || f.Compacted || store.OnServer(e.o.DB.Path()) {
		return n, err
	}
	return n, core.Errorf(core.Busy, "%s", f.Left[0])
}

// traces reports whether a forgetting, of those whose notes begin so, was interrupted before
// the database was rewritten.
func (e *Eraser) traces(ctx context.Context, prefix string) (bool, error) {
	notes, err := store.MetadataLike(ctx, e.o.DB, prefix)
	return len(notes) > 0, err
}

// pagesOf returns the key of the note about a reference, which it does not show.
func pagesOf(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return pagesKey + hex.EncodeToString(sum[:8])
}

// begin revokes the user's access and keys, stores that the forgetting has begun
// and waits until nothing runs for them.
func (e *Eraser) begin(ctx context.Context, p core.Person, ref string, by core.Actor) error {
	note, err := json.Marshal(begun{Ref: ref, By: by, Chats: p.Chats})
	if err != nil {
		return err
	}
	err = e.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, exists, err := store.Metadata(ctx, tx, begunKey+ref)
		if err == nil && !exists { // the first note has all chats
			err = store.SetMetadata(ctx, tx, begunKey+ref, string(note))
		}
		if err != nil || p.User == 0 {
			return err
		}
		return e.o.Registry.revoke(ctx, tx, p.User)
	})
	if err != nil || p.User == 0 {
		return err
	}
	return e.stop(ctx, p)
}

// stop aborts what runs for the user and waits for its end.
func (e *Eraser) stop(ctx context.Context, p core.Person) error {
	bots := []string{core.APIBot}
	for _, c := range p.Chats {
		bots = append(bots, c.Bot)
	}
	for _, id := range p.Identities {
		bots = append(bots, id.Bots...)
	}
	slices.Sort(bots)
	bots = slices.Compact(bots)
	until := e.o.Clock.Now().Add(patience)
	for {
		for _, bot := range bots {
			e.o.Runs.AbortUser(bot, p.User)
		}
		if !e.o.Runs.Busy(p.User) {
			return nil
		}
		if e.o.Clock.Now().After(until) {
			return core.Errorf(core.Busy, "something of this person still runs and does not end; they have no access any more: try again")
		}
		if !core.Sleep(ctx, e.o.Clock, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// compact removes the erased rows from the database's file. On a server that is what its
// vacuum does.
func (e *Eraser) compact(ctx context.Context, f *Forgotten) (err error) {
	most := int64(maxCompact)
	if !e.o.Serving() {
		most = 0
	}
	if err := e.o.Sessions.PurgeWords(ctx); err != nil {
		return err
	}
	f.Compacted, err = e.o.DB.Compact(ctx, most)
	switch {
	case core.KindOf(err) == core.Busy:
		f.Left = append(f.Left, "Another program reads the database, so free pages of its file may still have traces: a gateway that serves removes them later, each hour that it can, if the database has at most 1 GiB; else stop both and run the same command again.")
	case err != nil:
		return err
	case f.Compacted || store.OnServer(e.o.DB.Path()):
		if err := e.o.DB.Tx(ctx, func(tx *store.Tx) error { _, err := store.DeleteMetadataLike(ctx, tx, pagesKey); return err }); err != nil {
			return err
		}
	default:
		f.Left = append(f.Left, "The database is too large to be rewritten while the gateway serves, so free pages of its file may still have traces: stop the gateway and run the same command again.")
	}
	copies, err := e.o.DB.Copies()
	for _, c := range copies {
		f.Left = append(f.Left, "A copy of the database from before an upgrade may still hold the person's data; delete it when you do not need it: "+c)
	}
	return err
}
