package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

const sidecarDir = ".parachute/sessions"

// maxDirty bounds the sidecars that wait; beyond it one is dropped, and made
// good by Repair at the next start.
const maxDirty = 4096

// A sidecar is what the vault stores of a session in addition to its messages, so that
// the database can be rebuilt from it.
type sidecar struct {
	ID          string     `json:"id"`
	User        int64      `json:"user_id"`
	Trust       core.Trust `json:"trust_level"`
	Title       string     `json:"title"`
	TitleSource string     `json:"title_source"`
	Tags        []string   `json:"tags"`
	Archived    bool       `json:"archived"`
	Bot         string     `json:"bot,omitempty"`
	Chat        string     `json:"chat,omitempty"`
	Thread      string     `json:"thread,omitempty"`
	Place       string     `json:"place,omitempty"`
	Source      string     `json:"source"`
	CreatedAt   string     `json:"created_at"`

	Module           string          `json:"module,omitempty"`
	AgentType        string          `json:"agent_type,omitempty"`
	WorkingDirectory string          `json:"working_directory,omitempty"`
	VaultRoot        string          `json:"vault_root,omitempty"`
	ContinuedFrom    string          `json:"continued_from,omitempty"`
	Workspace        string          `json:"workspace,omitempty"`
	Project          string          `json:"project_id,omitempty"`
	Contexts         []string        `json:"contexts,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
}

func makeSidecar(s Session, chat core.Address, tags, contexts []string) sidecar {
	if tags == nil {
		tags = []string{}
	}
	return sidecar{
		ID: s.ID, User: s.User, Trust: s.TrustLevel, Title: s.Title, TitleSource: s.TitleSource, Tags: tags,
		Archived: s.Archived, Bot: chat.Bot, Chat: chat.Chat, Thread: chat.Thread, Place: chat.Place,
		Source: s.Source, CreatedAt: core.Stamp(s.CreatedAt),
		Module: s.Module, AgentType: s.AgentType, WorkingDirectory: s.WorkingDirectory, VaultRoot: s.VaultRoot,
		ContinuedFrom: s.ContinuedFrom, Workspace: s.Workspace, Project: s.Project, Contexts: contexts, Metadata: s.Metadata,
	}
}

func (c sidecar) name() string { return sidecarDir + "/" + c.ID + ".json" }

func (c sidecar) encode() ([]byte, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	return append(b, '\n'), err
}

// current reads a session's sidecar from the database.
func (s *Store) current(ctx context.Context, q store.Queryer, id string) (sidecar, error) {
	d, err := s.Detail(ctx, q, id)
	if err != nil {
		return sidecar{}, err
	}
	chat, _, err := s.Bound(ctx, q, id)
	if err != nil {
		return sidecar{}, err
	}
	return makeSidecar(d.Session, chat, d.Tags, d.Contexts), nil
}

// keepCurrent has the sidecar of id written as tx sees it, after the commit.
func (s *Store) keepCurrent(ctx context.Context, tx *store.Tx, id string) error {
	c, err := s.current(ctx, tx, id)
	if core.KindOf(err) == core.NotFound {
		return nil
	}
	if err == nil {
		s.keep(tx, c)
	}
	return err
}

// keep has c written after the commit, by a goroutine that lives as long as
// there is something to write: the database's writer never waits for a file.
func (s *Store) keep(tx *store.Tx, c sidecar) {
	tx.OnCommit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.dirty[c.ID]; !ok && len(s.dirty) >= maxDirty {
			return
		}
		s.dirty[c.ID] = c
		if !s.writing {
			s.writing = true
			go s.writeSidecars()
		}
	})
}

func (s *Store) writeSidecars() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.dirty) > 0 {
		for id, c := range s.dirty {
			delete(s.dirty, id)
			s.mu.Unlock()
			if err := s.write(c); err != nil {
				s.log.Warn("sidecar not written; the next start repairs it", "session", id, "error", err)
			}
			s.mu.Lock()
		}
	}
	s.writing = false
	s.idle.Broadcast()
}

func (s *Store) write(c sidecar) error {
	b, err := c.encode()
	if err != nil {
		return err
	}
	return s.vault.WriteFileNoSync(c.name(), b)
}

// maxRepair bounds the sessions whose sidecars Repair checks, newest first.
const maxRepair = 1000

// Repair compares the sidecars of the 1,000 newest sessions with the database,
// writes those that are missing or differ, and returns how many that were. It
// also removes what a crash has left half written. Call it at the start.
func (s *Store) Repair(ctx context.Context) (int, error) {
	if err := s.sweep(); err != nil {
		return 0, err
	}
	all, err := s.newest(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range all {
		if !vault.ValidID(c.ID) {
			continue // an adopted row with an id that is no file name
		}
		want, err := c.encode()
		if err != nil {
			return n, err
		}
		if have, err := s.vault.Root().ReadFile(c.name()); err == nil && bytes.Equal(have, want) {
			continue
		}
		if err := s.write(c); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// newest reads the sidecars of the newest sessions, with three queries.
func (s *Store) newest(ctx context.Context) ([]sidecar, error) {
	var rows []struct {
		row
		Bot    string `db:"bot"`
		Chat   string `db:"chat"`
		Thread string `db:"thread"`
		Place  string `db:"place"`
	}
	err := s.db.Select(ctx, &rows, `SELECT `+columns+`, coalesce(c.bot, '') AS bot, coalesce(c.chat, '') AS chat,
			coalesce(c.thread, '') AS thread, coalesce(c.place, '') AS place
		FROM sessions s LEFT JOIN chats c ON c.session_id = s.id
		ORDER BY s.last_accessed DESC, s.id DESC LIMIT $1`, maxRepair)
	if err != nil {
		return nil, fmt.Errorf("newest sessions: %w", err)
	}
	var tags []struct {
		ID  string `db:"session_id"`
		Tag string `db:"tag"`
	}
	err = s.db.Select(ctx, &tags, `SELECT session_id, tag FROM session_tags WHERE session_id IN (
		SELECT id FROM sessions ORDER BY last_accessed DESC, id DESC LIMIT $1) ORDER BY session_id, tag`, maxRepair)
	if err != nil {
		return nil, fmt.Errorf("tags of newest sessions: %w", err)
	}
	var contexts []struct {
		ID   string `db:"session_id"`
		Path string `db:"folder_path"`
	}
	err = s.db.Select(ctx, &contexts, `SELECT session_id, folder_path FROM session_contexts WHERE session_id IN (
		SELECT id FROM sessions ORDER BY last_accessed DESC, id DESC LIMIT $1) ORDER BY session_id, added_at, folder_path`, maxRepair)
	if err != nil {
		return nil, fmt.Errorf("contexts of newest sessions: %w", err)
	}
	of, about := map[string][]string{}, map[string][]string{}
	for _, t := range tags {
		of[t.ID] = append(of[t.ID], t.Tag)
	}
	for _, c := range contexts {
		about[c.ID] = append(about[c.ID], c.Path)
	}
	all := make([]sidecar, 0, len(rows))
	for _, r := range rows {
		sess, err := r.session()
		if err != nil {
			return nil, err
		}
		all = append(all, makeSidecar(sess, core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place}, of[r.ID], about[r.ID]))
	}
	return all, nil
}

// sweep removes temporary files.
func (s *Store) sweep() error {
	entries, err := fs.ReadDir(s.vault.Root().FS(), sidecarDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read sidecars: %w", err)
	}
	for _, e := range entries {
		if vault.IsTemporary(e.Name()) {
			_ = s.vault.Root().Remove(sidecarDir + "/" + e.Name())
		}
	}
	return nil
}
