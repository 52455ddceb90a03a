package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"gatehouse/admin/page"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
)

// peopleView is what the panel's page Users asks beyond the book.
type peopleView struct{ a *app }

// lastSeen returns when users last wrote to a bot, or a model was last called for
// them: two statements, however many they are.
func (v peopleView) lastSeen(ctx context.Context, people []people.Person) (map[int64]time.Time, error) {
	users := make([]int64, len(people))
	var writers []inspect.Writer
	of := map[inspect.Writer]int64{} // one per account
	for i, x := range people {
		users[i] = x.User
		for _, account := range x.Accounts {
			for _, b := range v.a.bots.All() {
				if b.Platform == account.Platform {
					w := inspect.Writer{Bot: b.Name, Sender: account.ID}
					writers, of[w] = append(writers, w), x.User
				}
			}
		}
	}
	last, err := v.a.usage.LastOf(ctx, v.a.db, users)
	if err != nil {
		return nil, err
	}
	heard, err := v.a.inspect.HeardFrom(ctx, writers)
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
	var a, b values.Budget
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
			err = core.Errorf(core.NotFound, "no person has this number")
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

// Forget begins to erase a user. It is the same job as the command line's.
func (v peopleView) Forget(_ context.Context, user int64, by core.Actor) error {
	ref := personRef(user)
	return v.a.panelJobs.begin("forget "+ref, func(ctx context.Context, tell func(string)) (result, error) {
		f, err := v.a.eraser.Forget(ctx, ref, by, tell)
		return result{Forgotten: &f}, err
	}, func(res result) outcome {
		v.a.panelJobs.drop("export " + ref)
		f := res.Forgotten
		return outcome{said: append([]string{fmt.Sprintf("Erased: %d conversations, %d files, and %d turns in groups.", f.Sessions, f.Files, f.Turns)}, f.Left...)}
	})
}

// Export starts to collect what is stored about a user.
func (v peopleView) Export(ctx context.Context, user int64, by core.Actor) error {
	ref := personRef(user)
	if _, err := v.a.eraser.Person(ctx, ref); err != nil {
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
		if err := v.a.eraser.Zip(ctx, ref, f, tell); err != nil {
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

// section is a reader of a file that someone else closes.
type section struct{ *io.SectionReader }

func (section) Close() error { return nil }
