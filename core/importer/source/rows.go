package source

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
)

// A row is what a vault's database knows of a session.
type row struct {
	title, source     string
	from              string // the session that it goes on from
	metadata          string
	created, accessed string
	archived          bool
	others            bool // it is not the owner's alone
	trust             core.Trust
	tags              []string
}

// tag adds a tag, if it is valid and there is room.
func (r *row) tag(tag string) {
	if len(r.tags) < 32 && strings.TrimSpace(tag) != "" && len(tag) <= 64 {
		r.tags = append(r.tags, tag)
	}
}

// maxRows bounds the sessions that are read of a vault's database.
const maxRows = 200_000

// describe adds what the row knows to c.
func (r *row) describe(c *foreign.Transcript) {
	c.Title, c.Archived, c.Tags = r.title, r.archived, r.tags
	c.From, c.Others, c.Trust = r.from, r.others, r.trust
	c.Created, c.Updated = stamp(r.created), stamp(r.accessed)
	switch r.source {
	case "claude", "chatgpt", "parachute":
		c.Source = r.source
	}
	var m struct {
		Original string `json:"original_id"`
	}
	if json.Unmarshal([]byte(r.metadata), &m) == nil && len(m.Original) <= 200 {
		c.Original = m.Original
	}
}

// stamp reads a time as the original system and the gateway write it; without a zone it is UTC.
func stamp(text string) time.Time {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.999999"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// readRows reads the sessions of the database of another vault. Nothing is written to it.
func readRows(ctx context.Context, name string) (map[string]row, error) {
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(name)}).String()+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	unreadable := func(err error) error {
		return core.Errorf(core.Invalid, "the vault's database cannot be read: %v", err)
	}
	var ours int // columns that the gateway added
	var links, trusts bool
	if err := db.QueryRowContext(ctx, `SELECT coalesce(sum(name IN ('user_id', 'scope')), 0), coalesce(max(name = 'continued_from'), 0), coalesce(max(name = 'trust_level'), 0)
		FROM pragma_table_info('sessions')`).Scan(&ours, &links, &trusts); err != nil {
		return nil, unreadable(err)
	}
	others := [...]string{`0`, `coalesce(user_id, 0) NOT IN (0, 1)`, `coalesce(user_id, 0) NOT IN (0, 1) OR coalesce(scope, '') = 'group'`}[ours]
	from, trust := `''`, `''` // an older layout
	if links {
		from = `CAST(coalesce(continued_from, '') AS TEXT)`
	}
	if trusts {
		trust = `CAST(coalesce(trust_level, '') AS TEXT)`
	}
	rows, err := db.QueryContext(ctx, `SELECT CAST(id AS TEXT), CAST(coalesce(title, '') AS TEXT), CAST(coalesce(source, '') AS TEXT), CAST(coalesce(created_at, '') AS TEXT),
		CAST(coalesce(last_accessed, '') AS TEXT), CAST(coalesce(metadata, '') AS TEXT), coalesce(archived, 0) = 1, `+others+`, `+from+`, `+trust+` FROM sessions LIMIT ?`, maxRows)
	if err != nil {
		return nil, unreadable(err)
	}
	defer rows.Close()
	all := map[string]row{}
	for rows.Next() {
		var id string
		var r row
		if err := rows.Scan(&id, &r.title, &r.source, &r.created, &r.accessed, &r.metadata, &r.archived, &r.others, &r.from, &r.trust); err != nil {
			return nil, unreadable(err)
		}
		all[id] = r
	}
	if err := rows.Err(); err != nil {
		return nil, unreadable(err)
	}
	for id, r := range all { // a conversation goes on from one of this vault, and none from or into one of others
		if before, ok := all[r.from]; r.from != "" && (!ok || before.others || r.others || r.from == id) {
			r.from = ""
			all[id] = r
		}
	}
	tags, err := db.QueryContext(ctx, `SELECT CAST(session_id AS TEXT), CAST(tag AS TEXT) FROM session_tags ORDER BY session_id, tag LIMIT ?`, maxRows)
	if err != nil {
		return all, nil // an older layout
	}
	defer tags.Close()
	for tags.Next() {
		var id, tag string
		if err := tags.Scan(&id, &tag); err != nil {
			return nil, unreadable(err)
		}
		if r, ok := all[id]; ok {
			r.tag(tag)
			all[id] = r
		}
	}
	return all, tags.Err()
}
