// Package importing is what the API and the panel share of imports: whose they are, who may name a
// path, and the form with a file.
package importing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/web"
	"gatehouse/web/auth"
)

const (
	// MaxUpload is the largest file that is taken, in bytes.
	MaxUpload = 4 << 30
	// UploadTime is how long one file may take.
	UploadTime = 2 * time.Hour
)

type (
	// A Starter starts the import of an uploaded file (tasks.Tasks).
	Starter interface {
		StartFile(ctx context.Context, f *os.File, name string, size int64, o report.Order, t foreign.Terms, by core.Actor) (string, error)
	}
	// Entries are what became of each conversation (tasks.Tasks).
	Entries interface {
		Entries(id string) (io.ReadSeekCloser, time.Time, error)
	}
	// Temp makes a file without a name for an upload.
	Temp func() (*os.File, error)
)

// Terms returns whose an import of p's is. The owner who is signed in to the panel imports with the
// owner's own trust, not with that of turns from there.
func Terms(p auth.Principal) foreign.Terms {
	t := foreign.Terms{User: p.User, Trust: p.Trust}
	if p.Session && p.User == core.Operator {
		t.Trust = core.Full
	}
	return t
}

// MayName refuses a path of the machine to everyone but the owner, signed in or at full trust: it may
// name any file that the gateway can read.
func MayName(p auth.Principal) error {
	if p.User != core.Operator || p.Trust < core.Full && !p.Session {
		return core.Errorf(core.Denied, "only the owner at full trust imports from a path: upload the file instead")
	}
	return nil
}

// An Upload is a form with a file, as it is read part by part (Intake.Begin).
type Upload struct {
	Order  report.Order
	intake *Intake
	alive  func() // gives the client time for the next piece
	file   *os.File
	name   string
	size   int64
}

// Take reads one part of the form: the file, or a field dry_run, archive or again. Other fields are
// ignored.
func (u *Upload) Take(part *multipart.Part, temp Temp) error {
	if part.FileName() != "" {
		if u.file != nil {
			return core.Errorf(core.Invalid, "the form holds more than one file")
		}
		f, err := temp()
		if err != nil {
			return err
		}
		u.file, u.name = f, core.CleanName(part.FileName())
		u.intake.named(u.name)
		if u.size, err = io.Copy(f, arriving{part, u}); err != nil {
			if _, tooMuch := errors.AsType[*http.MaxBytesError](err); tooMuch {
				return web.Refuse(web.TooLarge, fmt.Sprintf("the file is over %s: name its path on the gateway's machine instead", core.ByteSize(MaxUpload)))
			}
			return web.BodyFault(err, "the file did not arrive whole")
		}
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(part, 16))
	if err != nil {
		return web.BodyFault(err, "the form cannot be read")
	}
	to := map[string]*bool{"dry_run": &u.Order.DryRun, "archive": &u.Order.Archive, "again": &u.Order.Again}[part.FormName()]
	if to == nil {
		return nil
	}
	if *to, err = strconv.ParseBool(string(text)); err != nil && string(text) != "on" {
		return web.FieldProblem(web.Invalid, part.FormName(), part.FormName()+" must be true or false")
	}
	*to = *to || string(text) == "on"
	return nil
}

// Start starts the import of the file for p.
func (u *Upload) Start(ctx context.Context, to Starter, p auth.Principal) (string, error) {
	if u.file == nil {
		return "", web.FieldProblem(web.Invalid, "file", "the form holds no file: add one as the field file")
	}
	f := u.file
	u.file = nil // it is the import's
	return to.StartFile(ctx, f, u.name, u.size, u.Order, Terms(p), p.Actor())
}

// Close closes a file that was not started, and lets the next one come.
func (u *Upload) Close() {
	u.intake.end()
	if u.file != nil {
		_ = u.file.Close() // it has no name, so nothing is left
		u.file = nil
	}
}

// WriteEntries answers with the entries of an import as a file.
func WriteEntries(w http.ResponseWriter, r *http.Request, from Entries, id string) error {
	f, at, err := from.Entries(id)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="import-`+at.UTC().Format("2006-01-02-1504")+`.jsonl"`)
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", at, f)
	return nil
}
