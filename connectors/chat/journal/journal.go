// Package journal is the chat commands /journal, which adds a text, a voice message or a
// photo to the sender's journal, and /timezone.
package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/journal"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/voice"
)

const (
	waits    = 10 * time.Minute // for the message after /journal
	maxFiles = 10               // of one message
	maxHeard = 300              // bytes of a transcription that an answer repeats
)

// Journals are the journals of users.
type Journals interface {
	// Repeated returns the entry that was added with this key, or false.
	Repeated(ctx context.Context, user int64, key string) (journal.Entry, bool, error)
	Append(ctx context.Context, user int64, d journal.Draft, by core.Actor) (journal.Entry, error)
	Attach(ctx context.Context, user int64, kind, ext string, at time.Time, r io.Reader, size int64) (string, error)
	// Settle forgets a key, in the transaction that ends what it is for.
	Settle(ctx context.Context, tx *store.Tx, key string) error
}

// Zones are the time zones of users.
type Zones interface {
	Timezone(ctx context.Context, q store.Queryer, user int64) (*time.Location, error)
	SetTimezone(ctx context.Context, tx *store.Tx, user int64, name string) error
}

// Options for New.
type Options struct {
	DB       *store.DB
	Clock    core.Clock
	Log      *slog.Logger
	Asks     *ask.Buttons
	Journals Journals
	Zones    Zones
	// Fetch downloads a file of a message from its platform.
	Fetch func(ctx context.Context, bot string, f core.File, to io.Writer) error
	// Hear transcribes a recording in the vault; nil: recordings are only kept.
	Hear func(ctx context.Context, user int64, f core.File, show func(string)) (string, error)
	// Length returns how long a recording in the vault is, 0 if that is not known.
	Length func(ctx context.Context, path string) time.Duration
	// Later has recordings of an entry transcribed later.
	Later func(ctx context.Context, tx *store.Tx, user int64, entry string, paths []string) error
	// Known returns the error for a name that is no time zone.
	Known func(name string) error
}

// Commands are the handlers.
type Commands struct{ o Options }

// New returns the handlers of /journal and /timezone.
func New(o Options) *Commands { return &Commands{o} }

// Run adds what the message has to the sender's journal; without anything it waits for the
// next message.
func (c *Commands) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	if r.Args() == "" && len(r.In.Files) == 0 {
		return c.o.Asks.AwaitNext(r, "journal", texts.Text("journal_how", texts.With{"Minutes": int(waits.Minutes())}), waits)
	}
	zone, err := c.o.Zones.Timezone(ctx, c.o.DB, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	m := message{Commands: c, r: r, at: r.In.At.In(zone), key: fmt.Sprintf("chat:%d", r.Seq)}
	e, err := m.add(ctx)
	if err != nil {
		return command.Outcome{}, err
	}
	day, _ := time.Parse(time.DateOnly, e.Date) // it is one
	text := texts.Text("journal_added", texts.With{"Date": day.Format("2 January 2006"), "Time": e.Time, "Heard": texts.Escape(core.CutRunes(strings.Join(strings.Fields(core.Visible(m.heard)), " "), maxHeard))})
	return command.Outcome{Text: strings.Join(append([]string{text}, m.notes...), "\n\n"), Write: func(ctx context.Context, tx *store.Tx) error {
		if len(m.later) > 0 {
			if err := c.o.Later(ctx, tx, r.User, e.ID, m.later); err != nil {
				return err
			}
		}
		return c.o.Journals.Settle(ctx, tx, m.key)
	}}, nil
}

// TakeAlbum has the further photos of an album go to the journal, if in is its first one with the
// command as the caption. It is called before they are stored.
func (c *Commands) TakeAlbum(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	if in.Album == "" || in.Place != "" || in.Kind != core.KindCommand || in.Command != "journal" && in.Command != "j" {
		return nil
	}
	return c.o.Asks.TakeAlbum(ctx, tx, in, "journal")
}

// A message is one that becomes an entry.
type message struct {
	*Commands
	r     command.Request
	at    time.Time // in the sender's time zone
	key   string    // the same when the command is repeated after a crash
	heard string    // what was transcribed
	notes []string  // what was not added
	later []string  // recordings without a text
}

// add adds the entry, unless it was added before the program was interrupted.
func (m *message) add(ctx context.Context) (journal.Entry, error) {
	if e, done, err := m.o.Journals.Repeated(ctx, m.r.User, m.key); err != nil || done {
		if e.Text == m.r.Args() { // perhaps because the transcription failed, which nothing notes yet
			for _, a := range e.Audio {
				m.later = append(m.later, a.Path)
			}
		}
		return e, err
	}
	d := journal.Draft{Date: m.at.Format(time.DateOnly), At: m.at, Text: m.r.Args(), Key: m.key}
	own := slices.DeleteFunc(slices.Clone(m.r.In.Files), func(f core.File) bool { return f.Quoted })
	for i, f := range own {
		if i == maxFiles {
			m.note(texts.Text("journal_many_files", texts.With{"Most": maxFiles}))
			break
		}
		if err := m.attach(ctx, &d, f); err != nil {
			return journal.Entry{}, err
		}
	}
	if d.Text == "" && len(d.Images)+len(d.Audio) == 0 {
		return journal.Entry{}, &core.Error{Kind: core.Invalid, Text: strings.Join(m.notes, "\n\n")}
	}
	if errors.Is(context.Cause(ctx), queue.ErrShutdown) { // it interrupts a transcription, and not the entry
		ctx = context.WithoutCancel(ctx)
	}
	return m.o.Journals.Append(ctx, m.r.User, d, m.r.By())
}

