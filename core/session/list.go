package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/core"
)

// Bounds of List.
const (
	defaultLimit = 50
	maxLimit     = 200
	maxOffset    = 100_000
)

// A Filter chooses sessions. Empty fields choose all.
type Filter struct {
	User      int64 // whose; ignored with All
	All       bool  // everybody's: the caller has checked that the asker may
	Module    string
	Source    string
	AgentType string
	Archived  *bool
	Tag       string
	Context   string // a folder or file that it is about, as Contexts says it
	Search    string // in the title or in a tag, case-insensitive for ASCII
	Limit     int    // 0 is 50; at most 200
	Offset    int    // the first generation's paging; at most 100,000
	Cursor    string // from the page before; makes Offset count from there
}

// List is a page of sessions, newest use first, and the cursor of the next
// page, "" at the end. A session that is used while somebody pages moves to
// the front; the others are neither skipped nor repeated. A cursor that List
// did not make is core.Invalid.
func (s *Store) List(ctx context.Context, f Filter) ([]Session, string, error) {
	switch {
	case f.Limit <= 0:
		f.Limit = defaultLimit
	case f.Limit > maxLimit:
		f.Limit = maxLimit
	}
	if f.Offset < 0 || f.Offset > maxOffset {
		return nil, "", core.Errorf(core.Invalid, "offset must be between 0 and %d", maxOffset)
	}
	query, args, err := f.query()
	if err != nil {
		return nil, "", err
	}
	var rows []row
	if err := s.db.Select(ctx, &rows, query, args...); err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	next := ""
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		last := rows[f.Limit-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(last.LastAccessed + " " + last.ID))
	}
	list := make([]Session, 0, len(rows))
	for i := range rows {
		sess, err := rows[i].session()
		if err != nil {
			return nil, "", err
		}
		list = append(list, sess)
	}
	return list, next, nil
}

// query asks for one row more than the limit, to know whether a page follows.
// Columns with few values are compared through coalesce, so that the engine
// walks the newest sessions in order instead of sorting all that an index on
// such a column finds.
func (f *Filter) query() (string, []any, error) {
	var where []string
	var args []any
	and := func(cond string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where = append(where, cond)
	}
	if !f.All {
		and("s.user_id = ?", f.User)
	}
	for _, eq := range [...][2]string{{"module", f.Module}, {"source", f.Source}, {"agent_type", f.AgentType}} {
		if eq[1] != "" {
			and("coalesce(s."+eq[0]+", '') = ?", eq[1]) // see query
		}
	}
	if f.Archived != nil {
		flag := 0
		if *f.Archived {
			flag = 1
		}
		and("coalesce(s.archived, 0) = ?", flag)
	}
	if f.Tag != "" {
		and("s.id IN (SELECT t.session_id FROM session_tags t WHERE t.tag = ?)", strings.ToLower(f.Tag))
	}
	if f.Context != "" {
		about, err := contextOf(f.Context)
		if err != nil {
			return "", nil, err
		}
		and("s.id IN (SELECT c.session_id FROM session_contexts c WHERE c.folder_path = ?)", about)
	}
	if f.Search != "" {
		like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Search)) + "%"
		and(`(lower(s.title) LIKE ? ESCAPE '\' OR EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag LIKE ? ESCAPE '\'))`, like, like)
	}
	if f.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		at, id, ok := strings.Cut(string(raw), " ")
		if _, perr := core.ParseStamp(at); err != nil || perr != nil || !ok || at == "" {
			return "", nil, core.Errorf(core.Invalid, "the cursor is not one of this list's")
		}
		and("(s.last_accessed, s.id) < (?, ?)", at, id)
	}
	query := `SELECT ` + columns + ` FROM sessions s`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1, f.Offset)
	query += fmt.Sprintf(` ORDER BY s.last_accessed DESC, s.id DESC LIMIT $%d OFFSET $%d`, len(args)-1, len(args))
	return query, args, nil
}
