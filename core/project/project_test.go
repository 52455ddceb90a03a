package project_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/coretest"
	"gatehouse/core/project"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"time"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

type world struct {
	*testing.T
	db       *store.DB
	clock    *coretest.Clock
	sessions *session.Store
	*project.Store
}

func open(t *testing.T) *world {
	clock := coretest.NewClock(time.Time{})
	w := &world{T: t, clock: clock, db: storetest.Open(t, clock)}
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	w.sessions = session.New(session.Options{DB: w.db, Vault: v, Clock: clock, Project: func(ctx context.Context, tx *store.Tx, at core.Address, user int64) (string, error) {
		p, _, err := w.Active(ctx, tx, at, user)
		return p.ID, err
	}})
	t.Cleanup(func() { _, _ = w.sessions.Close(), v.Close() })
	w.Store = project.New(project.Options{DB: w.db, Leave: w.sessions.LeaveProject})
	return w
}

func (w *world) tx(f func(context.Context, *store.Tx) error) error {
	return w.db.Tx(context.Background(), func(tx *store.Tx) error { return f(context.Background(), tx) })
}

func (w *world) must(f func(context.Context, *store.Tx) error) {
	w.Helper()
	if err := w.tx(f); err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(user int64, name string) (p project.Project, err error) {
	return w.Create(w.Context(), user, name)
}

func at(chat string) core.Address { return core.Address{Bot: "b", Chat: chat} }

// begins resolves the conversation of a user's chat, in a new one if anew.
func (w *world) begins(chat string, user int64, anew bool) (s session.Session) {
	w.Helper()
	w.must(func(ctx context.Context, tx *store.Tx) (err error) {
		if anew {
			if err := w.sessions.Unbind(ctx, tx, at(chat)); err != nil {
				return err
			}
		}
		s, _, _, err = w.sessions.Resolve(ctx, tx, session.Ref{Address: at(chat), User: user, Trust: core.Vault})
		return err
	})
	return s
}

func TestNewConversationsOfAChatJoinItsActiveProject(t *testing.T) {
	w := open(t)
	garden, err := w.create(7, "Garden")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.begins("1", 7, false); s.Project != "" {
		t.Errorf("before, it belongs to %q", s.Project)
	}
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), garden.ID) })
	s := w.begins("1", 7, true)
	if stored, err := w.sessions.ByID(t.Context(), w.db, s.ID); err != nil || s.Project != garden.ID || stored.Project != garden.ID {
		t.Errorf("the new one belongs to %q, stored %q, %v", s.Project, stored.Project, err)
	}
	if s := w.begins("2", 7, false); s.Project != "" {
		t.Errorf("in another chat it belongs to %q", s.Project)
	}
	if s := w.begins("1", 8, true); s.Project != "" {
		t.Errorf("another person's conversation belongs to %q", s.Project)
	}
	list, _, err := w.sessions.List(t.Context(), session.Filter{User: 7, Project: garden.ID})
	if err != nil || len(list) != 1 || list[0].ID != s.ID {
		t.Errorf("the project lists %v, %v", list, err)
	}
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), "") })
	if s := w.begins("1", 7, true); s.Project != "" {
		t.Errorf("after it was switched off it belongs to %q", s.Project)
	}
}

func TestADeletedProjectLeavesItsConversations(t *testing.T) {
	w := open(t)
	p, _ := w.create(7, "Garden")
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), p.ID) })
	s := w.begins("1", 7, false)
	if err := w.Delete(t.Context(), 8, p.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("another person deletes it: %v", err)
	}
	if err := w.Delete(t.Context(), 7, p.ID); err != nil {
		t.Fatal(err)
	}
	if stored, err := w.sessions.ByID(t.Context(), w.db, s.ID); err != nil || stored.Project != "" {
		t.Errorf("the conversation belongs to %q, %v", stored.Project, err)
	}
	if _, ok, err := w.Active(t.Context(), w.db, at("1"), 7); ok || err != nil {
		t.Errorf("it is still active: %v", err)
	}
}

func TestAPersonHasOneProjectOfAName(t *testing.T) {
	w := open(t)
	p, err := w.create(7, "  Immigration   Law ")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.create(7, "immigration law"); core.KindOf(err) != core.Conflict {
		t.Errorf("a second one: %v", err)
	}
	if _, err := w.create(8, "Immigration Law"); err != nil {
		t.Errorf("another person's: %v", err)
	}
	if found, ok, err := w.Named(t.Context(), w.db, 7, "IMMIGRATION LAW"); err != nil || !ok || found.ID != p.ID {
		t.Errorf("found %+v, %v", found, err)
	}
	other, _ := w.create(7, "Garden")
	if _, err := w.Rename(t.Context(), 7, other.ID, "Immigration law"); core.KindOf(err) != core.Conflict {
		t.Errorf("renamed to a taken name: %v", err)
	}
	if _, err := w.Rename(t.Context(), 7, p.ID, "IMMIGRATION LAW"); err != nil {
		t.Error(err)
	}
}

