package journal

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
)

// quiet is how long a file has to be unchanged before a pass changes it: another program
// may be saving it.
const quiet = 10 * time.Second

// maxSeen limits the files whose state passes remember. A file beyond it is read by each.
const maxSeen = 50_000

// A passState is what the passes before have read.
type passState struct {
	mu    sync.Mutex
	seen  map[string]stamp  // by name; at most maxSeen
	told  map[string]string // errors that were logged, by name; at most maxSeen
	guest int               // number of the guest that the next pass begins with
	after string            // the file that the last Prune ended with
}

type stamp struct {
	size int64
	at   time.Time
}

// Pass reads the day files that were changed since the pass before. Entries without an id
// get one, those that were moved to another day are noted, and of two entries with one id
// the older keeps it and the copy gets a new one, which is reported in the audit log. It
// also recovers what a crash left. It returns how many files it changed. A file that
// cannot be read is logged once, and stops no other; after a passing error the next pass
// reads it again.
func (s *Store) Pass(ctx context.Context) (changed int, err error) {
	s.pass.mu.Lock()
	defer s.pass.mu.Unlock()
	if s.pass.seen == nil {
		s.pass.seen, s.pass.told = map[string]stamp{}, map[string]string{}
	}
	if changed, err = s.passOver(ctx, core.Operator, time.Time{}); err != nil {
		return changed, err
	}
	guests, until := s.guests(), s.o.Clock.Now().Add(guestsTime)
	for range guests {
		if s.late(until) {
			break
		}
		n, err := s.passOver(ctx, guests[s.pass.guest%len(guests)], until)
		if changed += n; err != nil {
			return changed, err
		}
		s.pass.guest = (s.pass.guest + 1) % len(guests)
	}
	return changed, nil
}

// late reports whether the time until has passed; the zero time never has.
func (s *Store) late(until time.Time) bool { return !until.IsZero() && s.o.Clock.Now().After(until) }

// guests returns the guests that have a directory.
func (s *Store) guests() (users []int64) {
	guests, err := fs.ReadDir(s.o.Vault.FS(), core.GuestsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn("the folders of guests cannot be listed for their journals", "err", err)
	}
	for _, g := range guests {
		if id, err := strconv.ParseInt(g.Name(), 10, 64); err == nil && id > 0 && g.IsDir() && core.GuestDir(id) == core.GuestsDir+"/"+g.Name() {
			users = append(users, id)
		}
	}
	return users
}

// passOver reads the changed files of one journal, as far as it comes until then.
func (s *Store) passOver(ctx context.Context, user int64, until time.Time) (changed int, err error) {
	dir := DirOf(user)
	entries, err := fs.ReadDir(s.o.Vault.FS(), dir)
	if err != nil {
		return 0, nil // there is none, or it is no directory: a write reports that
	}
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return changed, err
		}
		if s.late(until) {
			break
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name := dir + "/" + e.Name()
		if m := temporary().FindStringSubmatch(e.Name()); m != nil {
			if core.FileAge(s.o.Clock, info.ModTime()) > quiet {
				left := func() error { return s.recover(ctx, user, dir+"/"+m[1], name, m[2]) }
				if m[3] != "" { // it may be torn, and was not acknowledged
					left = func() error { return s.remove(name) }
				}
				s.tell(name, left())
			}
			continue
		}
		now := stamp{info.Size(), info.ModTime()}
		if _, ok := dateOf(name); !ok || s.pass.seen[name] == now || core.FileAge(s.o.Clock, now.at) <= quiet {
			continue
		}
		did, err := s.settle(ctx, user, name)
		s.tell(name, err)
		if did {
			changed++
			continue // read again by the next pass, as it is then
		}
		if lasting(err) && len(s.pass.seen) < maxSeen {
			s.pass.seen[name] = now
		}
	}
	return changed, nil
}

