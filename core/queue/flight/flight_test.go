package flight

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

// begun returns the recorder of a process that has taken over.
func begun(t testing.TB, path string) *Recorder {
	t.Helper()
	r := Open(path, "db", quiet)
	if r == nil {
		t.Skip("nothing is recorded on this system")
	}
	t.Cleanup(func() { _ = r.Close() })
	r.Begin()
	return r
}

func marked(t testing.TB, r *Recorder, seq int64) *Send {
	t.Helper()
	s, err := r.Mark(Mark{Seq: seq, Epoch: 7, Attempt: 1})
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	return s
}

// found returns what the next process reads of an attempt, while the file is still open
// in this one: as after SIGKILL, nothing was closed or synced.
func found(t testing.TB, path string, seq int64) Trace {
	t.Helper()
	r := Open(path, "db", quiet)
	defer r.Close()
	return r.Found(Mark{Seq: seq, Epoch: 7, Attempt: 1})
}

func TestTheNextProcessReadsHowFarEachSendGot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "sends")
	r := begun(t, path)
	long := strings.Repeat("9", maxID)
	for i, step := range []struct {
		do   func(s *Send)
		want Trace
	}{
		{func(*Send) {}, Trace{Phase: Marked}},
		{func(s *Send) { _ = s.Writing() }, Trace{Phase: Writing}},
		{func(s *Send) { s.Written() }, Trace{Phase: Marked}}, // of no request that has begun
		{func(s *Send) { _ = s.Writing(); s.Written() }, Trace{Phase: Written}},
		{func(s *Send) { _ = s.Writing(); s.Written(); _ = s.Writing() }, Trace{Phase: Written}}, // a second request
		{func(s *Send) { _ = s.Writing(); s.Written(); s.Accepted("17") }, Trace{Answered, "17"}},
		{func(s *Send) { _ = s.Writing(); s.Accepted(long) }, Trace{Answered, long}},
		{func(s *Send) { _ = s.Writing(); s.Accepted(long + "9") }, Trace{Phase: Writing}}, // the id has no room
		{func(s *Send) { _ = s.Writing(); s.Accepted("17"); _ = s.Writing(); s.Written() }, Trace{Answered, "17"}},
		{func(s *Send) { _ = s.Writing(); s.Written(); s.NotAccepted() }, Trace{Phase: Marked}},
		{func(s *Send) { _ = s.Writing(); s.NotAccepted(); _ = s.Writing() }, Trace{Phase: Marked}}, // late
	} {
		seq := int64(i + 1)
		step.do(marked(t, r, seq))
		if got := found(t, path, seq); got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
	for _, m := range []Mark{{Seq: 100, Epoch: 7, Attempt: 1}, {Seq: 1, Epoch: 8, Attempt: 1}, {Seq: 1, Epoch: 7, Attempt: 2}} {
		next := Open(path, "db", quiet)
		if got := next.Found(m); got.Phase != Unrecorded {
			t.Errorf("%+v was not marked and is found: %+v", m, got)
		}
		_ = next.Close()
	}
}

func TestAReleasedSendRecordsNothingInTheSlotOfTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	r := begun(t, path)
	first := marked(t, r, 1)
	_ = first.Writing()
	first.Release()
	second := marked(t, r, 2)
	if second.slot != first.slot {
		t.Fatal("the slot is not used again")
	}
	_ = first.Writing()
	first.Written()
	first.Accepted("1")
	first.NotAccepted()
	first.Release()
	if got := found(t, path, 2); got.Phase != Marked {
		t.Errorf("the second send is %+v", got)
	}
	if n := len(r.free); n != Slots-1 {
		t.Errorf("%d slots are free, want %d", n, Slots-1)
	}
}

// Row numbers can come again, after a transaction that failed for example.
func TestALaterMarkOfTheSameNumberCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	r := begun(t, path)
	a, b := marked(t, r, 1), marked(t, r, 2)
	_ = a.Writing()
	a.Accepted("1")
	a.Release()
	b.Release()
	marked(t, r, 3) // takes one of the slots
	marked(t, r, 1)
	if got := found(t, path, 1); got.Phase != Marked {
		t.Errorf("found %+v of the later mark", got)
	}
}

func TestARecordIsNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, r *Recorder, path string){
		"of another boot": func(t *testing.T, r *Recorder, _ string) {
			r.boot = "another"
			head, err := r.header(r.f.Load(), Slots)
			if err == nil {
				_, err = r.f.Load().WriteAt(head, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"of another database": func(t *testing.T, r *Recorder, _ string) {
			r.owner = "another"
			head, err := r.header(r.f.Load(), Slots)
			if err == nil {
				_, err = r.f.Load().WriteAt(head, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"with a damaged header": func(t *testing.T, r *Recorder, _ string) {
			if _, err := r.f.Load().WriteAt([]byte{1}, 100); err != nil {
				t.Fatal(err)
			}
		},
		"with a damaged slot": func(t *testing.T, r *Recorder, _ string) {
			if _, err := r.f.Load().WriteAt([]byte{byte(Answered)}, offset(0)+4); err != nil {
				t.Fatal(err)
			}
		},
		"that is cut": func(t *testing.T, r *Recorder, _ string) {
			if err := r.f.Load().Truncate(headerSize + 3*slotSize); err != nil {
				t.Fatal(err)
			}
		},
		"that is a copy": func(t *testing.T, _ *Recorder, path string) {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".new", b, 0o600)
			}
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"that is empty": func(t *testing.T, r *Recorder, _ string) {
			if err := r.f.Load().Truncate(0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sends")
			r := begun(t, path)
			marked(t, r, 1)
			if got := found(t, path, 1); got.Phase != Marked {
				t.Fatalf("it is not believed before either: %+v", got)
			}
			spoil(t, r, path)
			if got := found(t, path, 1); got.Phase != Unrecorded {
				t.Errorf("it is believed: %+v", got)
			}
			again := begun(t, path) // and does not disturb the next process
			marked(t, again, 2)
			if got := found(t, path, 2); got.Phase != Marked {
				t.Errorf("the next process records %+v", got)
			}
		})
	}
}

// The number of slots differs between versions of the program, and the one before may have been killed.
func TestARecordOfAnotherNumberOfSlotsIsBelieved(t *testing.T) {
	for _, slots := range []uint32{1024, 2 * Slots} {
		path := filepath.Join(t.TempDir(), "sends")
		r := begun(t, path)
		_ = marked(t, r, 1).Writing()
		head, err := r.header(r.f.Load(), slots)
		if err == nil {
			err = r.f.Load().Truncate(offset(int(slots)))
		}
		if err == nil {
			_, err = r.f.Load().WriteAt(head, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := found(t, path, 1); got.Phase != Writing {
			t.Errorf("with %d slots: %+v", slots, got)
		}
		again := begun(t, path)
		marked(t, again, 2)
		if got := found(t, path, 2); got.Phase != Marked {
			t.Errorf("the next process records %+v", got)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != offset(Slots) {
			t.Errorf("its file is %v, %v", info, err)
		}
	}
}

func TestWhatWasDecidedOnIsNotFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	marked(t, begun(t, path), 1)
	begun(t, path)
	if got := found(t, path, 1); got.Phase != Unrecorded {
		t.Errorf("found %+v", got)
	}
}

// What cannot be recorded must not be believed to be on its way only: the file goes, or
// the message does not.
func TestARecordThatCannotBeWrittenIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	r := begun(t, path)
	s := marked(t, r, 1)
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.f.Load().Close()
	r.f.Store(readOnly)
	r.mapped = nil
	if err := s.Writing(); err != nil {
		t.Errorf("the send is stopped: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record still exists: %v", err)
	}
	if s, err := r.Mark(Mark{Seq: 2}); s.phase != Unrecorded || err != nil {
		t.Errorf("a later mark returns %v, %v", s, err)
	}
}

// A file that somebody cuts short while it is mapped does not end the gateway.
func TestARecordThatIsCutWhileItIsWrittenIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	r := begun(t, path)
	s := marked(t, r, 1)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Writing(); err != nil {
		t.Errorf("the send is stopped: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record still exists: %v", err)
	}
}

func TestARecordThatCanNeitherBeWrittenNorRemovedStopsTheSend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	r := begun(t, path)
	s := marked(t, r, 1)
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.f.Load().Close()
	r.f.Store(readOnly)
	r.mapped = nil
	r.path = t.TempDir() // a directory that is not empty
	if err := os.WriteFile(filepath.Join(r.path, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Writing(); err == nil {
		t.Error("the send goes on")
	}
	if _, err := r.Mark(Mark{Seq: 2}); err == nil {
		t.Error("another send begins")
	}
}

func TestALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "sends")); err != nil {
		t.Skip(err)
	}
	Open(filepath.Join(dir, "sends"), "db", quiet).Begin()
	if b, err := os.ReadFile(other); err != nil || string(b) != "mine" {
		t.Errorf("the linked file is %q, %v", b, err)
	}
}

func TestWithoutARecorderNothingIsRecorded(t *testing.T) {
	var r *Recorder
	r.Begin()
	s, err := r.Mark(Mark{Seq: 1})
	if s.phase != Unrecorded || err != nil || r.Found(Mark{Seq: 1}).Phase != Unrecorded || r.Close() != nil {
		t.Error(s, err)
	}
	if err := s.Writing(); err != nil {
		t.Error(err)
	}
	s.Written()
	s.Accepted("1")
	s.NotAccepted()
	s.Release()
}

// BenchmarkSend is what one message pays for its record: 128 bytes, four times.
func BenchmarkSend(b *testing.B) {
	r := begun(b, filepath.Join(b.TempDir(), "sends"))
	b.ReportAllocs()
	for seq := int64(0); b.Loop(); seq++ {
		s := marked(b, r, seq)
		_ = s.Writing()
		s.Written()
		s.Accepted("123456")
		s.Release()
	}
}

// BenchmarkSendBesideFsyncs is the same while another file of the disk is synced all the
// time, as the database's log is.
func BenchmarkSendBesideFsyncs(b *testing.B) {
	dir := b.TempDir()
	r := begun(b, filepath.Join(dir, "sends"))
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = f.Write(make([]byte, 8192))
				_ = f.Sync()
				_, _ = f.Seek(0, io.SeekStart)
			}
		}
	}()
	for seq := int64(0); b.Loop(); seq++ {
		s := marked(b, r, seq)
		_ = s.Writing()
		s.Written()
		s.Accepted("123456")
		s.Release()
	}
	close(stop)
	<-done
}

// Connecting may take long, and the gateway may be frozen while it does.
func TestNoByteLeavesOnceTheMarkIsOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sends")
	s := marked(t, begun(t, path), 1)
	old := false
	s.Until(func() bool { return old })
	if old = true; !errors.Is(s.Writing(), errStale) || found(t, path, 1).Phase != Marked {
		t.Errorf("it may write, and the next process reads %v", found(t, path, 1))
	}
	if old = false; s.Writing() != nil || found(t, path, 1).Phase != Writing {
		t.Errorf("it may not write in time: %v", found(t, path, 1))
	}
}
