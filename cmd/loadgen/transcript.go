package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// transcriptBytes is the size of the large transcript; openings is how often it
// is opened by a gateway that has not seen it.
const (
	transcriptBytes = 50 << 20
	openings        = 7
)

// transcript measures how a gateway that has just been started goes on with a
// conversation of 50 MiB: from the request to the moment when the model is
// asked, with what it was about, and what memory that took. The same on a new
// conversation is the floor.
func (b *bench) transcript(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.dir, "bot-")
	if err != nil {
		return err
	}
	d, err := b.desk(ctx, dir)
	if err != nil {
		return err
	}
	t := &transcriptData{}
	if err := b.openings(ctx, d, t); err != nil {
		return errors.Join(err, d.end())
	}
	b.data.Transcript = t
	return d.end()
}

// openings makes the conversation, and starts the gateway again for each time
// that it is opened.
func (b *bench) openings(ctx context.Context, d *desk, t *transcriptData) error {
	if _, err := d.ask(ctx, "large", "", "Where do we stand with this?"); err != nil {
		return err
	}
	for i := range openings {
		if err := d.child.stop(); err != nil {
			return err
		}
		if i == 0 {
			var err error
			if t.Bytes, err = grow(filepath.Join(d.dir, "vault", ".claude")); err != nil {
				return err
			}
		}
		if err := b.again(ctx, d.side); err != nil {
			return err
		}
		if err := d.opening(ctx, i, t); err != nil {
			return err
		}
	}
	return nil
}

// opening is one gateway that answers in new conversations, and then in the large one.
func (d *desk) opening(ctx context.Context, i int, t *transcriptData) error {
	for k := range 3 { // what is only made once is made
		if _, err := d.ask(ctx, fmt.Sprintf("new-%d-%d", i, k), "", text(k)); err != nil {
			return err
		}
	}
	fresh, gainedFresh, _, err := d.until(ctx, fmt.Sprintf("new-%d", i))
	if err != nil {
		return err
	}
	large, gained, size, err := d.until(ctx, "large")
	if err != nil {
		return err
	}
	if size < 20_000 {
		return fmt.Errorf("the model was told %d bytes of a conversation of %d", size, t.Bytes)
	}
	t.Fresh, t.Large = append(t.Fresh, fresh), append(t.Large, large)
	t.GainedFresh, t.Gained, t.Told = append(t.GainedFresh, gainedFresh), append(t.Gained, gained), size
	return nil
}

// until returns how long it took from a question to the request that the model got,
// by how much the memory grew at most, and the size of that request.
func (d *desk) until(ctx context.Context, session string) (took, gained float64, size int, err error) {
	before, _, err := d.memory()
	if err == nil {
		err = d.resetPeak()
	}
	if err != nil {
		return 0, 0, 0, err
	}
	began := time.Now()
	if _, err := d.ask(ctx, session, "", "And now?"); err != nil {
		return 0, 0, 0, err
	}
	at, size := d.model.Asked()
	_, peak, err := d.memory()
	return ms(at.Sub(began)), peak - before, size, err
}

// grow makes the one transcript of a gateway that has ended as large as that: its
// first lines are written again and again, each following the one before it.
func grow(folder string) (size int64, err error) {
	var name string
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".jsonl" {
			name = path
		}
		return err
	})
	if err != nil || name == "" {
		return 0, errors.Join(errors.New("the gateway has written no transcript"), err)
	}
	old, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var lines []map[string]any
	for line := range bytes.Lines(old) {
		var l map[string]any
		if err := json.Unmarshal(line, &l); err != nil {
			return 0, err
		}
		if l["type"] == "user" || l["type"] == "assistant" {
			lines = append(lines, l)
		}
	}
	if len(lines) != 2 {
		return 0, fmt.Errorf("the transcript has %d messages, want a question and its answer", len(lines))
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	return repeat(f, lines)
}

// repeat appends the two lines of a turn to f until it is large enough, and closes it.
func repeat(f *os.File, lines []map[string]any) (size int64, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	long := strings.Repeat("lorem ipsum ", 400)
	w := bufio.NewWriterSize(f, 1<<20)
	enc := json.NewEncoder(w)
	last := lines[1]["uuid"]
	for n := 0; size < transcriptBytes; n++ {
		for i, l := range lines {
			l["parentUuid"], l["uuid"], l["requestId"] = last, uuid.NewString(), fmt.Sprintf("run-%d", n)
			last = l["uuid"]
			said, ok := l["message"].(map[string]any)
			if !ok {
				return 0, errors.New("a line of the transcript has no message")
			}
			said["content"] = []map[string]any{{"type": "text", "text": long}}
			if i == 1 {
				said["id"] = fmt.Sprintf("msg-%d", n)
			}
			if err := enc.Encode(l); err != nil {
				return 0, err
			}
			size += int64(len(long)) + 400
		}
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil { // the gateway's own fsync is not to write it
		return 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
