package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A finding is what the vault reports of a session.
type finding struct {
	id    string
	name  string   // of its transcript, or else of its sidecar
	side  *sidecar // nil: none that can be read
	count int      // messages of users and the model

	// From the transcript's lines, if the sidecar lacks it.
	title, model, source string
	dir                  string // inside the vault, relative; "" is the vault
	first, last          time.Time
}

// lookAt reads the transcript name, of which the last vault.MaxTail bytes
// count; false for a file that is no session's.
func (s *Store) lookAt(name, id string) (finding, bool) {
	f := finding{id: id, name: name}
	t, messages, err := s.Read(name)
	if err != nil {
		return f, false
	}
	own, first := false, true
	for i := range t.Lines {
		l := &t.Lines[i]
		if l.IsSidechain || l.SessionID != "" && l.SessionID != id {
			continue // a sub-agent's file, or a copy
		}
		own = true
		if first && l.Type == "user" {
			first = false
			f.source, f.dir = sourceOf(l), s.inside(name, l.CWD)
		}
		if at := transcript.LineTime(l); !at.IsZero() {
			if f.first.IsZero() {
				f.first = at
			}
			f.last = at
		}
	}
	if !own {
		return f, false
	}
	if f.last.IsZero() {
		f.first, f.last = t.Info.ModTime(), t.Info.ModTime()
	}
	f.talk(messages)
	if side, ok := s.readSidecar(id); ok {
		f.side = &side
	}
	return f, true
}

// sourceOf returns who wrote a user line: ours carry the run.
func sourceOf(l *vault.Line) string {
	if l.RequestID != "" {
		return "gatehouse"
	}
	return "claude-code"
}

// inside returns the working directory that a line names, relative to the vault;
// "" where it is outside, or the vault has been elsewhere then.
func (s *Store) inside(name, cwd string) string {
	d, err := s.vault.Dir(cwd)
	if err != nil || !d.Inside || d.Rel == "." || path.Base(path.Dir(name)) != vault.ProjectFolder(d.Path) {
		return ""
	}
	return d.Rel
}

// talk takes the title, the model and the count out of the messages.
func (f *finding) talk(messages []transcript.Message) {
	for i := range messages {
		m := &messages[i]
		text := m.Text()
		switch {
		case m.Summary:
		case m.Role == "assistant":
			if m.Model != "" {
				f.model = m.Model
			}
			if text != "" {
				f.count++
			}
		case m.Begins():
			f.count++
			if f.title == "" {
				f.title = Title(text)
			}
		}
	}
}

