// Package journal keeps the journals of users as plain files: Daily/2026-01-28.md for
// the operator, Guests/7/Daily/2026-01-28.md for others. An entry is a section that
// begins with a heading of level one, "# para:abc123def456 10:30 AM", followed by text
// and, at its end, "## Images" and "## Audio".
//
// Other programs may change the files at any time. A write reads the file, changes the
// entry that it is about and exchanges the file in one step; if another program has
// changed it concurrently, the write is repeated on the new content. What the package did
// not change stays as it was, byte by byte.
package journal

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Limits.
const (
	MaxText        = 256 << 10 // bytes of an entry's text
	MaxDay         = 16 << 20  // bytes of a day file
	MaxAttachments = 20        // images and recordings of an entry
	maxPath        = 512       // bytes of the path of an attachment
	maxAlt         = 200       // bytes of an image's description
)

// Dir is the operator's journal, relative to the vault.
const Dir = "Daily"

// DirOf returns the directory of a user's journal, relative to the vault; "" for no user.
func DirOf(user int64) string {
	switch {
	case user == core.Operator:
		return Dir
	case user > 0:
		return core.GuestDir(user) + "/" + Dir
	}
	return ""
}

// An Entry is one entry of a journal. Texts come from users and other programs.
type Entry struct {
	ID      string  // para-ID; "" until the next pass gives it one
	Date    string  // of its file, such as 2026-01-28
	Time    string  // of day, as it was written; "" where no one wrote one
	Title   string  // the rest of its heading
	Text    string  // Markdown
	Images  []Image // paths relative to the file
	Audio   []Audio
	Version string // of its content: for Edit and Delete
	Damaged bool   // it is not UTF-8: it is shown, and not edited
}

// An Image is a picture of an entry.
type Image struct{ Alt, Path string }

// An Audio is a recording of an entry.
type Audio struct {
	Duration string // such as 2:30; "" is not known
	Path     string
}

// A Day is a day of a journal.
type Day struct {
	Date    string
	Path    string // of the file, relative to the vault
	Head    string // text before the first entry
	Entries []Entry
}

// IDs is the registry of ids (paraid.Registry).
type IDs interface {
	// Find returns the entry of id, or core.NotFound.
	Find(ctx context.Context, q store.Queryer, id string) (entry.Entry, error)
	// At returns the entries of a file, at most 10,000.
	At(ctx context.Context, q store.Queryer, path, kind string) ([]entry.Entry, error)
	// Claim registers an id that a file has, and returns the entry that holds it.
	Claim(ctx context.Context, tx *store.Tx, e entry.Entry) (entry.Entry, error)
	// Relocate notes that an entry is in another file.
	Relocate(ctx context.Context, tx *store.Tx, id, path string, user int64) error
}

// Registered counts and removes ids of the registry (paraid.Registry).
type Registered interface {
	// Count returns how many ids of a type the user has.
	Count(ctx context.Context, q store.Queryer, user int64, kind string) (int, error)
	// Paths returns some files of ids that were registered before a time, in order from
	// behind after; none at the end.
	Paths(ctx context.Context, q store.Queryer, kind string, before time.Time, after string) ([]string, error)
	// Drop removes ids.
	Drop(ctx context.Context, tx *store.Tx, ids []string) error
}

// Options for New. All are needed but Room.
type Options struct {
	DB    *store.DB
	Vault *vault.Vault
	IDs   IDs
	Rows  Registered
	Clock core.Clock
	Log   *slog.Logger
	// Room refuses a change of the file name that would take a user's directory beyond
	// its limits; isNew: the file is created, grows: by how many bytes. nil: no limits.
	Room func(ctx context.Context, user int64, name string, isNew bool, grows int64) error
}

// A Store reads and writes journals. It is safe for concurrent use.
type Store struct {
	o     Options
	locks core.FileLocks
	pass  passState
	// between is called between reading a file and replacing it, in tests.
	between func(name string)
	// reading is called before a file is read, in tests.
	reading func(name string)
}

// New returns a Store.
func New(o Options) *Store { return &Store{o: o, between: func(string) {}, reading: func(string) {}} }

// CheckDate returns core.Invalid for what is no date such as 2026-01-28.
func CheckDate(date string) error {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil || t.Year() < 1900 || len(date) != len(time.DateOnly) {
		return core.Errorf(core.Invalid, "%q is not a date: write year, month and day, such as 2026-01-28", core.CutRunes(date, 40))
	}
	return nil
}

// PathOf returns the file of a date in a user's journal, relative to the vault. No date
// is core.Invalid, no user core.Denied.
func PathOf(user int64, date string) (string, error) {
	if err := CheckDate(date); err != nil {
		return "", err
	}
	dir := DirOf(user)
	if dir == "" {
		return "", core.Errorf(core.Denied, "only users with access have a journal")
	}
	return dir + "/" + date + ".md", nil
}

