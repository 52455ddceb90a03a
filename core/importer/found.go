package importer

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/record"
)

const (
	maxRecords  = 10_000      // records of the vault that are known by their ids
	recordsLast = time.Minute // how long it is believed which there are
	recordHead  = 32 << 10    // bytes of a record that are read for its id
)

// records are the vault's records by their sessions' ids.
type records struct {
	mu   sync.Mutex
	at   time.Time
	file map[string]string // slash paths below the vault; at most maxRecords
}

// Open brings in the record of the session id in the gateway's own vault, as a client asks for it
// for the first time, and reports whether there is one. The session is the operator's, and
// sandboxed until it is imported: anyone who may write to the vault may have written it.
func (i *Importer) Open(ctx context.Context, id string) (bool, error) {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return false, nil
	}
	root, err := os.OpenRoot(i.o.Own)
	if err != nil {
		return false, err
	}
	defer root.Close()
	name := i.records.find(root, id, i.o.Clock.Now())
	if name == "" {
		return false, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return false, nil // gone
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, record.MaxSize+1))
	if err != nil || len(text) > record.MaxSize {
		return false, err
	}
	c, err := record.Parse(string(text))
	if err != nil || c.ID != id {
		return false, nil
	}
	o, err := i.o.Bringer.Tree(ctx, c, foreign.Terms{User: core.Operator, Trust: core.Sandboxed, Found: true}, nil)
	if err != nil {
		return false, err
	}
	i.o.Log.Info("a record of the vault is opened as a session", "session", id, "file", name)
	return o.Kind == foreign.Added, nil
}

// find returns the file of the record of the session id; "" without one.
func (r *records) find(root *os.Root, id string, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || now.Sub(r.at) > recordsLast {
		r.at, r.file = now, map[string]string{}
		for _, folder := range record.Folders {
			_ = fs.WalkDir(root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return fs.SkipDir // missing, or not ours to read
				case len(r.file) >= maxRecords:
					return fs.SkipAll
				case d.Type().IsRegular() && strings.HasSuffix(name, ".md"):
					r.note(root, name)
				}
				return nil
			})
		}
	}
	return r.file[id]
}

// note adds the record name.
func (r *records) note(root *os.Root, name string) {
	f, err := root.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, recordHead))
	if err != nil {
		return
	}
	if h, _, ok := record.ReadHead(string(head)); ok {
		r.file[h.IDs[0]] = name
	}
}
