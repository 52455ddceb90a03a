package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// Bounds of what a user may write into a session.
const (
	maxTags     = 64       // of one session
	maxTag      = 128      // bytes
	maxContext  = 1024     // bytes of one path
	MaxMetadata = 16 << 10 // bytes, all together
	MaxName     = 200      // bytes of a module, model or agent
)

// A Change is what a user wants of a session; nil and empty fields leave it
// as it is. Where tags or contexts are set and added to, setting comes first.
type Change struct {
	Title            *string // as Title makes one of it; from now on a user's
	Archived         *bool
	Module           *string
	WorkingDirectory *string // relative to the vault or absolute; "" is the vault
	Model            *string // that is to answer from the next turn on; "" is the chat's, the agent's or the default
	AgentType        *string
	Workspace        *string // its slug; "" is none
	Project          *string // the id of one of the session's user, which the caller has checked; "" is none
	// Metadata overrides the present values, name by name, at the first level and
	// inside "permissions"; null takes a name out. "permissions", AgentType and
	// Workspace are core.Denied without Owner, "original_id" is the importer's.
	Metadata    map[string]json.RawMessage
	SetTags     *[]string
	AddTags     []string
	DropTags    []string
	SetContexts *[]string
	AddContexts []string
	DropContext []string

	If    []string   // the Versions that it is meant for; none is any
	Trust core.Trust // of who asks: a directory outside the vault needs full
	Owner bool       // the gateway's owner asks
}

// ErrChanged is Update's answer to a Change for a version that is no more. Its
// kind is core.Conflict.
var ErrChanged = core.Errorf(core.Conflict, "the session has changed since you read it")

// Match returns ErrChanged if the session is in none of versions. Without versions it
// returns nil.
func (s *Store) Match(ctx context.Context, q store.Queryer, id string, versions []string) error {
	if len(versions) == 0 {
		return nil
	}
	d, err := s.Detail(ctx, q, id)
	if err == nil && !slices.Contains(versions, d.Version()) {
		return ErrChanged
	}
	return err
}

// Update changes a session and returns the result. The names of changed fields go into
// an audit row; without changes nothing is written.
// core.NotFound without the session, core.Invalid for what cannot be kept,
// core.Denied for a directory that is out of reach.
func (s *Store) Update(ctx context.Context, tx *store.Tx, id string, c Change, by core.Actor) (Detail, error) {
	was, err := s.Detail(ctx, tx, id)
	if err != nil {
		return Detail{}, err
	}
	if len(c.If) > 0 && !slices.Contains(c.If, was.Version()) {
		return Detail{}, ErrChanged
	}
	now, err := s.changed(was, c)
	if err != nil {
		return Detail{}, err
	}
	fields := differing(&was, &now)
	if len(fields) == 0 {
		return was, nil
	}
	var metadata any
	if len(now.Metadata) > 0 {
		metadata = string(now.Metadata)
	}
	archived := 0
	if now.Archived {
		archived = 1
	}
	_, err = tx.Exec(ctx, `UPDATE sessions SET title = $2, title_source = $3, archived = $4, module = $5,
			working_directory = $6, chosen_model = $7, agent_type = $8, metadata = $9, workspace = nullif($10, ''), project_id = nullif($11, '') WHERE id = $1`,
		id, now.Title, now.TitleSource, archived, now.Module, now.WorkingDirectory, now.ChosenModel, now.AgentType, metadata, now.Workspace, now.Project)
	if err != nil {
		return Detail{}, fmt.Errorf("update session: %w", err)
	}
	if err := keepList(ctx, tx, id, tagRows, was.Tags, now.Tags); err != nil {
		return Detail{}, err
	}
	if err := keepList(ctx, tx, id, contextRows, was.Contexts, now.Contexts); err != nil {
		return Detail{}, err
	}
	if slices.Contains(fields, "title") || slices.Contains(fields, "tags") {
		if err := s.indexHead(ctx, tx, id); err != nil {
			return Detail{}, err
		}
	}
	if err := store.Audit(ctx, tx, by, "session.update", id, map[string]any{"fields": fields}); err != nil {
		return Detail{}, fmt.Errorf("update session: %w", err)
	}
	if err := s.keepCurrent(ctx, tx, id); err != nil {
		return Detail{}, err
	}
	return s.Detail(ctx, tx, id) // as others read it, its version too
}