// Day returns a day of the user's journal. A day without a file has no entries.
func (s *Store) Day(_ context.Context, user int64, date string) (Day, error) {
	name, err := PathOf(user, date)
	if err != nil {
		return Day{}, err
	}
	data, err := s.read(name)
	if err != nil {
		return Day{}, err
	}
	f := parse(data)
	d := Day{Date: date, Path: name, Head: strings.ToValidUTF8(strings.TrimSpace(strings.TrimPrefix(string(f.head), mark)), "\uFFFD"), Entries: make([]Entry, len(f.sections))}
	for i := range f.sections {
		d.Entries[i] = f.sections[i].entry(date)
	}
	return d, nil
}

// read returns the content of a file; nil without one.
func (s *Store) read(name string) ([]byte, error) {
	s.reading(name)
	data, err := s.o.Vault.ReadNoLinks(name, MaxDay)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// Entry returns an entry of the user's journal; core.NotFound for one that is not theirs.
func (s *Store) Entry(ctx context.Context, user int64, id string) (Entry, error) {
	name, date, err := s.locate(ctx, user, id)
	if err != nil {
		return Entry{}, err
	}
	data, err := s.read(name)
	if err != nil {
		return Entry{}, err
	}
	f := parse(data)
	i := f.find(id)
	if i < 0 {
		return Entry{}, noEntry(id)
	}
	return f.sections[i].entry(date), nil
}

func noEntry(id string) error {
	return core.Errorf(core.NotFound, "the journal has no entry %q", core.CutRunes(id, 40))
}

// locate returns the file and the date of an entry of the user's journal.
func (s *Store) locate(ctx context.Context, user int64, id string) (name, date string, err error) {
	if !entry.Valid(id) {
		return "", "", noEntry(id)
	}
	e, err := s.o.IDs.Find(ctx, s.o.DB, id)
	if core.KindOf(err) == core.NotFound || err == nil && (e.User != user || e.Type != entry.Journal) {
		return "", "", noEntry(id)
	}
	if err != nil {
		return "", "", err
	}
	date, ok := dateOf(e.Path)
	if !ok || e.Path != DirOf(user)+"/"+date+".md" { // the directory of a linked account
		return "", "", noEntry(id)
	}
	return e.Path, date, nil
}

// dateOf returns the date of a day file by its name.
func dateOf(name string) (date string, ok bool) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	date, ok = strings.CutSuffix(base, ".md")
	return date, ok && CheckDate(date) == nil
}

// cleanText returns a text as it is stored: with "\n" line ends and without blank lines
// around it. Text that is too long, not UTF-8 or has null characters is core.Invalid.
func cleanText(text string) (string, error) {
	if len(text) > MaxText {
		return "", core.Errorf(core.TooLarge, "the text has %s; an entry has at most %s: write it as several entries, or as a file", core.ByteSize(len(text)), core.ByteSize(MaxText))
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", core.Errorf(core.Invalid, "the text is not UTF-8 without null characters")
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return trimmed(text), nil
}

// Joined returns the text of an entry with more, the text of a recording, behind it.
// whole is false if the end of more is left out, since an entry has at most MaxText.
func Joined(text, more string) (joined string, whole bool) {
	const between, left = "\n\n", "…"
	more = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(more, "\uFFFD"), "\x00", ""))
	room := MaxText - len(text) - len(between+left)
	if whole = len(more) <= room; whole {
		return strings.TrimSpace(text + between + more), true
	}
	if room <= 0 {
		return text, false
	}
	return strings.TrimSpace(text + between + core.CutRunes(more, room)), false
}

// cleanAttachments checks the attachments of an entry.
func cleanAttachments(images []Image, audio []Audio) error {
	if len(images)+len(audio) > MaxAttachments {
		return core.Errorf(core.Invalid, "an entry has at most %d pictures and recordings", MaxAttachments)
	}
	for _, i := range images {
		if !cleanPath(i.Path) || len(i.Alt) > maxAlt || strings.ContainsAny(i.Alt, "[]\n\r") {
			return core.Errorf(core.Invalid, "a picture's path or description is not valid")
		}
	}
	for _, a := range audio {
		if !cleanPath(a.Path) || a.Duration != "" && !durationLine().MatchString("- Duration: "+a.Duration) {
			return core.Errorf(core.Invalid, "a recording's path or duration is not valid")
		}
	}
	return nil
}

func cleanPath(p string) bool {
	return p != "" && len(p) <= maxPath && utf8.ValidString(p) && !strings.ContainsAny(p, "\n\r\x00<>()") && strings.TrimSpace(p) == p
}
