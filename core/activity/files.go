package activity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/activity/daylog"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Directories in the vault.
const (
	linesDir = "Daily/.activity"
	logDir   = "Daily/chat-log"
)

// Limits of files.
const (
	maxFile = 8 << 20 // bytes; a larger one is left as it is
	maxRows = 500     // that are written at once
	tries   = 5       // while another program changes the file
)

func linesFile(day string) string { return linesDir + "/" + day + ".jsonl" }
func logFile(day string) string   { return logDir + "/" + day + ".md" }

// A Fault is a file that cannot be written.
type Fault struct {
	File, Text string
	Since      time.Time
}

// Faults returns the files that could not be written at the last try, by name.
func (w *Worker) Faults() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Fault, 0, len(w.faults))
	for _, f := range w.faults {
		out = append(out, f)
	}
	core.Sort(out, func(a, b Fault) int { return strings.Compare(a.File, b.File) })
	return out
}

// wrote notes how writing a file ended, and reports whether it is written.
func (w *Worker) wrote(name string, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, failing := w.faults[name]
	if err == nil {
		delete(w.faults, name)
		return true
	}
	w.metrics.failed(failFile)
	f := Fault{File: name, Text: reason(err), Since: w.o.Clock.Now()}
	if failing {
		f.Since = was.Since
	}
	if failing || len(w.faults) < maxFaults {
		w.faults[name] = f
	}
	if !failing || was.Text != f.Text {
		w.o.Log.Warn("a file of the log of activity cannot be written; it is tried again", "file", name, "err", err)
	}
	return false
}

// reason returns err for users, without the names of files.
func reason(err error) string {
	if core.KindOf(err) != core.Other {
		return core.TextOf(err)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// write writes all rows that are in no file yet. A file that cannot be written has a
// Fault, and its rows stay for a later pass.
func (w *Worker) write(ctx context.Context) error {
	for at, run := "", ""; ; {
		var rows []row
		err := w.o.DB.Select(ctx, &rows, `SELECT `+columns+` FROM activity WHERE state = 'new' AND (at, run) > ($1, $2) ORDER BY at, run LIMIT $3`, at, run, maxRows)
		if err != nil {
			return fmt.Errorf("activity to write: %w", err)
		}
		if err := w.writeRows(ctx, rows); err != nil {
			return err
		}
		if len(rows) < maxRows {
			return nil
		}
		at, run = rows[len(rows)-1].At, rows[len(rows)-1].Run
	}
}

func (w *Worker) writeRows(ctx context.Context, rows []row) error {
	failed := map[string]bool{} // days of either file; bounded by rows
	for day, of := range byDay(rows, func(r row) string { return r.Day }) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := w.rewrite(linesFile(day), func(old []byte) ([]byte, error) { return daylog.Add(old, lines(of)) })
		failed[linesFile(day)] = !w.wrote(linesFile(day), err)
	}
	titles := map[entry]string{} // that were written; bounded by rows
	for day, of := range byDay(rows, func(r row) string { return r.LogDay }) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		known, err := w.entries(ctx, day)
		if err != nil {
			return err
		}
		list := w.logged(of, known)
		err = w.rewrite(logFile(day), func(old []byte) ([]byte, error) { return []byte(daylog.Put(string(old), day, list)), nil })
		if failed[logFile(day)] = !w.wrote(logFile(day), err); err == nil {
			for _, e := range list {
				titles[known[e.Session]] = e.Title
			}
		}
	}
	return w.written(ctx, rows, failed, titles)
}

// written notes that the rows are in their files, but for those whose files failed. It
// does not wait for the disk: what a power cut undoes is found in the files.
func (w *Worker) written(ctx context.Context, rows []row, failed map[string]bool, titles map[entry]string) error {
	if len(rows) == 0 {
		return nil
	}
	return w.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		for _, r := range rows {
			if failed[linesFile(r.Day)] || failed[logFile(r.LogDay)] {
				continue
			}
			if _, err := tx.Exec(ctx, `UPDATE activity SET state = 'written' WHERE run = $1`, r.Run); err != nil {
				return fmt.Errorf("activity written: %w", err)
			}
		}
		for e, title := range titles {
			if e.Title == title {
				continue
			}
			if _, err := tx.Exec(ctx, `UPDATE activity_entries SET title = $3 WHERE session_id = $1 AND log_day = $2`, e.Session, e.LogDay, title); err != nil {
				return fmt.Errorf("title of an entry: %w", err)
			}
		}
		return nil
	})
}

func byDay(rows []row, day func(row) string) map[string][]row {
	out := map[string][]row{}
	for _, r := range rows {
		out[day(r)] = append(out[day(r)], r)
	}
	return out
}

func lines(rows []row) []daylog.Line {
	out := make([]daylog.Line, len(rows))
	for i, r := range rows {
		out[i] = daylog.Line{At: r.At, Session: r.Session, Title: r.Title, Agent: r.Agent, Exchange: r.Number, Summary: r.Summary}
	}
	return out
}

// logged returns the entries of a chat log that have rows to write, in the order of their
// first row.
func (w *Worker) logged(rows []row, known map[string]entry) (list []daylog.Entry) {
	for _, r := range rows {
		e, ok := known[r.Session]
		if !ok {
			continue // deleted concurrently
		}
		i := slices.IndexFunc(list, func(x daylog.Entry) bool { return x.Session == r.Session })
		if i < 0 {
			i, list = len(list), append(list, daylog.Entry{ID: e.ID, Time: e.Time, Session: r.Session, Link: w.o.Link(r.Session), Was: e.Title})
		}
		list[i].Title = r.Title
		list[i].Said = append(list[i].Said, daylog.Said{Number: r.Number, Summary: r.Summary})
	}
	return list
}

// A text is a file as it was read; info is nil where there was none.
type text struct {
	data []byte
	info fs.FileInfo
}

var (
	errLarge    = errors.New("the file is larger than 8 MB")
	errNotPlain = errors.New("it is not a plain file")
	errBusy     = errors.New("another program keeps changing it")
)

// read returns a file; a missing one is empty.
func (w *Worker) read(name string) (t text, err error) {
	f, err := w.o.Vault.FS().Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	if t.info, err = f.Stat(); err != nil {
		return t, err
	}
	if !t.info.Mode().IsRegular() {
		return t, errNotPlain
	}
	if t.data, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err == nil && len(t.data) > maxFile {
		err = errLarge
	}
	return t, err
}

// same reports whether a file is still as it was read.
func (w *Worker) same(name string, t text) bool {
	info, err := fs.Stat(w.o.Vault.FS(), name)
	if t.info == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && info.Size() == t.info.Size() && info.ModTime().Equal(t.info.ModTime())
}

// rewrite replaces a file by what edit makes of it, in one step. What another program
// writes concurrently is edited too. A file that would be empty is removed.
func (w *Worker) rewrite(name string, edit func(old []byte) ([]byte, error)) error {
	for range tries {
		was, err := w.read(name)
		if err != nil {
			return err
		}
		now, err := edit(was.data)
		if err != nil || bytes.Equal(now, was.data) {
			return err
		}
		if len(now) == 0 {
			if !w.same(name, was) {
				continue
			}
			return w.o.Vault.Remove(name)
		}
		w.between(name)
		temp := tempOf(name, was.data, now)
		displaced, err := w.o.Vault.Swap(name, temp, was.data, now)
		switch {
		case errors.Is(err, vault.ErrChanged):
		case err != nil || displaced == nil:
			return err
		default:
			if err := w.putBack(name, temp, now, displaced); err != nil {
				return err
			}
		}
	}
	return errBusy
}
