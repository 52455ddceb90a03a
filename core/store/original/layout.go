package original

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gatehouse/core"
)

// The original system's layouts that are taken over, by the numbers of its history.
const (
	oldestOriginal = 9
	newestOriginal = 12
)

// An originalTable is what the original system's versions 9 to 12 have in a
// table: no column may be there that is in neither list. A nil must means that
// the columns are unknown and are kept as they are.
type originalTable struct{ must, may []string }

// originalTables by name. Only sessions must be there: the others came and went.
var originalTables = map[string]originalTable{
	"sessions": {must: []string{"id", "title", "module", "source", "working_directory", "vault_root", "model", "message_count",
		"archived", "created_at", "last_accessed", "continued_from", "metadata"},
		may: []string{"agent_type", "trust_level", "linked_bot_platform", "linked_bot_chat_id", "linked_bot_chat_type"}},
	"session_tags":     {must: []string{"session_id", "tag", "created_at"}},
	"session_contexts": {must: []string{"session_id", "folder_path", "added_at"}},
	"chunks":           {must: []string{"id", "content_id", "content_type", "field", "chunk_index", "chunk_text", "embedding", "created_at"}},
	"index_manifest":   {must: []string{"content_id", "content_type", "content_hash", "title", "indexed_at", "chunk_count", "source_path", "metadata"}},
	"metadata":         {must: []string{"key", "value", "updated_at"}},
	"pairing_requests": {must: []string{"id", "platform", "platform_user_id", "platform_user_display", "platform_chat_id", "status",
		"approved_trust_level", "created_at", "resolved_at", "resolved_by"}},
	"schema_version":   {must: []string{"version", "applied_at"}},
	"curator_sessions": {},
	"curator_queue":    {},
	"context_watches":  {},
	"mcp_oauth_tokens": {},
}

// A layout is the tables, columns and ledger of a database file.
type layout struct {
	tables map[string][]string // columns by table, both in lower case
	others []string            // views and triggers: neither system has any
	ledger int64               // the newest number in schema_version; 0 without one
}

// rows is the reading half of *sql.DB and *sql.Conn.
type rows interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func readLayout(ctx context.Context, db rows) (layout, error) {
	l := layout{tables: map[string][]string{}}
	columns, err := pairs(ctx, db, `SELECT m.name, coalesce(c.name, '') FROM sqlite_master AS m LEFT JOIN pragma_table_xinfo(m.name) AS c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.cid`)
	if err != nil {
		return l, err
	}
	for _, c := range columns {
		t := strings.ToLower(c[0])
		if l.tables[t] == nil {
			l.tables[t] = []string{}
		}
		if c[1] != "" {
			l.tables[t] = append(l.tables[t], strings.ToLower(c[1]))
		}
	}
	others, err := pairs(ctx, db, `SELECT type, name FROM sqlite_master
		WHERE type IN ('view', 'trigger') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return l, err
	}
	for _, n := range others {
		l.others = append(l.others, n[0]+" "+n[1])
	}
	if !slices.Contains(l.tables["schema_version"], "version") {
		return l, nil
	}
	newest, err := pairs(ctx, db, `SELECT '', coalesce(max(CAST(version AS INTEGER)), 0) FROM schema_version`)
	if err == nil {
		_, err = fmt.Sscan(newest[0][1], &l.ledger)
	}
	return l, err
}

func pairs(ctx context.Context, db rows, query string, args ...any) (out [][2]string, err error) {
	r, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for r.Next() {
		var p [2]string
		if err := r.Scan(&p[0], &p[1]); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, r.Err()
}

func (l layout) has(table string) bool { return l.tables[table] != nil }

// original reports whether this is a database of the original system that is
// taken over. What is neither that nor ours nor empty is an Invalid error that
// names what is not known.
func (l layout) original(t Target) (bool, error) {
	switch {
	case l.ledger > t.Newest:
		return false, core.Errorf(core.Invalid, "the database is newer (version %d) than this program (version %d): use the newer program, or restore the copy that was kept next to the database before its migration", l.ledger, t.Newest)
	case l.ledger >= t.Version, len(l.tables) == 0 && len(l.others) == 0:
		return false, nil
	case !l.has("sessions") && !l.has("schema_version"):
		return false, core.Errorf(core.Invalid, "the file is a database of something else (%s): set GATEHOUSE_DATABASE_URL to another path",
			listed("tables", slices.Sorted(maps.Keys(l.tables))))
	case l.ledger > newestOriginal:
		return false, core.Errorf(core.Invalid, "the database has version %d of the original system's layout, newer than those that gatehouse takes over (%d to %d)%s: set GATEHOUSE_DATABASE_URL to another path",
			l.ledger, oldestOriginal, newestOriginal, prefixed("; ", l.strange()))
	}
	if strange := l.strange(); strange != "" {
		return false, core.Errorf(core.Invalid, "the database looks like one of the original system, but its layout is unknown; it takes over versions %d to %d (%s): set GATEHOUSE_DATABASE_URL to another path",
			oldestOriginal, newestOriginal, strange)
	}
	return true, nil
}

// strange names what keeps l from being one of the known layouts; "" when nothing does.
func (l layout) strange() string {
	var tables, columns, missing []string
	for _, t := range slices.Sorted(maps.Keys(l.tables)) {
		known, ok := originalTables[t]
		if !ok {
			tables = append(tables, t)
			continue
		}
		for _, c := range l.tables[t] {
			if known.must != nil && !slices.Contains(known.must, c) && !slices.Contains(known.may, c) {
				columns = append(columns, t+"."+c)
			}
		}
		for _, c := range known.must {
			if !slices.Contains(l.tables[t], c) {
				missing = append(missing, t+"."+c)
			}
		}
	}
	if !l.has("sessions") {
		missing = append(missing, "sessions")
	}
	parts := []string{listed("unknown columns", columns), listed("unknown tables", tables), listed("unknown", l.others), listed("missing", missing)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// maxListed bounds the names in a refusal.
const maxListed = 12

// listed returns "what a, b, c". The names are another program's: unusual ones are
// quoted.
func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	shown := make([]string, 0, maxListed)
	for _, n := range names[:min(len(names), maxListed)] {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789_. ") != "" {
			n = fmt.Sprintf("%q", core.CutRunes(n, 60))
		}
		shown = append(shown, core.CutRunes(n, 120))
	}
	if len(names) > maxListed {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-maxListed))
	}
	return what + " " + strings.Join(shown, ", ")
}

func prefixed(by, s string) string {
	if s == "" {
		return ""
	}
	return by + s
}

// hasColumn reports whether table has the column.
func (l layout) hasColumn(table, column string) bool { return slices.Contains(l.tables[table], column) }

// bound reports whether the sessions name the chats of platforms that they belong to.
func (l layout) bound() bool {
	return l.hasColumn("sessions", "linked_bot_platform") && l.hasColumn("sessions", "linked_bot_chat_id") && l.hasColumn("sessions", "linked_bot_chat_type")
}

// version returns the number of the original system's layout, from its columns:
// version 9 has no ledger, and ledgers of later ones have old numbers.
func (l layout) version() int64 {
	switch {
	case l.has("pairing_requests"):
		return 12
	case l.hasColumn("sessions", "trust_level"):
		return 11
	case !l.hasColumn("sessions", "agent_type"):
		return 9
	case l.has("curator_sessions") || l.has("curator_queue"):
		return 10
	}
	return 11
}
