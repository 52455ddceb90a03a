// Package pending transcribes recordings later, after the transcription failed or was not
// set up: those of journals, whose text is added to their entry, and voice messages, whose
// text is sent to their chat.
package pending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/core/store"
	"gatehouse/core/voice"
)

const (
	maxOfUser  = 500                 // recordings that wait; further ones are not tried again
	firstPause = 5 * time.Minute     // after a failure; doubled after each
	lastPause  = 24 * time.Hour      // between two tries
	keep       = 90 * 24 * time.Hour // until a recording is given up
	perPass    = 20
	maxTries   = 10 // until a recording is given up whose transcription fails after its beginning
	edits      = 5  // of an entry that others change concurrently
)

// Journal is where the texts go.
type Journal interface {
	Entry(ctx context.Context, user int64, id string) (journal.Entry, error)
	Edit(ctx context.Context, user int64, id, version string, e journal.Edit, by core.Actor) (journal.Entry, error)
}

// Options for New. All are needed.
type Options struct {
	DB      *store.DB
	Clock   core.Clock
	Log     *slog.Logger
	Journal Journal
	Chats   Chats
	// Hear transcribes a recording in the vault; nil: nothing is transcribed, and
	// recordings wait until it is. An error that is not the context's is a *voice.Fault.
	Hear func(ctx context.Context, user int64, f core.File, show func(string)) (string, error)
}

// A Store has the recordings that wait. It is safe for concurrent use.
type Store struct {
	o    Options
	busy chan struct{} // capacity 1: one pass at a time
}

// New returns a Store.
func New(o Options) *Store { return &Store{o: o, busy: make(chan struct{}, 1)} }

// Add has the recordings of an entry transcribed later.
func (s *Store) Add(ctx context.Context, tx *store.Tx, user int64, entry string, paths []string) error {
	now := s.o.Clock.Now()
	for _, p := range paths {
		if _, err := tx.Exec(ctx, `INSERT INTO voice_pending (user_id, entry, path, due, created)
			SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM voice_pending WHERE user_id = $1) < $6
			ON CONFLICT (entry, path) DO NOTHING`,
			user, entry, p, core.Stamp(now.Add(firstPause)), core.Stamp(now), maxOfUser); err != nil {
			return fmt.Errorf("note a recording for later: %w", err)
		}
	}
	return nil
}

// A Report is what a pass did.
type Report struct {
	Transcribed int `json:"transcribed"`
	Dropped     int `json:"dropped"` // their entry or recording is gone or damaged, the entry has not the recording any more, it has no speech, its sender has no access any more, or it waited too long
	Waiting     int `json:"waiting"` // after the pass
}

func (r *Report) String() string {
	return fmt.Sprintf("%d transcribed, %d dropped, %d waiting", r.Transcribed, r.Dropped, r.Waiting)
}

const selectRows = `SELECT id, user_id, entry, path, tries, created, bot, chat, thread, place, message, platform, sender FROM voice_pending WHERE `

type row struct {
	ID    int64  `db:"id"`
	User  int64  `db:"user_id"`
	Entry string `db:"entry"`
	Path  string `db:"path"`
	Tries int    `db:"tries"`
	Since string `db:"created"`
	origin
}

// Retry transcribes all recordings that wait, also those that failed recently. It
// ends with the first that the transcription fails for again, unless only its format cannot
// be read. An error about one recording is returned after the others were tried.
func (s *Store) Retry(ctx context.Context, progress func(string)) (r Report, err error) {
	if s.o.Hear == nil {
		return r, core.Errorf(core.Conflict, "no transcription is set up: set GATEHOUSE_TRANSCRIBE_URL or GATEHOUSE_TRANSCRIBE_COMMAND")
	}
	for last, more := int64(0), true; more; {
		var n int
		var failed error
		n, last, failed = s.pass(ctx, `id > $1 ORDER BY id LIMIT $2`, last, &r)
		if ofEngine(failed) || err == nil {
			err = failed
		}
		if more = n > 0 && !ofEngine(failed) && ctx.Err() == nil; more {
			progress(r.String())
		}
	}
	if err2 := s.o.DB.Get(ctx, &r.Waiting, `SELECT count(*) FROM voice_pending`); err == nil {
		err = err2
	}
	return r, err
}