// readSidecar returns the sidecar of id; false where it is missing or broken.
func (s *Store) readSidecar(id string) (c sidecar, ok bool) {
	const most = 1 << 20 // tags, contexts and metadata at their bounds take a third of it
	f, err := s.vault.Root().Open(sidecar{ID: id}.name())
	if err != nil {
		return c, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > most {
		return c, false
	}
	if json.NewDecoder(f).Decode(&c) != nil || c.ID != id {
		return sidecar{}, false
	}
	return c, true
}

// session returns the row that the vault reports.
func (f *finding) session(s *Store) Session {
	sess := Session{
		ID: f.id, Title: f.title, Module: "chat", Source: f.source, WorkingDirectory: f.dir, VaultRoot: s.vault.Path(), Model: f.model,
		MessageCount: f.count, CreatedAt: f.first, LastAccessed: f.last, AgentType: "vault-agent",
		TrustLevel: core.Sandboxed, TitleSource: TitleDefault,
	}
	c := f.side
	if c == nil {
		return sess
	}
	sess.User, sess.Archived, sess.TrustLevel = c.User, c.Archived, max(core.Sandboxed, c.Trust)
	if c.TitleSource == TitleUser || c.TitleSource == TitleModel || c.Title != "" {
		sess.Title, sess.TitleSource = Title(c.Title), c.TitleSource
	}
	for _, x := range []struct {
		to   *string
		from string
	}{{&sess.Source, c.Source}, {&sess.Module, c.Module}, {&sess.AgentType, c.AgentType}} {
		if transcript.OneLine(x.from) == x.from && x.from != "" && len(x.from) <= maxName {
			*x.to = x.from
		}
	}
	if c.VaultRoot != "" { // a sidecar that knows the directory: "" is the vault then
		sess.WorkingDirectory, sess.VaultRoot = c.WorkingDirectory, c.VaultRoot
	}
	var plain bytes.Buffer // the sidecar's is indented
	if json.Compact(&plain, c.Metadata) == nil && plain.Len() <= maxMetadata {
		sess.Metadata = plain.Bytes()
	}
	sess.ContinuedFrom, sess.Workspace, sess.Project = c.ContinuedFrom, c.Workspace, c.Project
	if at, err := core.ParseStamp(c.CreatedAt); err == nil && !at.IsZero() {
		sess.CreatedAt = at
	}
	if sess.LastAccessed.Before(sess.CreatedAt) {
		sess.LastAccessed = sess.CreatedAt
	}
	return sess
}

// orphan makes sess a session without an owner: visible to the operator only,
// sandboxed, and every tool call in it asks.
func orphan(sess *Session) {
	sess.User, sess.TrustLevel = 0, core.Sandboxed
	if !filepath.IsLocal(sess.WorkingDirectory) {
		sess.WorkingDirectory = ""
	}
	all := fieldsOf(sess.Metadata)
	for name := range all {
		if isPermissions(name) {
			delete(all, name)
		}
	}
	sess.Metadata = nil
	if len(all) > 0 {
		if b, err := json.Marshal(all); err == nil {
			sess.Metadata = b
		}
	}
}

// restore inserts a session with the rows that its sidecar lists. A chat that has a
// conversation keeps it.
func (s *Store) restore(ctx context.Context, tx *store.Tx, sess Session, side *sidecar) error {
	archived, metadata := 0, any(nil)
	if sess.Archived {
		archived = 1
	}
	if len(sess.Metadata) > 0 {
		metadata = string(sess.Metadata)
	}
	switch sess.TitleSource {
	case TitleModel, TitleUser:
	default:
		sess.TitleSource = TitleDefault
	}
	_, err := tx.Exec(ctx, `INSERT INTO sessions (id, title, module, source, working_directory, vault_root, model, message_count, archived,
			created_at, last_accessed, continued_from, agent_type, metadata, user_id, trust_level, title_source, workspace, project_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		sess.ID, sess.Title, sess.Module, sess.Source, sess.WorkingDirectory, sess.VaultRoot, sess.Model, sess.MessageCount, archived,
		core.Stamp(sess.CreatedAt), core.Stamp(sess.LastAccessed), sess.ContinuedFrom, sess.AgentType, metadata, sess.User,
		sess.TrustLevel, sess.TitleSource, sess.Workspace, sess.Project)
	if err != nil || side == nil {
		return err
	}
	if err := keepList(ctx, tx, sess.ID, tagRows, nil, valid(side.Tags, maxTags, tagOf)); err != nil {
		return err
	}
	if err := keepList(ctx, tx, sess.ID, contextRows, nil, valid(side.Contexts, maxContexts, contextOf)); err != nil {
		return err
	}
	return s.rebind(ctx, tx, sess, side)
}

// valid returns the first values of a list that may be kept.
func valid(list []string, most int, check func(string) (string, error)) (out []string) {
	for _, v := range list[:min(most, len(list))] {
		if v, err := check(v); err == nil && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// rebind gives a chat that has no conversation the one that its sidecar reports.
func (s *Store) rebind(ctx context.Context, tx *store.Tx, sess Session, side *sidecar) error {
	to := core.Address{Bot: side.Bot, Chat: side.Chat, Thread: side.Thread, Place: side.Place}
	if sess.User == 0 || to.Bot == "" || to.Chat == "" || to.Bot == core.APIBot {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO chats (bot, chat, thread, place, session_id, kind, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (bot, chat) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at WHERE chats.session_id IS NULL`,
		to.Bot, to.Chat, to.Thread, to.Place, sess.ID, string(to.Scope()), core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("bind chat: %w", err)
	}
	return nil
}