// changed returns was as c wants it, and checked.
func (s *Store) changed(was Detail, c Change) (now Detail, err error) {
	now = was
	if !c.Owner && (c.AgentType != nil && *c.AgentType != was.AgentType || c.Workspace != nil && *c.Workspace != was.Workspace || slices.ContainsFunc(slices.Collect(maps.Keys(c.Metadata)), isPermissions)) {
		return now, core.Errorf(core.Denied, "only the owner decides who answers in a session, in which workspace, and what is permitted in it")
	}
	if c.Title != nil {
		now.Title, now.TitleSource = Title(*c.Title), TitleUser
	}
	if c.Archived != nil {
		now.Archived = *c.Archived
	}
	for _, f := range []struct {
		name string
		from *string
		to   *string
	}{{"module", c.Module, &now.Module}, {"model", c.Model, &now.ChosenModel}, {"agent_type", c.AgentType, &now.AgentType}, {"workspace", c.Workspace, &now.Workspace}, {"project_id", c.Project, &now.Project}} {
		if f.from == nil {
			continue
		}
		if transcript.OneLine(*f.from) != *f.from || len(*f.from) > MaxName || *f.from == "" && f.name != "model" && f.name != "workspace" && f.name != "project_id" {
			return now, core.Errorf(core.Invalid, "%s must be a name of at most %d bytes", f.name, MaxName)
		}
		*f.to = *f.from
	}
	if c.WorkingDirectory != nil {
		if now.WorkingDirectory, err = s.movedTo(*c.WorkingDirectory, min(c.Trust, was.TrustLevel)); err != nil {
			return now, err
		}
	}
	if now.Metadata, err = merged(was.Metadata, c.Metadata); err != nil {
		return now, err
	}
	if now.Tags, err = edited(was.Tags, c.SetTags, c.AddTags, c.DropTags, maxTags, tagOf); err != nil {
		return now, err
	}
	slices.Sort(now.Tags)
	now.Contexts, err = edited(was.Contexts, c.SetContexts, c.AddContexts, c.DropContext, maxContexts, contextOf)
	return now, err
}

// movedTo returns the directory that a session is to work in from now on. Anyone who is
// sandboxed chooses none, and so does not learn which there are.
func (s *Store) movedTo(dir string, trust core.Trust) (string, error) {
	if trust < core.Vault {
		return "", core.Errorf(core.Denied, "at the trust level sandboxed the working directory is not yours to choose")
	}
	if dir == "" {
		return "", nil
	}
	kept, err := s.directory(Ref{Trust: trust, Options: &core.Options{WorkingDirectory: dir}})
	if err != nil || kept != "" {
		return kept, err
	}
	if d, err := s.vault.Dir(dir); err != nil || d.Rel != "." {
		return "", core.Errorf(core.Invalid, "there is no such folder: working_directory")
	}
	return "", nil
}

// merged returns the metadata was, overridden by over.
func merged(was json.RawMessage, over map[string]json.RawMessage) (json.RawMessage, error) {
	if len(over) == 0 {
		return was, nil
	}
	all := map[string]json.RawMessage{}
	if len(was) > 0 && json.Unmarshal(was, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		value := over[name]
		switch {
		case strings.EqualFold(name, "original_id"), isPermissions(name) && name != "permissions":
			return nil, core.Errorf(core.Invalid, "metadata.%s is not for writing", core.CutRunes(name, 64))
		case bytes.Equal(bytes.TrimSpace(value), []byte("null")):
			delete(all, name)
		case name == "permissions":
			p, err := mergedPermissions(all[name], value)
			if err != nil {
				return nil, err
			}
			if all[name] = p; len(p) == 0 {
				delete(all, name)
			}
		default:
			all[name] = value
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "metadata must be an object")
	}
	if len(b) > MaxMetadata {
		return nil, core.Errorf(core.TooLarge, "metadata is over %d bytes", MaxMetadata)
	}
	return b, nil
}

// isPermissions reports whether readers would take name for "permissions":
// JSON is read without regard to case.
func isPermissions(name string) bool { return strings.EqualFold(name, "permissions") }

// mergedPermissions refuses permissions that could not be decoded, because they would
// close the session.
func mergedPermissions(was, over json.RawMessage) (json.RawMessage, error) {
	var given struct {
		Read, Write []string
		Bash        any
		TrustMode   *bool `json:"trust_mode"`
		TrustAuto   *bool `json:"trust_auto"`
	}
	bad := core.Errorf(core.Invalid, "metadata.permissions holds read and write (lists of patterns), bash (a list of commands, true or false), trust_mode and trust_auto (true or false)")
	if json.Unmarshal(over, &given) != nil {
		return nil, bad
	}
	switch bash := given.Bash.(type) {
	case nil, bool:
	case []any:
		if slices.ContainsFunc(bash, func(v any) bool { _, ok := v.(string); return !ok }) {
			return nil, bad
		}
	default:
		return nil, bad
	}
	return merged(was, fieldsOf(over))
}

