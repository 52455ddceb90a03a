package views

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"gatehouse/admin/page"
	"gatehouse/admin/settings"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/backup/directory"
	"gatehouse/core/jobs"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
)

// peopleView is what the panel's page Users asks beyond the book.
type peopleView struct{ c *Core }

// LastSeen returns when users last wrote to a bot, or a model was last called for
// them: two statements, however many they are.
func (v peopleView) LastSeen(ctx context.Context, people []people.Person) (map[int64]time.Time, error) {
	users := make([]int64, len(people))
	var writers []inspect.Writer
	of := map[inspect.Writer]int64{} // one per account
	for i, x := range people {
		users[i] = x.User
		for _, account := range x.Accounts {
			for _, b := range v.c.BotList.All() {
				if b.Platform == account.Platform {
					w := inspect.Writer{Bot: b.Name, Sender: account.ID}
					writers, of[w] = append(writers, w), x.User
				}
			}
		}
	}
	last, err := v.c.Ledger.LastOf(ctx, v.c.DB, users)
	if err != nil {
		return nil, err
	}
	heard, err := v.c.Inspect.HeardFrom(ctx, writers)
	for w, at := range heard {
		if at.After(last[of[w]]) {
			last[of[w]] = at
		}
	}
	return last, err
}

func (v peopleView) Standing(ctx context.Context, user int64) (usage.Standing, error) {
	return v.c.Ledger.Standing(ctx, v.c.DB, user, v.c.Clock.Now())
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
	err := v.c.DB.Tx(ctx, func(tx *store.Tx) error {
		ok, err := v.c.Pairing.People.HasUser(ctx, tx, user)
		if err == nil && !ok {
			err = core.Errorf(core.NotFound, "no person has this number")
		}
		return errors.Join(err, v.c.Ledger.SetOwn(ctx, tx, user, own, by))
	})
	if err == nil {
		v.c.Bus.Ring(core.TopicPeople)
	}
	return err
}

// SetPlace changes level and mention mode of an enabled group; the rest stays.
func (v peopleView) SetPlace(ctx context.Context, bot, place string, level core.Trust, mention string, by core.Actor) error {
	s, err := v.c.Pairing.Places.Place(ctx, v.c.DB, bot, place)
	if err != nil {
		return err
	}
	s.Mention = mention
	if err := v.c.Pairing.Places.SetPlace(ctx, bot, place, s, by); err != nil {
		return err
	}
	return v.c.Pairing.Places.Enable(ctx, bot, place, "", level, by)
}

// ---- jobs

// jobView returns a job as the panel shows it.
func jobView(st jobs.State, ok bool) (page.Job, bool) {
	j := page.Job{Running: st.Running, Tell: st.Progress, Said: st.Result.Lines, At: st.At, Size: st.Result.Size}
	switch {
	case core.KindOf(st.Err) != core.Other:
		j.Error = core.TextOf(st.Err)
	case st.Err != nil:
		j.Error = "That failed through an internal error. See the log."
	}
	return j, ok
}

func (v peopleView) Job(kind string, user int64) (page.Job, bool) {
	return jobView(v.c.Tasks.State(kind, user))
}

// Forget starts to erase a user. It is the same job as the command line's.
func (v peopleView) Forget(ctx context.Context, user int64, by core.Actor) error {
	_, err := v.c.Tasks.Forget(ctx, strconv.FormatInt(user, 10), by)
	return err
}

func (v peopleView) Export(ctx context.Context, user int64, by core.Actor) error {
	return v.c.Tasks.Export(ctx, user, by)
}

func (v peopleView) OpenExport(ctx context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	return v.c.Tasks.OpenExport(ctx, user, by)
}

// backupsView is the directory of backups as the panel shows it.
type backupsView struct{ *directory.Directory }

func (v backupsView) Job() (page.Job, bool) { return jobView(v.State()) }

func (v backupsView) Backups(ctx context.Context) ([]settings.BackupFile, error) {
	list, err := v.Directory.Backups(ctx)
	out := make([]settings.BackupFile, len(list))
	for i, f := range list {
		out[i] = settings.BackupFile(f)
	}
	return out, err
}

func (v backupsView) OpenBackup(ctx context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	return v.Open(ctx, name, by)
}

func (v backupsView) RemoveBackup(ctx context.Context, name string, by core.Actor) error {
	return v.Remove(ctx, name, by)
}
