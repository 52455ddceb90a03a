package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"

	"gatehouse/admin/page"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
)

// peopleView is what the panel's page People asks beyond the book.
type peopleView struct{ a *app }

// lastSeen is when people last wrote to a bot, or a model was last called for
// them: two statements, however many they are.
func (v peopleView) lastSeen(ctx context.Context, people []people.Person) (map[int64]time.Time, error) {
	users := make([]int64, len(people))
	var writers []queue.Writer
	of := map[queue.Writer]int64{} // as many as people have accounts
	for i, x := range people {
		users[i] = x.User
		for _, account := range x.Accounts {
			for _, b := range v.a.bots.All() {
				if b.Platform == account.Platform {
					w := queue.Writer{Bot: b.Name, Sender: account.ID}
					writers, of[w] = append(writers, w), x.User
				}
			}
		}
	}
	last, err := v.a.usage.LastOf(ctx, v.a.db, users)
	if err != nil {
		return nil, err
	}
	heard, err := v.a.queue.HeardFrom(ctx, writers)
	for w, at := range heard {
		if at.After(last[of[w]]) {
			last[of[w]] = at
		}
	}
	return last, err
}

func (v peopleView) Standing(ctx context.Context, user int64) (usage.Standing, error) {
	return v.a.usage.Standing(ctx, v.a.db, user, v.a.clock.Now())
}

func (v peopleView) SetBudget(ctx context.Context, user int64, day, month string, by core.Actor) error {
	var a, b configs.Budget
	if err := a.Decode(day); err != nil {
		return core.Errorf(core.Invalid, "amount: %s", err.Error())
	}
	if err := b.Decode(month); err != nil {
		return core.Errorf(core.Invalid, "amount of a month: %s", err.Error())
	}
	own := usage.Own{Month: usage.Budget(b)}
	if day != "" {
		own.Day = (*usage.Budget)(&a)
	}
	err := v.a.db.Tx(ctx, func(tx *store.Tx) error {
		ok, err := v.a.pairing.People.HasUser(ctx, tx, user)
		if err == nil && !ok {
			err = core.Errorf(core.NotFound, "nobody of this number is known here")
		}
		return errors.Join(err, v.a.usage.SetOwn(ctx, tx, user, own, by))
	})
	if err == nil {
		v.a.bus.Ring("people")
	}
	return err
}

// setPlace changes level and mention mode of an enabled group; the rest stays.
func (v peopleView) setPlace(ctx context.Context, bot, place string, level core.Trust, mention string, by core.Actor) error {
	s, err := v.a.pairing.Places.Place(ctx, v.a.db, bot, place)
	if err != nil {
		return err
	}
	s.Mention = mention
	if err := v.a.pairing.Places.SetPlace(ctx, bot, place, s, by); err != nil {
		return err
	}
	return v.a.pairing.Places.Enable(ctx, bot, place, "", level, by)
}

// ---- orders that take long

func personRef(user int64) string { return strconv.FormatInt(user, 10) }

func (v peopleView) Job(kind string, user int64) (page.Job, bool) {
	return v.a.panelJobs.look(kind + " " + personRef(user))
}

// Forget begins to erase a person. It is the same job as the command line's.
func (v peopleView) Forget(_ context.Context, user int64, by core.Actor) error {
	ref := personRef(user)
	return v.a.panelJobs.begin("forget "+ref, func(ctx context.Context, tell func(string)) (result, error) {
		f, err := v.a.forget(ctx, ref, by, tell)
		return result{Forgotten: &f}, err
	}, func(res result) outcome {
		v.a.panelJobs.drop("export " + ref)
		f := res.Forgotten
		return outcome{said: append([]string{fmt.Sprintf("Erased: %d conversations, %d files, and %d turns in groups.", f.Sessions, f.Files, f.Turns)}, f.Left...)}
	})
}

