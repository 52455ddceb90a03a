package project

import (
	"context"
	"fmt"
	"strings"
)

// An Overview is a project, whose it is, and what belongs to it.
type Overview struct {
	Project
	User     int64
	Sessions int // archived ones too; 0 where they were not counted
	Files    int // that came with messages of its sessions, or were shown in answers
}

// A Filter chooses projects of all persons.
type Filter struct {
	User  int64  // of this person alone; 0: of all
	Text  string // is in the name, in any case
	ID    string // of this one alone; "" is any
	Skip  int    // projects before the first; up to maxSkip
	Limit int    // 1 to maxLimit
	// Counted asks for what belongs to each.
	Counted bool
}

// Limits of a Filter.
const (
	maxLimit = 200
	maxSkip  = 100_000
)

// escaper makes a text one that LIKE compares as it is.
var escaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

const (
	chosen = `(SELECT project_id, name, created_at, user_id FROM projects
		WHERE (CAST($1 AS BIGINT) = 0 OR user_id = $1) AND name_key LIKE $2 ESCAPE '\' AND ($3 = '' OR project_id = $3)
		ORDER BY created_at DESC, project_id LIMIT $4 OFFSET $5) p ORDER BY p.created_at DESC, p.project_id`
	bare    = `SELECT p.*, 0 AS sessions, 0 AS files FROM ` + chosen
	counted = `SELECT p.*, (SELECT count(*) FROM sessions s WHERE s.project_id = p.project_id) AS sessions,
		(SELECT count(*) FROM sessions s JOIN attachments a ON a.session_id = s.id WHERE s.project_id = p.project_id) AS files FROM ` + chosen
)

// All returns the projects that f chooses, the newest first, and whether there are more.
// It is one statement.
func (s *Store) All(ctx context.Context, f Filter) (list []Overview, more bool, err error) {
	var rows []struct {
		row
		User     int64 `db:"user_id"`
		Sessions int   `db:"sessions"`
		Files    int   `db:"files"`
	}
	limit := min(max(1, f.Limit), maxLimit)
	query := bare
	if f.Counted {
		query = counted
	}
	err = s.o.DB.Select(ctx, &rows, query, f.User, "%"+escaper.Replace(key(f.Text))+"%", f.ID, limit+1, min(max(0, f.Skip), maxSkip))
	if err != nil {
		return nil, false, fmt.Errorf("list projects: %w", err)
	}
	more = len(rows) > limit
	for _, r := range rows[:min(len(rows), limit)] {
		list = append(list, Overview{r.project(), r.User, r.Sessions, r.Files})
	}
	return list, more, nil
}