// Run transcribes recordings when they are due, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	if s.o.Hear == nil {
		return
	}
	for core.Sleep(ctx, s.o.Clock, time.Minute) {
		if _, err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.ErrorContext(ctx, "recordings that wait for their text", "err", err)
		}
	}
}

// Pass transcribes recordings that are due, until the transcription fails for one. An error
// about one recording is returned after the others were tried.
func (s *Store) Pass(ctx context.Context) (r Report, err error) {
	_, _, err = s.pass(ctx, `due <= $1 ORDER BY due LIMIT $2`, core.Stamp(s.o.Clock.Now()), &r)
	if ofEngine(err) { // it is logged, and tried again later
		err = nil
	}
	return r, err
}

// ofEngine reports whether an error is about the transcription rather than one recording.
func ofEngine(err error) bool {
	_, ok := errors.AsType[*voice.Fault](err)
	return ok
}

// prune gives up recordings that have waited for long. It runs hourly, as its interval begins
// anew whenever the program starts.
func (s *Store) prune(ctx context.Context) (n int, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, `DELETE FROM voice_pending WHERE created < $1 AND bot = ''`, core.Stamp(s.o.Clock.Now().Add(-keep)))
		n = int(gone)
		return err
	})
	if err != nil {
		return n, err
	}
	given, err := s.giveUp(ctx)
	return n + given, err
}

// pass transcribes some recordings and returns how many there were and the last one's id. It
// ends where the transcription fails; the first error about one recording is returned after the rest.
func (s *Store) pass(ctx context.Context, where string, from any, r *Report) (n int, last int64, failed error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	var rows []row
	if err := s.o.DB.Select(ctx, &rows, selectRows+where, from, perPass); err != nil {
		return 0, 0, err
	}
	for _, w := range rows {
		last = w.ID
		done, err := s.try(ctx, w)
		if err == nil {
			err = s.drop(ctx, w)
		}
		var fault *voice.Fault
		switch {
		case err == nil && done:
			r.Transcribed++
		case err == nil:
			r.Dropped++
		case ctx.Err() != nil:
			return len(rows), last, err
		case !errors.As(err, &fault):
			s.o.Log.ErrorContext(ctx, "a recording that waits for its text", "row", w.ID, "err", err)
			if failed == nil {
				failed = err
			}
		case fault.Code != voice.FaultFormat && fault.Code != voice.FaultQuota: // others may have one that is read, or time left
			return len(rows), last, err
		}
	}
	return len(rows), last, failed
}

// try transcribes a recording, unless it has waited for too long: then it is given up. false
// if it is dropped. After an error it is tried again later.
func (s *Store) try(ctx context.Context, w row) (done bool, err error) {
	now := s.o.Clock.Now()
	switch {
	case w.Bot == "" && w.Since < core.Stamp(now.Add(-keep)):
		return false, nil
	case w.Bot == "":
		done, err = s.one(ctx, w)
	case w.Since < core.Stamp(now.Add(-keepInChat)):
		err = s.tooLong(ctx, w)
	default:
		done, err = s.message(ctx, w)
	}
	if err != nil {
		err = errors.Join(err, s.later(context.WithoutCancel(ctx), w))
	}
	return done, err
}

func (s *Store) drop(ctx context.Context, w row) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := w.remove(ctx, tx)
		return err
	})
}

// remove deletes the row, and returns 0 if it is gone. Its number alone is not it: another
// recording may have it since.
func (w row) remove(ctx context.Context, tx *store.Tx) (n int64, err error) {
	return tx.Exec(ctx, `DELETE FROM voice_pending WHERE id = $1 AND entry = $2 AND path = $3`, w.ID, w.Entry, w.Path)
}