// Export begins to put together what is known of a person.
func (v peopleView) Export(ctx context.Context, user int64, by core.Actor) error {
	ref := personRef(user)
	if _, err := v.a.person(ctx, v.a.db, ref); err != nil {
		return err
	}
	if err := v.audit(ctx, by, "user.export", ref); err != nil {
		return err
	}
	var made *os.File
	return v.a.panelJobs.begin("export "+ref, func(ctx context.Context, tell func(string)) (result, error) {
		f, err := unnamed()
		if err != nil {
			return result{}, err
		}
		if err := v.a.zipPerson(ctx, ref, f, tell); err != nil {
			return result{}, errors.Join(err, f.Close())
		}
		made = f
		return result{}, nil
	}, func(result) outcome {
		if made == nil {
			return outcome{}
		}
		st, err := made.Stat()
		if err != nil {
			return outcome{}
		}
		return outcome{file: made, size: st.Size()}
	})
}

func (v peopleView) audit(ctx context.Context, by core.Actor, action, subject string) error {
	return v.a.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, subject, nil) })
}

// OpenExport gives an export to one reader.
func (v peopleView) OpenExport(ctx context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	f, job, err := v.a.panelJobs.made("export " + personRef(user))
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := v.audit(ctx, by, "user.download", personRef(user)); err != nil {
		return nil, time.Time{}, err
	}
	return section{io.NewSectionReader(f, 0, job.Size)}, job.At, nil
}

// section is a reader of a file that somebody else closes.
type section struct{ *io.SectionReader }

func (section) Close() error { return nil }

// zipPerson writes what is known of a person: person.json, a Markdown file for
// each conversation, what came with their messages, and what lies in their folder.
func (a *app) zipPerson(ctx context.Context, ref string, to io.Writer, tell func(string)) error {
	tell("reading what the tables hold")
	res, err := a.exportPerson(ctx, order{Ref: ref})
	if err != nil {
		return err
	}
	z := zip.NewWriter(to)
	var rows any
	if err := json.Unmarshal(res.Person.Rows, &rows); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := a.zipText(z, "person.json", append(text, '\n')); err != nil {
		return err
	}
	for i, id := range res.Person.Sessions {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		tell(fmt.Sprintf("%d of %d conversations", i, len(res.Person.Sessions)))
		one, err := a.export(ctx, order{Ref: id})
		if core.KindOf(err) == core.NotFound {
			continue // deleted meanwhile
		}
		if err == nil {
			err = a.zipText(z, "conversations/"+path.Base(id)+".md", []byte(one.Text))
		}
		if err != nil {
			return err
		}
	}
	tell("their files")
	if err := a.zipFiles(ctx, z, ref); err != nil {
		return err
	}
	return z.Close()
}

func (a *app) zipText(z *zip.Writer, name string, text []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: a.clock.Now().UTC()})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// zipFiles adds the files that came with a person's messages, and their folder.
func (a *app) zipFiles(ctx context.Context, z *zip.Writer, ref string) error {
	p, err := a.person(ctx, a.db, ref)
	if err != nil || p.User <= core.Operator { // the owner's folder is the vault
		return err
	}
	files := a.vault.FS()
	for last, more := "", true; more; {
		var paths []string
		if err := a.db.Select(ctx, &paths, `SELECT path FROM attachments WHERE user_id = $1 AND path > $2 ORDER BY path LIMIT 500`, p.User, last); err != nil {
			return err
		}
		for _, name := range paths {
			if err := a.zipFile(ctx, z, files, name); err != nil {
				return err
			}
			last = name
		}
		more = len(paths) > 0
	}
	return fs.WalkDir(files, tool.Area(p.User), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), beneath.Replaced(err):
			return nil // moved or replaced since its folder was read
		case err != nil:
			return err
		case !d.Type().IsRegular():
			return nil
		}
		return a.zipFile(ctx, z, files, name)
	})
}

func (a *app) zipFile(ctx context.Context, z *zip.Writer, files fs.FS, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) || beneath.Replaced(err) {
		return nil // moved or replaced since its folder was read
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: "files/" + name, Method: zip.Deflate, Modified: st.ModTime()})
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return err
}