// lasting reports whether a file would be settled with err again as long as it stays as it is.
func lasting(err error) bool {
	return err == nil || core.KindOf(err) == core.Invalid || core.KindOf(err) == core.TooLarge
}

// tell logs an error of a file, once while it stays the same.
func (s *Store) tell(name string, err error) {
	if err == nil {
		delete(s.pass.told, name)
		return
	}
	if s.pass.told[name] == err.Error() {
		return
	}
	if _, known := s.pass.told[name]; known || len(s.pass.told) < maxSeen {
		s.pass.told[name] = err.Error()
	}
	s.o.Log.Warn("a file of the journal was passed over", "file", name, "err", err)
}

// settle registers the ids of a file and gives new ones where they are needed. It reports
// whether it changed the file. Of a file with too many entries the first get them, and the
// error is errMany.
func (s *Store) settle(ctx context.Context, user int64, name string) (changed bool, err error) {
	defer s.locks.Lock(name)()
	data, err := s.read(name)
	if err != nil {
		return false, err
	}
	f := parse(data)
	if len(f.sections) > maxNumbered {
		err = errMany
	}
	taken, fault := s.claim(ctx, user, name, &f)
	if fault != nil || len(copies(&f, taken)) == 0 {
		return false, cmp.Or(fault, err)
	}
	if changed, fault = s.renumber(ctx, user, name, taken); fault != nil {
		err = fault
	}
	return changed, err
}