func (s *Store) later(ctx context.Context, w row) error {
	pause := min(firstPause<<min(w.Tries, 20), lastPause)
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE voice_pending SET tries = tries + 1, due = $1 WHERE id = $2 AND entry = $3 AND path = $4`, core.Stamp(s.o.Clock.Now().Add(pause)), w.ID, w.Entry, w.Path)
		return err
	})
}

// by is the editor of the entry in the audit log.
var by = core.Actor{Via: "upkeep"}

// one transcribes a recording of a journal; false if it is dropped. An error is about the engine.
func (s *Store) one(ctx context.Context, w row) (done bool, err error) {
	name, err := journal.FileOf(w.User, w.Path)
	if err != nil {
		return false, nil
	}
	if _, ok, err := s.entry(ctx, w, name); err != nil || !ok {
		return false, err
	}
	text, lasting, err := s.hear(ctx, w, name)
	switch {
	case lasting != nil:
		s.o.Log.WarnContext(ctx, "a recording in the journal is not transcribed", "entry", w.Entry, "err", err)
		return false, nil
	case err != nil:
		s.o.Log.WarnContext(ctx, "a recording in the journal could not be transcribed again", "entry", w.Entry, "tries", w.Tries+1, "err", err)
		return false, err
	case text == "":
		return false, nil
	}
	return s.add(ctx, w, name, text)
}

// hear transcribes a recording. lasting is the fault of one that is not tried again: another try
// would end alike, or would be one too many of those that cost as much again.
func (s *Store) hear(ctx context.Context, w row, name string) (text string, lasting *voice.Fault, err error) {
	begun := false
	text, err = s.o.Hear(ctx, w.User, core.File{Path: name, Name: path.Base(name), Voice: true}, func(string) { begun = true })
	if fault, ok := errors.AsType[*voice.Fault](err); ok && (!fault.Passes() || begun && w.Tries+1 >= maxTries) {
		lasting = fault
	}
	return strings.TrimSpace(text), lasting, err
}

// entry returns the entry of a recording, whose file is name; false if the recording
// is to be dropped.
func (s *Store) entry(ctx context.Context, w row, name string) (e journal.Entry, ok bool, err error) {
	if e, err = s.o.Journal.Entry(ctx, w.User, w.Entry); core.KindOf(err) == core.NotFound {
		return e, false, nil
	} else if err != nil {
		return e, false, err
	}
	has := slices.ContainsFunc(e.Audio, func(a journal.Audio) bool {
		of, err := journal.FileOf(w.User, a.Path)
		return err == nil && of == name
	})
	return e, has && !e.Damaged, nil
}

// add adds the text of a recording to its entry; false if it is dropped.
func (s *Store) add(ctx context.Context, w row, name, text string) (done bool, err error) {
	for range edits {
		e, ok, err := s.entry(ctx, w, name)
		if err != nil || !ok {
			return false, err
		}
		if hasWords(e.Text, text) { // an earlier pass was interrupted after its edit
			return true, nil
		}
		all, whole := journal.Joined(e.Text, text)
		if !whole {
			s.o.Log.WarnContext(ctx, "the text of a recording is longer than its entry may be", "entry", w.Entry)
		}
		switch _, err = s.o.Journal.Edit(ctx, w.User, w.Entry, e.Version, journal.Edit{Text: &all}, by); core.KindOf(err) {
		case core.Conflict:
		case core.Invalid, core.TooLarge, core.NotFound:
			s.o.Log.WarnContext(ctx, "the text of a recording does not fit its entry", "entry", w.Entry, "err", err)
			return false, nil
		default:
			return err == nil, err
		}
	}
	return false, core.Errorf(core.Busy, "the entry %s is changed all the time", w.Entry)
}

// hasWords reports whether all has the words of text, whole and in a row.
func hasWords(all, text string) bool {
	spaced := func(s string) string { return " " + strings.Join(strings.Fields(s), " ") + " " }
	return strings.Contains(spaced(all), spaced(text))
}

// Gauge returns the metric of the recordings that wait.
func (s *Store) Gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_voice_pending", Help: "Recordings in journals and chats that wait for their text."}, func() float64 {
		var n int64
		_ = s.o.DB.Get(context.Background(), &n, `SELECT count(*) FROM voice_pending`)
		return float64(n)
	})
}

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"voice_pending"} }

// Forget deletes the rows of a user.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM voice_pending WHERE user_id = $1`, r.User)
	return err
}

// Merge gives one user's rows to another.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	_, err := tx.Exec(ctx, `UPDATE voice_pending SET user_id = $1 WHERE user_id = $2`, to, from)
	return err
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "voice_pending", Query: `SELECT entry, bot, chat, path, tries, due, created FROM voice_pending WHERE user_id = $1 ORDER BY id LIMIT $2`}}
}

// Chores returns the housekeeping.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{{Name: "old_recordings", Every: time.Hour, Run: s.prune}}
}
