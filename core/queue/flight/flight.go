// Package flight records, in a small file next to the vault's lock, how far each send of the
// outbox got. A process that is killed leaves its pages in the kernel's cache, so
// the next start reads there which messages never left and which were answered,
// without an fsync per message. After a power cut the file is not believed: its
// header names the boot that it was written in (docs/delivery.md, "After a crash").
package flight

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Slots is how many sends a file can hold: two for each that the outbox makes at once of
// all bots (package fleet), because the next send of a chat is marked before the last is settled.
// A file of another number is read, too: another version of the program may have left it.
const Slots = 6144

// A Phase is how far a send got.
type Phase uint8

// The phases of a send, in their order.
const (
	Unrecorded Phase = iota // nothing is known of it
	Marked                  // no byte of a request that the platform may obey has left
	Writing                 // bytes may have left
	Written                 // the operating system has the whole request
	Answered                // the platform has accepted the message
)

// A Mark names one attempt to send a row of the outbox. A row has each attempt
// once in an epoch of its bot's lease.
type Mark struct {
	Seq     int64 // the row
	Epoch   int64 // of the lease of its bot
	Attempt int
}

// A Trace is what an earlier process recorded of an attempt.
type Trace struct {
	Phase     Phase
	MessageID string // for Answered: the platform's id of the message
}

// A Recorder records the sends of one process. A nil Recorder records nothing. It is
// safe for concurrent use.
type Recorder struct {
	path  string
	boot  string
	owner string
	log   *slog.Logger
	found map[Mark]Trace // at most maxSlots

	f      atomic.Pointer[os.File] // nil: nothing is recorded
	mapped []byte                  // the file in memory, until the process ends; nil: it is written to
	mu     sync.Mutex              // not held while a slot is written: no send waits for another's
	free   []int                   // slots, the last is used first
	number uint64                  // of the last mark: a later one is about a later attempt
}

// Open reads what an earlier process has left in the file at path, which is created when
// it is missing. owner names the database: a file of another one is not believed.
// Without a recorder the gateway works, and decides after a crash as if every send
// had left; so an error is logged, and nil returned where nothing can be recorded.
func Open(path, owner string, log *slog.Logger) *Recorder {
	r, err := open(path, owner, log)
	if err != nil {
		log.Warn("sends are not recorded: after a crash more of them are of unknown outcome", "file", path, "err", err)
	}
	return r
}

func open(path, owner string, log *slog.Logger) (*Recorder, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(filepath.Base(path), os.O_RDWR|os.O_CREATE, 0o600) // no link to a file elsewhere
	if err != nil {
		return nil, err
	}
	r := &Recorder{path: path, boot: boot, owner: owner, log: log}
	r.f.Store(f)
	if r.found, err = r.read(f); err != nil {
		log.Info("the record of sends of an earlier process is not believed", "file", path, "reason", err)
	}
	return r, nil
}

// Found returns what the earlier process recorded of an attempt.
func (r *Recorder) Found(m Mark) Trace {
	if r == nil {
		return Trace{}
	}
	return r.found[m]
}

// Begin discards what was found and starts recording. Call it when the database states
// what became of every earlier send, and before the first Mark. Before it, Mark
// records nothing.
func (r *Recorder) Begin() {
	if r == nil {
		return
	}
	r.found = nil
	f := r.f.Load()
	if f == nil {
		return
	}
	if err := r.format(f); err != nil {
		_ = r.fail(err)
		return
	}
	if mapped, err := mapFile(f, headerSize+Slots*slotSize); err == nil {
		r.mapped = mapped
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range Slots {
		r.free = append(r.free, Slots-1-i)
	}
}

// Close ends recording. What was recorded stays for the next start.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	f := r.f.Swap(nil)
	if f == nil {
		return nil
	}
	return f.Close()
}

// Mark records that an attempt will be made. Call it before the commit that marks
// the row: a row that is found marked then has a slot. When nothing is recorded, the Send
// is one that has no slot.
func (r *Recorder) Mark(m Mark) (*Send, error) {
	if r == nil || r.f.Load() == nil {
		return &Send{}, nil
	}
	s := r.take(m)
	if s == nil {
		// An older slot could be taken for this attempt's: better none.
		return &Send{}, r.fail(fmt.Errorf("more than %d sends", Slots))
	}
	if err := r.put(s.slot, s.encode(Marked, "")); err != nil {
		s.phase = Marked
		s.Release()
		return &Send{}, err
	}
	s.phase = Marked
	return s, nil
}

// take returns a send with a free slot, or nil.
func (r *Recorder) take(m Mark) *Send {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return nil
	}
	r.number++
	s := &Send{r: r, slot: r.free[len(r.free)-1], mark: m, number: r.number}
	r.free = r.free[:len(r.free)-1]
	return s
}

// put writes a slot. An error means that what the file states could not be corrected, so
// that no byte may leave.
func (r *Recorder) put(slot int, b []byte) error {
	f := r.f.Load()
	if f == nil {
		return nil
	}
	var err error
	if r.mapped != nil {
		err = store(r.mapped[offset(slot):][:slotSize], b)
	} else {
		_, err = f.WriteAt(b, offset(slot))
	}
	if err != nil {
		return r.fail(err)
	}
	return nil
}

// fail ends recording after an error, in a way that the next start notices: the file is
// removed, or emptied. It returns an error if neither can be done; then it is tried
// again with the next write.
func (r *Recorder) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.f.Load()
	if f == nil {
		return nil
	}
	if gone := os.Remove(r.path); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		if gone = f.Truncate(0); gone != nil {
			return fmt.Errorf("record a send: %w; and the record could not be removed: %w", err, gone)
		}
	}
	r.f.Store(nil)
	_ = f.Close()
	r.log.Error("sends are no longer recorded: after a crash more of them are of unknown outcome", "file", r.path, "err", err)
	return nil
}