// renumber gives new ids to what copies returns.
func (s *Store) renumber(ctx context.Context, user int64, name string, taken map[string]bool) (changed bool, err error) {
	var given []renumbered
	err = s.changeLocked(ctx, user, name, func(f *file) error {
		given = given[:0]
		list := copies(f, taken)
		if err := s.mayAdd(ctx, user, len(list)); err != nil {
			return err
		}
		for _, i := range list {
			id, err := s.freeID(ctx)
			if err != nil {
				return err
			}
			given = append(given, renumbered{f.sections[i].id, id})
			f.number(i, id)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, g := range given {
		if g.was != "" {
			s.o.Log.Info("an entry of the journal was a copy of an older one and got an id of its own", "file", name, "was", g.was, "id", g.id)
		}
	}
	return true, s.note(ctx, user, name, given)
}

// A renumbered is an entry that got an id; was is "" where it had none.
type renumbered struct{ was, id string }

// note registers new ids, with an event of the audit log for each copy.
func (s *Store) note(ctx context.Context, user int64, name string, given []renumbered) error {
	return s.inBatches(ctx, len(given), func(tx *store.Tx, from, to int) error {
		for _, g := range given[from:to] {
			if _, err := s.o.IDs.Claim(ctx, tx, entry.Entry{ID: g.id, Type: entry.Journal, Path: name, User: user}); err != nil {
				return err
			}
			if g.was == "" {
				continue
			}
			if err := store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "journal.renumber", g.id, map[string]any{"was": g.was}); err != nil {
				return err
			}
		}
		return nil
	})
}

// claim registers the ids of f and returns those that belong to other entries.
func (s *Store) claim(ctx context.Context, user int64, name string, f *file) (taken map[string]bool, err error) {
	have, err := s.o.IDs.At(ctx, s.o.DB, name, entry.Journal)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{} // at most 10,000
	for _, e := range have {
		known[e.ID] = e.User == user
	}
	taken = map[string]bool{} // at most the entries of one file
	var moved, unknown []string
	elsewhere := map[string][]string{} // ids by the other file that is to have them; at most maxNumbered
	for _, sec := range f.numbered() {
		if sec.id == "" || known[sec.id] {
			continue
		}
		known[sec.id] = true
		e, err := s.o.IDs.Find(ctx, s.o.DB, sec.id)
		switch {
		case core.KindOf(err) == core.NotFound:
			unknown = append(unknown, sec.id)
		case err != nil:
			return nil, err
		case e.Type == entry.Journal && e.User == user && e.Path == name:
		case e.Type == entry.Journal && e.User == user:
			elsewhere[e.Path] = append(elsewhere[e.Path], sec.id)
		default:
			taken[sec.id] = true
		}
	}
	for other, ids := range elsewhere {
		has := s.entriesOf(other)
		for _, id := range ids {
			if taken[id] = has(id); !taken[id] {
				delete(taken, id)
				moved = append(moved, id)
			}
		}
	}
	if err := s.mayAdd(ctx, user, len(unknown)); err != nil {
		return nil, err
	}
	err = s.inBatches(ctx, len(unknown), func(tx *store.Tx, from, to int) error {
		for _, id := range unknown[from:to] {
			if _, err := s.o.IDs.Claim(ctx, tx, entry.Entry{ID: id, Type: entry.Journal, Path: name, User: user}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return taken, s.inBatches(ctx, len(moved), func(tx *store.Tx, from, to int) error {
		for _, id := range moved[from:to] {
			if err := s.o.IDs.Relocate(ctx, tx, id, name, user); err != nil {
				return err
			}
		}
		return nil
	})
}

// entriesOf returns what reports whether the file name has an entry. One that cannot be
// read has each: no id is taken from it.
func (s *Store) entriesOf(name string) func(id string) bool {
	data, err := s.read(name)
	if err != nil {
		return func(string) bool { return true }
	}
	f := parse(data)
	ids := make(map[string]bool, len(f.sections)) // of one file
	for i := range f.sections {
		ids[f.sections[i].id] = true
	}
	return func(id string) bool { return ids[id] }
}

// copies returns the sections that need a new id: without one, with one that belongs to
// an entry elsewhere, and all but the oldest of those that share one.
func copies(f *file, taken map[string]bool) (all []int) {
	oldest := map[string]int{} // by id; at most the entries of one file
	for i, s := range f.numbered() {
		if was, twice := oldest[s.id]; !twice || earlier(s.when, f.sections[was].when) {
			oldest[s.id] = i
		}
	}
	for i, s := range f.numbered() {
		if s.id == "" || taken[s.id] || oldest[s.id] != i {
			all = append(all, i)
		}
	}
	return all
}

// earlier reports whether the time of day a is before b. A text that is none is before none.
func earlier(a, b string) bool {
	x, okX := minuteOf(a)
	y, okY := minuteOf(b)
	return okX && okY && x < y
}

// minuteOf returns the minute of the day that a heading has.
func minuteOf(when string) (minute int, ok bool) {
	when = strings.ToUpper(strings.ReplaceAll(when, " ", ""))
	for _, layout := range [...]string{"3:04PM", "15:04", "3:04:05PM", "15:04:05"} {
		if t, err := time.Parse(layout, when); err == nil {
			return t.Hour()*60 + t.Minute(), true
		}
	}
	return 0, false
}

// temporary are the names that tempOf makes, and vault.PartOf of them.
var temporary = core.Pattern(`^\.([0-9]{4}-[0-9]{2}-[0-9]{2}\.md)\.(new|[0-9a-f]{16})\.[a-z0-9]{12}(\.part)?\` + tempSuffix + `$`)

// recover removes a temporary file that a crash left, and first adds what only it has: if
// it has the content that was replaced, nothing; else it has what this program was about
// to write, or what another program wrote in that moment. An entry that differs from the
// file's is added as a copy.
func (s *Store) recover(ctx context.Context, user int64, name, temp, was string) error {
	defer s.locks.Lock(name)()
	data, err := s.read(temp)
	if err != nil {
		return err
	}
	if sumOf(data) == was {
		return s.remove(temp)
	}
	if err := s.rejoin(ctx, user, name, temp, data); err != nil {
		return err
	}
	s.o.Log.Info("recovered entries of the journal that a crash interrupted", "file", name)
	return nil
}

func (s *Store) remove(name string) error {
	err := s.o.Vault.RemoveAll(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
