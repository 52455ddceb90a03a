// Package attach keeps the files that come with messages, anyone who carried
// them: streamed into the vault's directory Chat/assets under names that are safe,
// with the type that their bytes say. What cannot be taken is refused with a
// sentence for its sender.
package attach

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path"
	"slices"
	"time"

	"crypto/sha256"

	"gatehouse/core"
	"gatehouse/core/texts"
	"gatehouse/core/vault"
)

// Folder is where attachments lie; the files of a day have a directory of their own.
const Folder = "Chat/assets"

// MaxFile is how large a file may be where no one sets another limit: what
// platforms hand out, and what a model is given.
const MaxFile = 20 << 20

// MaxFiles bounds the files of one message.
const MaxFiles = 20

// A Quota limits how much users may store; *Ledger implements it.
type Quota interface {
	// Room is how many bytes may still come of user, math.MaxInt64 without a
	// bound, and what the bound is, as text that begin with "your" or "all".
	Room(ctx context.Context, user int64) (left int64, bound string, err error)
	// Note takes f's bytes of the room, in one step with the look whether they
	// fit; where they do not, nothing is noted and fits is false.
	Note(ctx context.Context, user int64, f core.File) (fits bool, err error)
	// Find returns user's file whose path begins with a text; false without one.
	Find(ctx context.Context, user int64, beginning string) (f core.File, found bool, err error)
	Drop(ctx context.Context, files []core.File) error
}

// A Keeper keeps attachments in one vault. It is safe for concurrent use.
type Keeper struct {
	vault  *vault.Vault
	clock  core.Clock
	ledger Quota // nil: no limit but the single file's, and no owner is stored
}

// New returns a Keeper; without a clock the system's. Without a ledger nothing is
// bounded but the single file.
func New(v *vault.Vault, clock core.Clock, ledger Quota) *Keeper {
	if clock == nil {
		clock = core.System{}
	}
	return &Keeper{vault: v, clock: clock, ledger: ledger}
}

// Full is the error of a file that there is no room for any more: a
// core.TooLarge with a sentence for its sender.
type Full struct{ err error }

func full(why string) error { return &Full{&core.Error{Kind: core.TooLarge, Text: why}} }

func (e *Full) Error() string { return e.err.Error() }

// Unwrap gives the sentence and its kind.
func (e *Full) Unwrap() error { return e.err }

// Problem returns the slug of its answer over HTTP.
func (e *Full) Problem() (slug string, retryAfter time.Duration) { return "storage-full", 0 }

// Save keeps what r gives as a file of user's, at most most bytes (0 is MaxFile) and
// never all of it in memory. name and declared are the sender's, hostile text: the file
// is stored under a name made of it, and File.Type is what the bytes say. Too much is
// core.TooLarge, a kind that is not taken core.Invalid; both sentences name the file and
// are meant for its sender; so is Full. Nothing stays of what was refused.
func (k *Keeper) Save(ctx context.Context, user int64, name, declared string, most int64, r io.Reader) (core.File, error) {
	in, err := k.Begin(ctx, user, most)
	if err != nil {
		return core.File{}, err
	}
	defer in.Drop()
	if _, err := io.Copy(in, reader{ctx, r}); err != nil && !errors.Is(err, errRefused) {
		return core.File{}, err
	}
	f, err := in.Keep(name, declared)
	return f, err
}

// reader ends with ctx.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Remove deletes kept files whose message was not taken in after all. What is
// gone already is no error.
func (k *Keeper) Remove(files []core.File) {
	gone := slices.DeleteFunc(slices.Clone(files), func(f core.File) bool { return f.Path == "" })
	for _, f := range gone {
		_ = k.vault.Remove(f.Path)
	}
	if k.ledger != nil && len(gone) > 0 {
		_ = k.ledger.Drop(context.Background(), gone) // at worst the next recount sees it
	}
}

// errRefused ends the writing of a file that will not be kept; Keep explains why.
var errRefused = errors.New("the file is refused")

// tagSize is how many random bytes are, as hexadecimal digits, before a stored name.
const tagSize = 6

// headSize is how much of a file its kind is seen by.
const headSize = 1024

// Tag returns the Tag of a file that comes with a run: the same in each attempt.
func Tag(run, ref string) string {
	sum := sha256.Sum256([]byte(run + "\x00" + ref))
	return hex.EncodeToString(sum[:tagSize])
}

// Kept returns the file of user's with this Tag that was kept today or yesterday; false
// where there is none, or it is not in the vault any more.
func (k *Keeper) Kept(ctx context.Context, user int64, tag string) (core.File, bool, error) {
	if k.ledger == nil {
		return core.File{}, false, nil
	}
	for _, ago := range [...]time.Duration{0, 24 * time.Hour} {
		f, found, err := k.ledger.Find(ctx, user, path.Join(folderOf(k.clock.Now().Add(-ago)), tag+"-"))
		if err != nil {
			return core.File{}, false, err
		}
		if found {
			if f.Type, found = k.kindOf(f); found {
				return f, true, nil
			}
		}
	}
	return core.File{}, false, nil
}

