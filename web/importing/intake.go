package importing

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/report"
)

// stalled is how long a client may send nothing: until then no other file is taken.
const stalled = 2 * time.Minute

// An Intake receives the files of imports, one at a time: what cannot be imported now is refused
// before gigabytes of it are read. It is safe for concurrent use.
type Intake struct {
	list func() []report.State

	mu  sync.Mutex
	now *Arrival
}

// An Arrival is a file that is being received.
type Arrival struct {
	Name       string // "" until the client has named it
	Read, Size int64  // bytes; Size is the form's, 0 where the client does not say it
}

// NewIntake returns an Intake for imports, of which list returns those that are remembered (tasks.Tasks).
func NewIntake(list func() []report.State) *Intake { return &Intake{list: list} }

// Free returns core.Busy while an import runs or a file is being received.
func (i *Intake) Free() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.free()
}

func (i *Intake) free() error {
	if i.now != nil {
		return core.Errorf(core.Busy, "the file of another import is being received: wait until that import has ended")
	}
	if slices.ContainsFunc(i.list(), func(s report.State) bool { return s.State == report.Running }) {
		return core.Errorf(core.Busy, "an import is running: wait for its end, or stop it")
	}
	return nil
}

// Begin begins to receive the form of r; core.Busy as Free. The caller closes the Upload.
func (i *Intake) Begin(w http.ResponseWriter, r *http.Request) (*Upload, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.free(); err != nil {
		return nil, err
	}
	i.now = &Arrival{Size: max(0, r.ContentLength)}
	c, end := http.NewResponseController(w), time.Now().Add(UploadTime)
	return &Upload{intake: i, alive: func() {
		at := time.Now().Add(stalled)
		if at.After(end) {
			at = end
		}
		_ = c.SetReadDeadline(at) // where it cannot be set, the server's own holds
	}}, nil
}

// Arriving returns the file that is being received now, and whether there is one.
func (i *Intake) Arriving() (Arrival, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now == nil {
		return Arrival{}, false
	}
	return *i.now, true
}

func (i *Intake) named(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now.Name = name
}

func (i *Intake) count(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now.Read += int64(n)
}

func (i *Intake) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = nil
}

// arriving counts the bytes of a part.
type arriving struct {
	io.Reader
	u *Upload
}

func (a arriving) Read(p []byte) (int, error) {
	a.u.alive()
	n, err := a.Reader.Read(p)
	a.u.intake.count(n)
	return n, err
}
