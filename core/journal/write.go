package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// maxTries limits how often a write is repeated on a file that other programs change.
const maxTries = 20

// change reads the file name, has do change it, and replaces it in one step. When another
// program changed the file concurrently, do is called again with the new content. An error
// of do ends it.
func (s *Store) change(ctx context.Context, user int64, name string, do func(f *file) error) error {
	defer s.locks.Lock(name)()
	return s.changeLocked(ctx, user, name, do)
}

// changeLocked is change for a caller that has locked the file.
func (s *Store) changeLocked(ctx context.Context, user int64, name string, do func(f *file) error) error {
	for range maxTries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		was, err := s.read(name)
		if err != nil {
			return err
		}
		f := parse(was)
		if err := do(&f); err != nil {
			return err
		}
		data := f.bytes()
		if was != nil && bytes.Equal(data, was) {
			return nil
		}
		if len(data) > MaxDay {
			return core.Errorf(core.TooLarge, "the day's file would be larger than %s", core.ByteSize(MaxDay))
		}
		if s.o.Room != nil {
			if err := s.o.Room(ctx, user, name, was == nil, int64(len(data)-len(was))); err != nil {
				return err
			}
		}
		s.between(name)
		temp := tempOf(name, was)
		displaced, err := s.o.Vault.Swap(name, temp, was, data)
		if err == nil && displaced != nil {
			return s.rejoin(ctx, user, name, path.Dir(name)+"/"+temp, displaced)
		}
		if !errors.Is(err, vault.ErrChanged) {
			return err
		}
	}
	return core.Errorf(core.Busy, "another program keeps changing the day's file: try again")
}

// rejoin brings what a write has displaced, which is in the file temp, together with what
// the file name has now.
func (s *Store) rejoin(ctx context.Context, user int64, name, temp string, displaced []byte) error {
	lost := parse(displaced)
	if err := s.changeLocked(ctx, user, name, func(f *file) error { f.join(&lost); return nil }); err != nil {
		return err
	}
	return s.remove(temp)
}

// tempOf returns the temporary name of a new content of the file name. It names the file
// and the content that is replaced, so that what a crash leaves can be identified.
func tempOf(name string, was []byte) string {
	return "." + path.Base(name) + "." + sumOf(was) + "." + entry.Random() + tempSuffix
}

// tempSuffix ends temporary names, as those of the vault's other files.
const tempSuffix = ".gatehouse-tmp"