func TestAllProjectsAreListedWithWhatBelongsToThem(t *testing.T) {
	w := open(t)
	garden, _ := w.create(7, "Garden 100%")
	w.clock.Advance(time.Minute)
	other, _ := w.create(8, "garden_2")
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), garden.ID) })
	for range 2 {
		s := w.begins("1", 7, true)
		w.must(func(ctx context.Context, tx *store.Tx) error {
			return attach.Record(ctx, tx, 7, s.ID, "r", []core.File{{Path: "a" + s.ID}, {Path: "b" + s.ID}})
		})
	}
	w.begins("2", 7, false)
	list := func(f project.Filter) (out []project.Overview, more bool) {
		t.Helper()
		out, more, err := w.All(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return out, more
	}
	want := []project.Overview{{Project: other, User: 8}, {Project: garden, User: 7, Sessions: 2, Files: 4}}
	got, more := list(project.Filter{Limit: 2, Counted: true})
	if diff := cmp.Diff(want, got); diff != "" || more {
		t.Errorf("more: %v\n%s", more, diff)
	}
	for name, c := range map[string]struct {
		f    project.Filter
		want []string
		more bool
	}{
		"of a person":                  {project.Filter{User: 7, Limit: 9}, []string{garden.ID}, false},
		"of a person with a large id":  {project.Filter{User: 9_999_999_999, Limit: 9}, nil, false},
		"by a part of the name":        {project.Filter{Text: "GARDEN", Limit: 9}, []string{other.ID, garden.ID}, false},
		"by a sign that LIKE knows":    {project.Filter{Text: "%", Limit: 9}, []string{garden.ID}, false},
		"by another such sign":         {project.Filter{Text: "_", Limit: 9}, []string{other.ID}, false},
		"by the id":                    {project.Filter{ID: garden.ID, Limit: 9}, []string{garden.ID}, false},
		"the first":                    {project.Filter{Limit: 1}, []string{other.ID}, true},
		"those behind it":              {project.Filter{Skip: 1, Limit: 1}, []string{garden.ID}, false},
		"without a limit, of a person": {project.Filter{User: 9}, nil, false},
	} {
		list, more := list(c.f)
		var ids []string
		for _, p := range list {
			ids = append(ids, p.ID)
		}
		if !slices.Equal(ids, c.want) || more != c.more {
			t.Errorf("%s: %v, more: %v", name, list, more)
		}
	}
}

func TestMergedAccountsKeepBothProjectsOfAName(t *testing.T) {
	w := open(t)
	a, _ := w.create(7, "Garden")
	_, _ = w.create(8, "Garden")
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Merge(ctx, tx, 7, 8) })
	list, err := w.List(t.Context(), 8)
	if err != nil || len(list) != 2 || !strings.HasPrefix(list[1].Name, "Garden "+a.ID[:8]) {
		t.Errorf("they have %+v, %v", list, err)
	}
}

func TestForgettingAUserDeletesTheirProjects(t *testing.T) {
	w := open(t)
	p, _ := w.create(7, "Garden")
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), p.ID) })
	_, _ = w.create(8, "Garden")
	w.must(func(ctx context.Context, tx *store.Tx) error {
		return w.Forget(ctx, tx, &core.Removal{Person: core.Person{User: 7}})
	})
	var n int
	if err := w.db.Get(t.Context(), &n, `SELECT (SELECT count(*) FROM projects) * 10 + (SELECT count(*) FROM project_chats)`); err != nil || n != 10 {
		t.Errorf("left are %d, %v", n, err)
	}
}

func TestAMovedChatKeepsItsProject(t *testing.T) {
	w := open(t)
	p, _ := w.create(7, "Garden")
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Choose(ctx, tx, at("1"), p.ID) })
	w.must(func(ctx context.Context, tx *store.Tx) error { return w.Move(ctx, tx, "b", "1", "2") })
	if got, ok, err := w.Active(t.Context(), w.db, at("2"), 7); err != nil || !ok || got.ID != p.ID {
		t.Errorf("the new chat has %+v, %v", got, err)
	}
}

func TestANameIsOneLineOfAtMost80Characters(t *testing.T) {
	for _, bad := range []string{"", " ", "a\nb", strings.Repeat("x", 81)} {
		if _, err := project.Name(bad); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name, err := project.Name(rapid.String().Draw(t, "name"))
		if err != nil {
			return
		}
		if again, err := project.Name(name); err != nil || again != name {
			t.Fatalf("%q became %q, %v", name, again, err)
		}
	})
}