func fieldsOf(raw json.RawMessage) (m map[string]json.RawMessage) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// edited returns a list after setting, adding and taking out, at most most long.
func edited(was []string, set *[]string, add, drop []string, most int, check func(string) (string, error)) ([]string, error) {
	now := slices.Clone(was)
	if set != nil {
		now, add = []string{}, slices.Concat(*set, add)
	}
	for _, v := range add {
		v, err := check(v)
		if err != nil {
			return nil, err
		}
		if slices.Contains(now, v) {
			continue
		}
		if now = append(now, v); len(now) > most {
			return nil, core.Errorf(core.Invalid, "at most %d of them per session", most)
		}
	}
	for _, v := range drop {
		v, err := check(v)
		if err != nil {
			return nil, err
		}
		now = slices.DeleteFunc(now, func(have string) bool { return have == v })
	}
	return now, nil
}

// tagOf returns a tag as it is kept: lower case, one line, at most 128 bytes.
func tagOf(given string) (string, error) {
	if len(given) > maxTag {
		return "", core.Errorf(core.Invalid, "a tag has at most %d bytes", maxTag)
	}
	tag := strings.ToLower(transcript.OneLine(given))
	if tag == "" || len(tag) > maxTag {
		return "", core.Errorf(core.Invalid, "a tag has 1 to %d bytes", maxTag)
	}
	return tag, nil
}

// contextOf returns a path inside the vault as it is kept: relative, with slashes.
// Whether it exists is not asked, so that no one learns it from the answer.
func contextOf(given string) (string, error) {
	p := path.Clean(filepath.ToSlash(given))
	if given == "" || len(given) > maxContext || p == "." || !filepath.IsLocal(p) || transcript.OneLine(p) != p {
		return "", core.Errorf(core.Invalid, "a context is the path of a folder or file in the vault, relative to it")
	}
	return p, nil
}

// differing names what is another in now.
func differing(was, now *Detail) (fields []string) {
	for _, f := range []struct {
		name string
		same bool
	}{
		{"title", was.Title == now.Title && was.TitleSource == now.TitleSource}, {"archived", was.Archived == now.Archived},
		{"module", was.Module == now.Module}, {"working_directory", was.WorkingDirectory == now.WorkingDirectory},
		{"model", was.ChosenModel == now.ChosenModel}, {"agent_type", was.AgentType == now.AgentType}, {"workspace", was.Workspace == now.Workspace}, {"project_id", was.Project == now.Project},
		{"metadata", bytes.Equal(was.Metadata, now.Metadata)},
		{"tags", slices.Equal(was.Tags, now.Tags)}, {"contexts", slices.Equal(was.Contexts, now.Contexts)},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// rowsOf are the statements that keep one list of a session.
type rowsOf struct{ add, drop string }

var (
	tagRows = rowsOf{`INSERT INTO session_tags (session_id, tag, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		`DELETE FROM session_tags WHERE session_id = $1 AND tag = $2`}
	contextRows = rowsOf{`INSERT INTO session_contexts (session_id, folder_path, added_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		`DELETE FROM session_contexts WHERE session_id = $1 AND folder_path = $2`}
)

func keepList(ctx context.Context, tx *store.Tx, id string, rows rowsOf, was, now []string) error {
	for _, v := range was {
		if slices.Contains(now, v) {
			continue
		}
		if _, err := tx.Exec(ctx, rows.drop, id, v); err != nil {
			return fmt.Errorf("lists of session: %w", err)
		}
	}
	for i, v := range now {
		if slices.Contains(was, v) {
			continue
		}
		if _, err := tx.Exec(ctx, rows.add, id, v, core.Stamp(tx.Time().Add(time.Duration(i)*time.Microsecond))); err != nil {
			return fmt.Errorf("lists of session: %w", err)
		}
	}
	return nil
}

// Delete deletes a session: its row with tags, contexts and aliases, and the
// tie to its chat, whose next message begins another. After the commit its
// transcript goes to the trash and its sidecar away; what cannot be moved is
// logged. The caller has made sure that no run writes to it. core.NotFound
// without the session.
func (s *Store) Delete(ctx context.Context, tx *store.Tx, id string, by core.Actor) error {
	if _, err := tx.Exec(ctx, `UPDATE chats SET session_id = NULL, updated_at = $2 WHERE session_id = $1`, id, core.Stamp(tx.Time())); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO deleted_imports (user_id, source, original_id, at)
		SELECT user_id, source, original_id, CAST($2 AS TEXT) FROM sessions WHERE id = $1 AND original_id IS NOT NULL ON CONFLICT DO NOTHING`, id, core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	if err := s.Remove(ctx, tx, id); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	n, err := tx.Exec(ctx, `DELETE FROM sessions WHERE id = $1`, id)
	if err == nil && n == 0 {
		return notFound()
	}
	if err == nil {
		err = store.Audit(ctx, tx, by, "session.delete", id, nil)
	}
	if err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	tx.OnCommit(func() {
		s.Uncache(id)
		if err := s.Discard(id); err != nil {
			s.log.Error("a deleted session's files are still in the vault", "session", id, "error", err)
		}
	})
	return nil
}
