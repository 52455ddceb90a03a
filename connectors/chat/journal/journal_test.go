package journal

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/journal"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// journals is a journal with the entry of an earlier try, if was has an id.
type journals struct {
	was, added journal.Entry
}

func (j *journals) Repeated(context.Context, int64, string) (journal.Entry, bool, error) {
	return j.was, j.was.ID != "", nil
}

func (j *journals) Append(ctx context.Context, _ int64, d journal.Draft, _ core.Actor) (journal.Entry, error) {
	if err := ctx.Err(); err != nil {
		return journal.Entry{}, err
	}
	if len(d.Text) > journal.MaxText {
		return journal.Entry{}, core.Errorf(core.TooLarge, "the text is too long")
	}
	j.added = journal.Entry{ID: "new", Date: d.Date, Time: "10:30 AM", Text: d.Text, Audio: d.Audio}
	return j.added, nil
}

func (*journals) Attach(_ context.Context, _ int64, _, _ string, _ time.Time, r io.Reader, _ int64) (string, error) {
	_, err := io.Copy(io.Discard, r)
	return "assets/2026-01-28/audio.ogg", err
}

func (*journals) Settle(context.Context, *store.Tx, string) error { return nil }

func (*journals) Timezone(context.Context, store.Queryer, int64) (*time.Location, error) {
	return time.UTC, nil
}

func (*journals) SetTimezone(context.Context, *store.Tx, int64, string) error { return nil }

const shutdown = "shutdown"

// run runs "/journal CAPTION" with a recording, and returns the answer and the recordings
// that are transcribed later. The program stops while shutdown is transcribed.
func run(t *testing.T, j *journals, caption, said string) (answer string, later []string) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	c := New(Options{Log: slog.New(slog.DiscardHandler), Journals: j, Zones: j,
		Fetch: func(_ context.Context, _ string, _ core.File, to io.Writer) error {
			_, err := to.Write([]byte("OggS"))
			return err
		},
		Hear: func(ctx context.Context, _ int64, _ core.File, _ func(string)) (string, error) {
			if said == shutdown {
				end(queue.ErrShutdown)
			}
			return said, ctx.Err()
		},
		Length: func(context.Context, string) time.Duration { return 0 },
		Later: func(_ context.Context, _ *store.Tx, _ int64, _ string, paths []string) error {
			later = paths
			return nil
		},
	})
	r := command.Request{User: core.Operator}
	r.In = &core.Inbound{Text: caption, At: time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC), Files: []core.File{{Name: "voice.ogg", Voice: true}}}
	out, err := c.Run(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return out.Text, later
}

// After a crash between the entry and the note that its recording has no text, the note is
// made as well.
func TestARepeatedCommandHasARecordingWithoutATextTranscribedLater(t *testing.T) {
	audio := []journal.Audio{{Path: "assets/2026-01-28/audio.ogg"}}
	for name, c := range map[string]struct {
		caption, text string
		later         bool
	}{
		"no caption and no text":   {"", "", true},
		"a caption and no text":    {"Tea.", "Tea.", true},
		"the text of a recording":  {"", "We had tea.", false},
		"a caption and a text too": {"Tea.", "Tea.\n\nWe had tea.", false},
	} {
		j := &journals{was: journal.Entry{ID: "was", Date: "2026-01-28", Text: c.text, Audio: audio}}
		if _, later := run(t, j, c.caption, "unused"); slices.Contains(later, audio[0].Path) != c.later {
			t.Errorf("%s: later %q", name, later)
		}
	}
}

// A recording of two hours may be transcribed for one, in which the program is updated.
func TestAnEntryIsAddedThoughAStopInterruptsItsTranscription(t *testing.T) {
	j := new(journals)
	if _, later := run(t, j, "Tea.", shutdown); j.added.Text != "Tea." || len(j.added.Audio) != 1 || len(later) != 1 {
		t.Errorf("%+v, later %q", j.added, later)
	}
}

func TestARecordingThatSaysMoreThanAnEntryTakesIsKept(t *testing.T) {
	j := new(journals)
	answer, _ := run(t, j, "A lecture.", strings.Repeat("слово ", journal.MaxText/10))
	if len(j.added.Audio) != 1 || !strings.HasPrefix(j.added.Text, "A lecture.\n\nслово слово") || !strings.HasSuffix(j.added.Text, "…") {
		t.Errorf("%d recordings, a text of %d bytes", len(j.added.Audio), len(j.added.Text))
	}
	if !strings.Contains(answer, "the end of its text is left out") {
		t.Errorf("answered %q", answer)
	}
	j = new(journals)
	if answer, _ := run(t, j, "", "We had\x00 tea."); j.added.Text != "We had tea." || strings.Contains(answer, "left out") {
		t.Errorf("%q, answered %q", j.added.Text, answer)
	}
}