// kindOf returns the type of a kept file; false if it is not there as it was kept.
func (k *Keeper) kindOf(f core.File) (string, bool) {
	r, err := k.vault.FS().Open(f.Path)
	if err != nil {
		return "", false
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() != f.Size {
		return "", false
	}
	head := make([]byte, min(headSize, f.Size))
	if _, err := io.ReadFull(r, head); err != nil {
		return "", false
	}
	return sniff(head), true
}

func folderOf(day time.Time) string { return path.Join(Folder, day.UTC().Format("2006-01-02")) }

// An Incoming is one file on its way, for callers that learn its name after
// its bytes. Write it, then Keep or Drop it.
type Incoming struct {
	// Tag is how the stored name begins, in hexadecimal digits; "": it is random.
	Tag string

	ctx   context.Context // of the request or run that it belongs to
	k     *Keeper
	user  int64
	room  string // the bound, where there is less room than a file may take
	draft *vault.Draft
	dir   string
	most  int64
	n     int64
	head  []byte
	sum   hash.Hash
	fault func(name string) string // why it is refused, of the file of that name
	kind  core.Kind
}

// Begin looks for room for a file of user's, of at most most bytes; 0 is
// MaxFile. Where none is left it is Full. The room is taken by Keep, which
// refuses what others have taken it from in the meantime.
func (k *Keeper) Begin(ctx context.Context, user, most int64) (*Incoming, error) {
	if most <= 0 {
		most = MaxFile
	}
	room := ""
	if k.ledger != nil {
		left, bound, err := k.ledger.Room(ctx, user)
		if err != nil {
			return nil, err
		}
		if left <= 0 {
			return nil, full(texts.Text("take_no_room", texts.With{"Bound": bound}))
		}
		if left < most {
			most, room = left, bound
		}
	}
	dir := folderOf(k.clock.Now())
	d, err := k.vault.Draft(dir)
	if err != nil {
		return nil, err
	}
	return &Incoming{ctx: context.WithoutCancel(ctx), k: k, user: user, room: room, draft: d, dir: dir, most: most, sum: sha256.New()}, nil
}

// Write adds p. Once the file is refused it takes no more and reports it by an
// error whose reason Keep returns.
func (in *Incoming) Write(p []byte) (int, error) {
	if in.fault != nil {
		return 0, errRefused
	}
	if in.n+int64(len(p)) > in.most && in.room != "" {
		in.refuse(core.TooLarge, func(name string) string {
			return doesNotFit(name, in.room, in.most)
		})
		return 0, errRefused
	}
	if in.n+int64(len(p)) > in.most {
		in.refuse(core.TooLarge, func(name string) string {
			return texts.Text("take_large", texts.With{"Name": name, "Most": core.ByteSize(int(in.most))})
		})
		return 0, errRefused
	}
	if room := headSize - len(in.head); room > 0 {
		in.head = append(in.head, p[:min(room, len(p))]...)
		if what := program(in.head); what != "" {
			in.refuse(core.Invalid, func(name string) string {
				return texts.Text("take_program", texts.With{"Name": name, "What": what})
			})
			return 0, errRefused
		}
	}
	n, err := in.draft.Write(p)
	in.n += int64(n)
	in.sum.Write(p[:n])
	return n, err
}

func doesNotFit(name, bound string, left int64) string {
	return texts.Text("take_does_not_fit", texts.With{"Name": name, "Bound": bound, "Left": core.ByteSize(int(left))})
}

// Refused reports whether err means that Write takes no more of a file.
func Refused(err error) bool { return errors.Is(err, errRefused) }

func (in *Incoming) refuse(kind core.Kind, why func(name string) string) {
	in.kind, in.fault = kind, why
	in.draft.Drop()
}

// Sum returns the SHA-256 of what was written.
func (in *Incoming) Sum() []byte { return in.sum.Sum(nil) }

// Keep ends the file: it lies in the vault, or is refused as Save states.
func (in *Incoming) Keep(name, declared string) (core.File, error) {
	kind := sniff(in.head)
	stored, shown := safeName(name, kind)
	switch {
	case in.fault != nil:
	case in.n == 0:
		in.refuse(core.Invalid, func(name string) string { return texts.Text("take_empty", texts.With{"Name": name}) })
	case runnable(name):
		in.refuse(core.Invalid, func(name string) string { return texts.Text("take_program_name", texts.With{"Name": name}) })
	}
	if in.fault != nil && in.kind == core.TooLarge && in.room != "" {
		return core.File{}, full(in.fault(shown))
	}
	if in.fault != nil {
		return core.File{}, &core.Error{Kind: in.kind, Text: in.fault(shown)}
	}
	tag := in.Tag
	if tag == "" {
		random := make([]byte, tagSize)
		_, _ = rand.Read(random) // never fails
		tag = hex.EncodeToString(random)
	}
	f := core.File{Path: path.Join(in.dir, tag+"-"+stored), Name: name, Type: kind, Size: in.n}
	if err := in.draft.Keep(f.Path); err != nil {
		return core.File{}, err
	}
	if err := in.note(f, shown); err != nil {
		_ = in.k.vault.Remove(f.Path) // no one would know whose it is
		return core.File{}, err
	}
	return f, nil
}

// note takes the room for a file that lies in the vault.
func (in *Incoming) note(f core.File, shown string) error {
	if in.k.ledger == nil {
		return nil
	}
	fits, err := in.k.ledger.Note(in.ctx, in.user, f)
	if err != nil || fits {
		return err
	}
	left, bound, err := in.k.ledger.Room(in.ctx, in.user)
	if err != nil {
		return err
	}
	return full(doesNotFit(shown, bound, left))
}

// Drop takes away what was not kept.
func (in *Incoming) Drop() { in.draft.Drop() }
