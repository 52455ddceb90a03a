package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A personExport is everything that tables hold of a person.
type personExport struct {
	Sessions []string        `json:"sessions"` // theirs, oldest first
	Rows     json.RawMessage `json:"rows"`     // what else is known of them
}

// all writes what is known of a person into a new folder: person.json, a
// Markdown file for each conversation, and what lies in their folder.
func (c *exportCmd) all(p *process) error {
	if c.Session != "" {
		return core.Errorf(core.Invalid, "name a session, or a person by --user, not both")
	}
	if c.Output == "" {
		return core.Errorf(core.Invalid, "say where to: -o FOLDER, which must not exist yet")
	}
	q, err := newOffice(p)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	res, err := q.ask("export/person", order{Ref: c.User})
	if err != nil {
		return err
	}
	part := c.Output + ".part"
	if _, err := os.Lstat(c.Output); err == nil {
		return core.Errorf(core.Conflict, "%s is there already", c.Output)
	}
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(filepath.Join(part, "conversations"), 0o700)); err != nil {
		return err
	}
	if err := c.fill(q, part, res.Person); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, c.Output); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "Exported %s and what else is known of this person into %s.\n", counted(len(res.Person.Sessions), "conversation"), c.Output)
	return err
}

// fill writes the files.
func (c *exportCmd) fill(q *office, dir string, person *personExport) error {
	var rows any
	if err := json.Unmarshal(person.Rows, &rows); err != nil {
		return err
	}
	b, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "person.json"), append(b, '\n'), 0o600); err != nil {
		return err
	}
	for _, id := range person.Sessions {
		res, err := q.ask("export", order{Ref: id})
		if core.KindOf(err) == core.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(id) || filepath.Base(id) != id {
			return core.Errorf(core.Invalid, "a session has an id that is no file name")
		}
		if err := os.WriteFile(filepath.Join(dir, "conversations", id+".md"), []byte(res.Text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// maxExportRows bounds the rows of one table in an export, newest first. What is
// cut is named in it.
const maxExportRows = 10_000

// exportTables are what is told of a person besides conversations, by name;
// each statement takes their number and a bound.
var exportTables = []struct{ name, query string }{
	{"identities", `SELECT platform, platform_user_id, display, created_at FROM identities WHERE user_id = $1 LIMIT $2`},
	{"access", `SELECT bot, scope, place, trust_level, expires_at, chat, "by", at FROM access WHERE user_id = $1 LIMIT $2`},
	{"sessions", `SELECT id, title, source, model, message_count, archived, created_at, last_accessed, trust_level FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`},
	{"usage", `SELECT at, session_id, bot, model, input, output, cache_read, cache_write, micro_usd FROM usage WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
	{"runs", `SELECT id, session_id, state, bot, chat, model, started, ended FROM runs WHERE user_id = $1 ORDER BY started DESC LIMIT $2`},
	{"grants", `SELECT session_id, trust, kind, pattern, created_at FROM tool_grants WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`},
	{"api_keys", `SELECT id, label, trust_level, scopes, created_at, last_used_at FROM api_keys WHERE user_id = $1 LIMIT $2`},
	{"files", `SELECT path, session_id, at FROM attachments WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
	{"requests", `SELECT r.platform, r.platform_user_id, r.platform_user_display, r.bot, r.scope, r.place, r.status, r.approved_trust_level, r.created_at, r.resolved_at, r.first_message
		FROM identities i JOIN pairing_requests r ON r.platform = i.platform AND r.platform_user_id = i.platform_user_id WHERE i.user_id = $1 ORDER BY r.created_at DESC LIMIT $2`},
	{"blocks", `SELECT b.platform, b.platform_user_id, b.bot, b.at FROM identities i JOIN blocks b ON b.platform = i.platform AND b.platform_user_id = i.platform_user_id WHERE i.user_id = $1 LIMIT $2`},
	{"questions", `SELECT kind, bot, chat, payload, state, decision, decided_at, created_at FROM asks WHERE asker = $1 OR user_id = $1 ORDER BY created_at DESC LIMIT $2`},
	{"session_names", `SELECT alias, session_id FROM session_aliases WHERE user_id = $1 LIMIT $2`},
	{"budgets", `SELECT period, tokens, micro_usd FROM budgets WHERE scope = 'user' AND id = CAST(CAST($1 AS BIGINT) AS TEXT) LIMIT $2`},
	{"sign_in", `SELECT name, used FROM admin_accounts WHERE user_id = $1 LIMIT $2`},
	{"audit", `SELECT at, via, action, subject FROM audit_events WHERE user_id = $1 ORDER BY at DESC, id DESC LIMIT $2`},
}

// exportPerson is what the tables hold of the person that o.Ref names.
func (a *app) exportPerson(ctx context.Context, o order) (result, error) {
	p, err := a.person(ctx, a.db, o.Ref)
	if err != nil {
		return result{}, err
	}
	rows := map[string]any{"user_id": p.User, "names": p.Names}
	cut := []string{}
	for _, t := range exportTables {
		found, err := store.Rows(ctx, a.db, t.query, p.User, maxExportRows+1)
		if err != nil {
			return result{}, err
		}
		if len(found) > maxExportRows {
			found, cut = found[:maxExportRows], append(cut, t.name)
		}
		rows[t.name] = found
	}
	rows["cut"] = cut
	b, err := json.Marshal(rows)
	return result{Person: &personExport{Sessions: p.Sessions, Rows: b}}, err
}
