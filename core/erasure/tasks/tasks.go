// Package tasks runs what is done with all the data of a user, which takes
// longer than a request may: forgetting and exporting them. The panel and the
// command line start and follow the same jobs.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/erasure"
	"gatehouse/core/jobs"
	"gatehouse/core/store"
)

// Kinds of jobs.
const (
	Forget = "forget"
	Export = "export"
)

// Tasks starts and follows jobs.
type Tasks struct {
	db     *store.DB
	jobs   *jobs.Table
	eraser *erasure.Eraser
}

// New returns the tasks of the eraser.
func New(db *store.DB, table *jobs.Table, eraser *erasure.Eraser) *Tasks {
	return &Tasks{db: db, jobs: table, eraser: eraser}
}

// ref returns a user's number as a reference.
func ref(user int64) string { return strconv.FormatInt(user, 10) }

func key(kind, ref string) string { return kind + " " + ref }

// State returns how the job of this kind is, and whether there is one.
func (t *Tasks) State(kind string, user int64) (jobs.State, bool) {
	return t.jobs.State(key(kind, ref(user)))
}

// Forget starts to erase the user that of names and returns the job's key. It
// joins the job that erases them already. The result's value is an
// erasure.Forgotten.
func (t *Tasks) Forget(ctx context.Context, of string, by core.Actor) (string, error) {
	subject := of
	if p, err := t.eraser.Person(ctx, of); err == nil {
		if p.User != 0 { // else a stranger
			subject = ref(p.User)
		}
	} else if core.KindOf(err) != core.NotFound { // one who is partly erased can be continued with
		return "", err
	}
	k := key(Forget, subject)
	return k, t.jobs.Start(k, func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		f, err := t.eraser.Forget(ctx, of, by, progress)
		if err != nil {
			return jobs.Result{}, err
		}
		t.jobs.Drop(key(Export, subject))
		lines := []string{fmt.Sprintf("Erased: %d conversations, %d files, and %d turns in groups.", f.Sessions, f.Files, f.Turns)}
		return jobs.Result{Lines: append(lines, f.Left...), Value: f}, nil
	})
}

// Export starts to collect what is stored about the user. It writes an audit
// entry. What is stored about the owner is the owner's alone (core.Denied).
func (t *Tasks) Export(ctx context.Context, user int64, by core.Actor) error {
	subject := ref(user)
	if err := mayExport(user, by); err != nil {
		return err
	}
	if _, err := t.eraser.Person(ctx, subject); err != nil {
		return err
	}
	if err := t.db.Audit(ctx, by, "user.export", subject, nil); err != nil {
		return err
	}
	return t.jobs.Start(key(Export, subject), func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		f, err := jobs.Unnamed()
		if err != nil {
			return jobs.Result{}, err
		}
		if err := t.eraser.Zip(ctx, subject, f, progress); err != nil {
			return jobs.Result{}, errors.Join(err, f.Close())
		}
		st, err := f.Stat()
		if err != nil {
			return jobs.Result{}, errors.Join(err, f.Close())
		}
		return jobs.Result{File: f, Size: st.Size()}, nil
	})
}

// mayExport refuses the owner's data to anyone else. Number 0 is the program.
func mayExport(user int64, by core.Actor) error {
	if user == core.Operator && by.User != core.Operator && by.User != 0 {
		return core.Errorf(core.Denied, "only the owner may export the owner's data")
	}
	return nil
}

// OpenExport returns the finished export of the user and when it was made, or
// core.NotFound. It writes an audit entry. The owner's is the owner's alone
// (core.Denied).
func (t *Tasks) OpenExport(ctx context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	if err := mayExport(user, by); err != nil {
		return nil, time.Time{}, err
	}
	f, at, err := t.jobs.Open(key(Export, ref(user)))
	if err == nil {
		err = t.db.Audit(ctx, by, "user.download", ref(user), nil)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return f, at, nil
}