func (m *message) note(text string) { m.notes = append(m.notes, text) }

// endings are the types of files that a journal takes, by ending.
var endings = map[string]string{
	".ogg": journal.Recording, ".oga": journal.Recording, ".opus": journal.Recording, ".mp3": journal.Recording, ".m4a": journal.Recording,
	".wav": journal.Recording, ".flac": journal.Recording, ".aac": journal.Recording,
	".jpg": journal.Picture, ".jpeg": journal.Picture, ".png": journal.Picture, ".gif": journal.Picture, ".webp": journal.Picture,
}

// types are the endings of files whose name has none.
var types = map[string]string{"audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/x-m4a": ".m4a", "audio/wav": ".wav",
	"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp"}

// kindOf returns what a file is to the journal, "" for a file that it does not take.
func kindOf(f core.File) (kind, ext string) {
	ext = strings.ToLower(path.Ext(f.Name))
	if endings[ext] == "" {
		mime, _, _ := strings.Cut(f.Type, ";")
		ext = types[strings.TrimSpace(mime)]
	}
	if ext == "" && f.Voice {
		ext = ".ogg"
	}
	return endings[ext], ext
}

// attach adds a file to d.
func (m *message) attach(ctx context.Context, d *journal.Draft, f core.File) error {
	kind, ext := kindOf(f)
	if kind == "" {
		m.note(texts.Text("journal_other_file", texts.With{"Name": texts.Escape(cmp.Or(core.CleanName(f.Name), "?"))}))
		return nil
	}
	own := texts.Text("journal_photo")
	if kind == journal.Recording {
		own = texts.Text("journal_recording")
	}
	at, err := m.fetch(ctx, kind, ext, f)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && core.KindOf(err) != core.Other:
		m.notes = append(m.notes, core.TextOf(err))
		return nil
	case err != nil:
		m.o.Log.WarnContext(ctx, "a file for the journal could not be fetched", "bot", m.r.In.Bot, "err", err)
		m.note(texts.Text("journal_no_file", texts.With{"Name": own}))
		return nil
	}
	if kind == journal.Picture {
		d.Images = append(d.Images, journal.Image{Path: at})
		return nil
	}
	d.Audio = append(d.Audio, journal.Audio{Path: at, Duration: m.length(ctx, at)})
	m.hear(ctx, d, at)
	return nil
}

// fetch copies a file from its platform to the journal.
func (m *message) fetch(ctx context.Context, kind, ext string, f core.File) (string, error) {
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.CloseWithError(m.o.Fetch(ctx, m.r.In.Bot, f, w))
	}()
	at, err := m.o.Journals.Attach(ctx, m.r.User, kind, ext, m.at, r, f.Size)
	_ = r.Close()
	<-ended
	return at, err
}

// length returns the duration of a recording as entries have it, "" if it is not known.
func (m *message) length(ctx context.Context, at string) string {
	name, err := journal.FileOf(m.r.User, at)
	if err != nil {
		return ""
	}
	d := m.o.Length(ctx, name)
	if d <= 0 {
		return ""
	}
	s := max(1, int(d.Round(time.Second).Seconds()))
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// hear adds the transcription of a recording to the text of d.
func (m *message) hear(ctx context.Context, d *journal.Draft, at string) {
	if m.o.Hear == nil {
		m.unheard(at, voice.FaultOff)
		return
	}
	name, err := journal.FileOf(m.r.User, at)
	if err == nil {
		var text string
		if text, err = m.o.Hear(ctx, m.r.User, core.File{Path: name, Name: path.Base(name), Voice: true}, nil); err == nil {
			m.heard = strings.TrimSpace(m.heard + "\n\n" + strings.TrimSpace(text))
			var whole bool
			if d.Text, whole = journal.Joined(d.Text, text); !whole {
				m.note(texts.Text("journal_heard_cut"))
			}
			return
		}
	}
	m.o.Log.WarnContext(ctx, "a recording in the journal could not be transcribed", "err", err)
	code := voice.FaultEngine
	var fault *voice.Fault
	if errors.As(err, &fault) {
		code = fault.Code
	}
	m.unheard(at, code)
}

// unheard notes that a recording has no text, and has it transcribed later if that may help.
func (m *message) unheard(at, code string) {
	m.note(texts.Text("journal_not_heard", texts.With{"Code": code}))
	if (&voice.Fault{Code: code}).Passes() {
		m.later = append(m.later, at)
	}
}

// Zone shows the sender's time zone, or sets it.
func (c *Commands) Zone(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	name := r.Args()
	if name == "" {
		zone, err := c.o.Zones.Timezone(ctx, c.o.DB, r.User)
		if err != nil {
			return command.Outcome{}, err
		}
		now := c.o.Clock.Now().In(zone)
		return command.Respond("timezone_now", texts.With{"Zone": texts.Zone(now), "Time": now.Format("15:04")})
	}
	if c.o.Known(name) != nil {
		return command.Respond("timezone_unknown", texts.With{"Zone": texts.Escape(core.CutRunes(core.CleanName(name), 64))})
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return command.Outcome{}, err
	}
	now := c.o.Clock.Now().In(zone)
	return command.Outcome{Text: texts.Text("timezone_chosen", texts.With{"Zone": texts.Zone(now), "Time": now.Format("15:04")}), Write: func(ctx context.Context, tx *store.Tx) error {
		return c.o.Zones.SetTimezone(ctx, tx, r.User, name)
	}}, nil
}