func sumOf(data []byte) string {
	if data == nil {
		return "new"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// A Draft is an entry to be added.
type Draft struct {
	Date   string    // of the day
	At     time.Time // its time of day, in the user's time zone
	Text   string
	Images []Image // paths relative to the day's file
	Audio  []Audio
	// Key makes a repeat of the same Append after a crash add nothing: the user's entry of
	// that key is returned. It is kept until Settle. "": each Append adds an entry.
	Key string
}

// keyPrefix begins the metadata that has the entry of a Draft.Key.
const keyPrefix = "journal:"

// Repeated returns the user's entry that was added with this key, or false.
func (s *Store) Repeated(ctx context.Context, user int64, key string) (Entry, bool, error) {
	note, exists, err := store.Metadata(ctx, s.o.DB, keyPrefix+key)
	if err != nil || !exists {
		return Entry{}, false, err
	}
	id, date, _ := strings.Cut(note, " ")
	d, err := s.Day(ctx, user, date)
	if err != nil {
		return Entry{}, false, err
	}
	for _, e := range d.Entries {
		if e.ID == id {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
}

// Settle forgets a key, in the transaction that ends what it is for.
func (s *Store) Settle(ctx context.Context, tx *store.Tx, key string) error {
	return store.DeleteMetadata(ctx, tx, keyPrefix+key)
}

// Append adds an entry at the end of a day of the user's journal and returns it. It is on
// the disk when Append returns. An entry without text and attachments is core.Invalid.
func (s *Store) Append(ctx context.Context, user int64, n Draft, by core.Actor) (Entry, error) {
	name, err := PathOf(user, n.Date)
	if err != nil {
		return Entry{}, err
	}
	text, err := cleanText(n.Text)
	if err == nil {
		err = cleanAttachments(n.Images, n.Audio)
	}
	if err != nil {
		return Entry{}, err
	}
	if text == "" && len(n.Images)+len(n.Audio) == 0 {
		return Entry{}, core.Errorf(core.Invalid, "the entry is empty: write some text")
	}
	id, err := s.freeID(ctx)
	if err == nil && n.Key != "" {
		var done bool
		var was Entry
		if was, done, err = s.Repeated(ctx, user, n.Key); done {
			return was, nil
		}
		if err == nil {
			err = s.o.DB.Save(ctx, keyPrefix+n.Key, id+" "+n.Date)
		}
	}
	if err != nil {
		return Entry{}, err
	}
	added := section{id: id, when: n.At.Format("3:04 PM")}
	added.raw = render(titleOf(id, n.At), text, n.Images, n.Audio)
	if err := s.change(ctx, user, name, func(f *file) error { f.add(added); return nil }); err != nil {
		s.unsettle(ctx, user, n.Key, err)
		return Entry{}, err
	}
	s.register(ctx, user, name, id, "journal.write", by)
	return added.entry(n.Date), nil
}

// Preview returns a day's file before the entry d is added and after it, with an id that is
// not the entry's; before is nil without a file. It changes nothing.
func (s *Store) Preview(user int64, d Draft) (before *string, after string, err error) {
	name, err := PathOf(user, d.Date)
	if err != nil {
		return nil, "", err
	}
	text, err := cleanText(d.Text)
	if err != nil {
		return nil, "", err
	}
	data, err := s.read(name)
	if err != nil {
		return nil, "", err
	}
	if data != nil {
		was := string(data)
		before = &was
	}
	f := parse(data)
	f.add(section{raw: render(titleOf("new", d.At), text, d.Images, d.Audio)})
	return before, string(f.bytes()), nil
}

// unsettle forgets the key of an Append that was refused, so that nothing was written and
// no one repeats it. After another error the caller tries again.
func (s *Store) unsettle(ctx context.Context, user int64, key string, refusal error) {
	if key == "" || core.KindOf(refusal) == core.Other {
		return
	}
	_, written, err := s.Repeated(ctx, user, key)
	if err == nil && !written {
		err = s.o.DB.TxSoon(ctx, func(tx *store.Tx) error { return s.Settle(ctx, tx, key) })
	}
	if err != nil {
		s.o.Log.Warn("the key of a refused entry of the journal is kept until it is old", "err", err)
	}
}

// freeID returns a new id that the registry does not have.
func (s *Store) freeID(ctx context.Context) (string, error) {
	for {
		id := entry.Random()
		_, err := s.o.IDs.Find(ctx, s.o.DB, id)
		if core.KindOf(err) == core.NotFound {
			return id, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// register notes in the registry that the file name has the entry id, with an event of
// the audit log. It does not wait for the disk, and an error is logged: the entry is
// written, and the next pass registers what it finds in the file.
func (s *Store) register(ctx context.Context, user int64, name, id, action string, by core.Actor) {
	err := s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		_, err := s.o.IDs.Claim(ctx, tx, entry.Entry{ID: id, Type: entry.Journal, Path: name, User: user})
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, action, id, nil)
	})
	if err != nil {
		s.o.Log.Error("an entry of the journal was written and could not be registered", "action", action, "id", id, "err", err)
	}
}

// An Edit is what Store.Edit changes; what is nil stays.
type Edit struct {
	Text *string
}

// A Conflict is the error of an edit of an older version. Its kind is core.Conflict.
type Conflict struct {
	Current Entry // as the file has it now
}

// Error implements error.
func (c *Conflict) Error() string { return "the entry was changed since it was read" }

// Unwrap returns an error of the kind core.Conflict.
func (c *Conflict) Unwrap() error { return core.Errorf(core.Conflict, "%s", c.Error()) }

// Edit changes an entry of the user's journal that has the version, and returns it as it
// is then. Its heading and its attachments stay. If it has another version by now,
// nothing is changed and the error is a *Conflict.
func (s *Store) Edit(ctx context.Context, user int64, id, version string, e Edit, by core.Actor) (edited Entry, err error) {
	name, date, err := s.locate(ctx, user, id)
	if err != nil {
		return Entry{}, err
	}
	text := ""
	if e.Text != nil {
		if text, err = cleanText(*e.Text); err != nil {
			return Entry{}, err
		}
	}
	err = s.change(ctx, user, name, func(f *file) error {
		i, now, err := s.current(f, id, version, date)
		if err != nil {
			return err
		}
		if now.Damaged {
			return core.Errorf(core.Conflict, "the entry is not UTF-8, so an edit would lose some of it: edit it with the program that wrote it")
		}
		if e.Text == nil {
			text = now.Text
		}
		if text == "" && len(now.Images)+len(now.Audio) == 0 {
			return core.Errorf(core.Invalid, "the entry would be empty: write some text, or delete it")
		}
		if text != now.Text {
			f.rewrite(i, text, now.Images, now.Audio)
		}
		edited = f.sections[i].entry(date)
		return nil
	})
	if err != nil {
		return Entry{}, err
	}
	s.register(ctx, user, name, id, "journal.edit", by)
	return edited, nil
}

// current returns the entry id of f, which has to have the version.
func (s *Store) current(f *file, id, version, date string) (i int, now Entry, err error) {
	if i = f.find(id); i < 0 {
		return i, now, noEntry(id)
	}
	if now = f.sections[i].entry(date); now.Version != version {
		return i, now, &Conflict{Current: now}
	}
	return i, now, nil
}

// Delete removes an entry of the user's journal that has the version; its attachments
// stay. If it has another version by now, nothing is changed and the error is a
// *Conflict.
func (s *Store) Delete(ctx context.Context, user int64, id, version string, by core.Actor) error {
	name, date, err := s.locate(ctx, user, id)
	if err != nil {
		return err
	}
	err = s.change(ctx, user, name, func(f *file) error {
		i, _, err := s.current(f, id, version, date)
		if err == nil {
			f.remove(i)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		return store.Audit(ctx, tx, by, "journal.delete", id, map[string]any{"date": date})
	})
	if err != nil {
		s.o.Log.Error("the deletion of an entry of the journal could not be noted", "id", id, "err", err)
	}
	return nil
}
