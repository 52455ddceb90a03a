package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Types of faults.
const (
	TypeError = "error"
	TypePanic = "panic"
)

// A Fault is a kind of lines of the log at level error, or of panics.
type Fault struct {
	ID      string
	Type    string
	Message string // the constant text of the line, and what kind of error caused it
	Place   string // function and line
	Trace   string // functions and lines of a panic, one a line; "" for an error
	Context map[string]string
	Version string
	Count   int
	First   time.Time
	Last    time.Time
}

const (
	maxNew  = 64              // kinds of faults that wait to be stored; further ones are dropped
	gather  = 2 * time.Second // so that many are one write
	again   = time.Minute     // after a failed write
	maxText = 200             // runes of a message and of a value
)

// contexts are attributes whose values are names in the settings or in the program.
var contexts = map[string]bool{"bot": true, "task": true, "tool": true, "section": true, "setting": true, "op": true, "trigger": true}

// Faults gathers the faults of a log until a Store has stored them. It is safe for
// concurrent use, and waits for nothing.
type Faults struct {
	clock   core.Clock
	version string
	bell    chan struct{}

	mu  sync.Mutex
	new map[string]*Fault // by id; at most maxNew
}

// NewFaults returns an empty one.
func NewFaults(clock core.Clock, version string) *Faults {
	return &Faults{clock: clock, version: version, bell: make(chan struct{}, 1), new: map[string]*Fault{}}
}

// Note takes in a line of the log, if it is of level error or above. clean removes secrets
// from a text. It is called where the line is written, on the stack of a panic.
func (f *Faults) Note(r slog.Record, clean func(string) string) {
	if r.Level < slog.LevelError {
		return
	}
	x := f.read(r, func(s string) string { return core.CutRunes(core.Visible(clean(s)), maxText) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.new[x.ID]; known != nil {
		known.Count++
		known.Last = x.Last
	} else if len(f.new) < maxNew {
		f.new[x.ID] = &x
	}
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

// read makes a fault of a line.
func (f *Faults) read(r slog.Record, clean func(string) string) Fault {
	now := f.clock.Now()
	x := Fault{Type: TypeError, Message: clean(r.Message), Place: placeOf(r.PC), Context: map[string]string{}, Version: f.version, Count: 1, First: now, Last: now}
	var frames []string
	r.Attrs(func(a slog.Attr) bool {
		v := a.Value.Resolve()
		switch {
		case a.Key == "err" || a.Key == "error":
			err, ok := v.Any().(error)
			if !ok {
				break
			}
			if frames = framesOf(err.Error()); len(frames) > 0 { // a panic that became an error
				x.Type = TypePanic
			} else if why := cause(err); why != "" {
				x.Message += ": " + clean(why)
			}
		case a.Key == "panic":
			x.Type = TypePanic
			x.Message += ": " + clean(panicked(v.Any()))
			if text, ok := v.Any().(string); ok { // of a transaction, with the stack of its goroutine
				frames = framesOf(text)
			}
		case contexts[a.Key] && v.Kind() == slog.KindString && v.String() != "":
			x.Context[a.Key] = clean(v.String())
		}
		return true
	})
	if x.Type == TypePanic {
		if len(frames) == 0 {
			frames = framesOf(string(debug.Stack()))
		}
		if len(frames) > 0 {
			x.Place = frames[0]
		}
		x.Trace = strings.Join(frames, "\n")
	}
	context, _ := json.Marshal(x.Context) // of strings
	sum := sha256.Sum256([]byte(strings.Join([]string{x.Type, x.Message, x.Place, string(context), x.Version}, "\x00")))
	x.ID = hex.EncodeToString(sum[:16])
	return x
}

// placeOf returns function and line of a program counter.
func placeOf(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s:%d", ours(frame.Function), frame.Line)
}

// take returns what waits to be stored, and forgets it.
func (f *Faults) take() []*Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*Fault, 0, len(f.new))
	for _, x := range f.new {
		list = append(list, x)
	}
	clear(f.new)
	return list
}

// back takes faults that could not be stored.
func (f *Faults) back(list []*Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if newer := f.new[x.ID]; newer != nil {
			newer.Count, newer.First = newer.Count+x.Count, x.First
		} else if len(f.new) < maxNew {
			f.new[x.ID] = x
		}
	}
}

// Run stores faults until ctx ends. A write that fails is tried again.
func (s *Store) Run(ctx context.Context) {
	for {
		select {
		case <-s.o.Faults.bell:
		case <-ctx.Done():
			return
		}
		for wait := gather; core.Sleep(ctx, s.o.Clock, wait); wait = again {
			err := s.Flush(ctx)
			if err == nil {
				break
			}
			if wait == gather && ctx.Err() == nil {
				s.o.Log.Warn("faults are not recorded yet; it is tried again each minute", "err", err)
			}
		}
	}
}

// Flush stores what waits, in one transaction. What cannot be stored goes on waiting.
func (s *Store) Flush(ctx context.Context) error {
	list := s.o.Faults.take()
	if len(list) == 0 {
		return nil
	}
	err := s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		for _, x := range list {
			context, err := json.Marshal(x.Context)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `INSERT INTO error_reports (report_id, error_type, error_message, place, traceback, context, version, count, first_at, last_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (report_id) DO UPDATE SET count = error_reports.count + excluded.count, last_at = excluded.last_at, traceback = excluded.traceback`,
				x.ID, x.Type, x.Message, x.Place, x.Trace, string(context), x.Version, x.Count, core.Stamp(x.First), core.Stamp(x.Last)); err != nil {
				return fmt.Errorf("record a fault: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		s.o.Faults.back(list)
	}
	return err
}

type faultRow struct {
	ID      string `db:"report_id"`
	Type    string `db:"error_type"`
	Message string `db:"error_message"`
	Place   string `db:"place"`
	Trace   string `db:"traceback"`
	Context string `db:"context"`
	Version string `db:"version"`
	Count   int    `db:"count"`
	First   string `db:"first_at"`
	Last    string `db:"last_at"`
}

// Faults returns kinds of faults, the one that occurred last first.
func (s *Store) Faults(ctx context.Context, limit int) ([]Fault, error) {
	var rows []faultRow
	if err := s.o.DB.Select(ctx, &rows, `SELECT report_id, error_type, error_message, place, traceback, context, version, count, first_at, last_at
		FROM error_reports ORDER BY last_at DESC, report_id LIMIT $1`, limit); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	list := make([]Fault, len(rows))
	for i, r := range rows {
		list[i] = Fault{ID: r.ID, Type: r.Type, Message: r.Message, Place: r.Place, Trace: r.Trace, Version: r.Version, Count: r.Count, First: core.TimeOf(r.First), Last: core.TimeOf(r.Last)}
		if err := json.Unmarshal([]byte(r.Context), &list[i].Context); err != nil {
			return nil, fmt.Errorf("fault %s: %w", r.ID, err)
		}
	}
	return list, nil
}
