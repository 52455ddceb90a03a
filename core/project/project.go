// Package project keeps projects: named groups of a user's conversations. A chat may
// have an active one, which its new conversations join.
package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Limits.
const (
	MaxName = 80  // characters
	maxOf   = 200 // of one person
)

// A Project groups conversations.
type Project struct {
	ID      string    `json:"project_id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created_at"`
}

// Options of New. All are required.
type Options struct {
	DB *store.DB
	// Leave takes all sessions out of a project.
	Leave func(ctx context.Context, tx *store.Tx, project string) error
}

// A Store keeps projects. It is safe for concurrent use.
type Store struct{ o Options }

// New returns a Store.
func New(o Options) *Store { return &Store{o} }

type row struct {
	ID      string `db:"project_id"`
	Name    string `db:"name"`
	Created string `db:"created_at"`
}

func (r row) project() Project { return Project{r.ID, r.Name, core.TimeOf(r.Created)} }

// Name returns a name as it is kept, and core.Invalid for what is none.
func Name(given string) (string, error) {
	name := strings.TrimSpace(core.CleanName(given))
	if name == "" || utf8.RuneCountInString(strings.TrimSpace(given)) > MaxName || strings.ContainsAny(given, "\r\n") {
		return "", core.Errorf(core.Invalid, "a project's name has 1 to %d characters, in one line", MaxName)
	}
	return name, nil
}

func key(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }

// List returns a user's projects, by name.
func (s *Store) List(ctx context.Context, user int64) ([]Project, error) {
	var rows []row
	if err := s.o.DB.Select(ctx, &rows, `SELECT project_id, name, created_at FROM projects WHERE user_id = $1 ORDER BY name_key LIMIT $2`, user, maxOf); err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	list := make([]Project, len(rows))
	for i, r := range rows {
		list[i] = r.project()
	}
	return list, nil
}

// get returns what a condition on a user's projects finds; false without one.
func (s *Store) get(ctx context.Context, q store.Queryer, where string, args ...any) (Project, bool, error) {
	var r row
	err := q.Get(ctx, &r, `SELECT p.project_id, p.name, p.created_at FROM projects p `+where, args...)
	if errors.Is(err, store.ErrNoRows) {
		return Project{}, false, nil
	}
	if err != nil {
		return Project{}, false, fmt.Errorf("find project: %w", err)
	}
	return r.project(), true, nil
}

// Find returns a user's project by its id; core.NotFound for another's.
func (s *Store) Find(ctx context.Context, q store.Queryer, user int64, id string) (Project, error) {
	p, ok, err := s.get(ctx, q, `WHERE p.user_id = $1 AND p.project_id = $2`, user, id)
	if err == nil && !ok {
		err = core.Errorf(core.NotFound, "there is no such project")
	}
	return p, err
}

// Named returns a user's project of that name, in any case; false without one.
func (s *Store) Named(ctx context.Context, q store.Queryer, user int64, name string) (Project, bool, error) {
	return s.get(ctx, q, `WHERE p.user_id = $1 AND p.name_key = $2`, user, key(name))
}

// Create is CreateIn in a transaction of its own.
func (s *Store) Create(ctx context.Context, user int64, given string) (p Project, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) { p, err = s.CreateIn(ctx, tx, user, given); return err })
	return p, err
}

// CreateIn makes a project; core.Conflict where the person has one of that name.
func (s *Store) CreateIn(ctx context.Context, tx *store.Tx, user int64, given string) (Project, error) {
	name, err := Name(given)
	if err != nil {
		return Project{}, err
	}
	if _, exists, err := s.Named(ctx, tx, user, name); err != nil || exists {
		return Project{}, errors.Join(err, taken(exists, name))
	}
	var n int
	if err := tx.Get(ctx, &n, `SELECT count(*) FROM projects WHERE user_id = $1`, user); err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	if n >= maxOf {
		return Project{}, core.Errorf(core.TooLarge, "you have %d projects: delete one first", maxOf)
	}
	p := Project{uuid.NewString(), name, tx.Time().UTC()}
	_, err = tx.Exec(ctx, `INSERT INTO projects (project_id, user_id, name, name_key, created_at) VALUES ($1, $2, $3, $4, $5)`, p.ID, user, name, key(name), core.Stamp(p.Created))
	if err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	return p, nil
}

func taken(exists bool, name string) error {
	if !exists {
		return nil
	}
	return core.Errorf(core.Conflict, "you have a project %q already", name)
}

// Rename gives a user's project another name.
func (s *Store) Rename(ctx context.Context, user int64, id, given string) (p Project, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) { p, err = s.rename(ctx, tx, user, id, given); return err })
	return p, err
}

func (s *Store) rename(ctx context.Context, tx *store.Tx, user int64, id, given string) (Project, error) {
	p, err := s.Find(ctx, tx, user, id)
	if err != nil {
		return Project{}, err
	}
	if p.Name, err = Name(given); err != nil {
		return Project{}, err
	}
	other, exists, err := s.Named(ctx, tx, user, p.Name)
	if err != nil || exists && other.ID != id {
		return Project{}, errors.Join(err, taken(exists, p.Name))
	}
	if _, err := tx.Exec(ctx, `UPDATE projects SET name = $1, name_key = $2 WHERE project_id = $3`, p.Name, key(p.Name), id); err != nil {
		return Project{}, fmt.Errorf("rename project: %w", err)
	}
	return p, nil
}

// Delete deletes a user's project. Its conversations stay, and belong to none.
func (s *Store) Delete(ctx context.Context, user int64, id string) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if _, err := s.Find(ctx, tx, user, id); err != nil {
			return err
		}
		return s.drop(ctx, tx, id)
	})
}

func (s *Store) drop(ctx context.Context, tx *store.Tx, id string) error {
	if err := s.o.Leave(ctx, tx, id); err != nil {
		return err
	}
	for _, q := range [...]string{`DELETE FROM project_chats WHERE project_id = $1`, `DELETE FROM projects WHERE project_id = $1`} {
		if _, err := tx.Exec(ctx, q, id); err != nil {
			return fmt.Errorf("delete project: %w", err)
		}
	}
	return nil
}

// Choose makes a project the active one of a chat; "" is none.
func (s *Store) Choose(ctx context.Context, tx *store.Tx, at core.Address, id string) error {
	q, args := `DELETE FROM project_chats WHERE bot = $1 AND chat = $2`, []any{at.Bot, at.Chat}
	if id != "" {
		q = `INSERT INTO project_chats (bot, chat, project_id) VALUES ($1, $2, $3) ON CONFLICT (bot, chat) DO UPDATE SET project_id = excluded.project_id`
		args = append(args, id)
	}
	if _, err := tx.Exec(ctx, q, args...); err != nil {
		return fmt.Errorf("choose project: %w", err)
	}
	return nil
}

// Active returns the active project of a chat, if it is that person's; false without one.
func (s *Store) Active(ctx context.Context, q store.Queryer, at core.Address, user int64) (Project, bool, error) {
	return s.get(ctx, q, `JOIN project_chats c ON c.project_id = p.project_id WHERE c.bot = $1 AND c.chat = $2 AND p.user_id = $3`, at.Bot, at.Chat, user)
}
