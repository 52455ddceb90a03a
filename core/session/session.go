// Package session keeps the rows of conversations: metadata, the chat that each is bound
// to, and the search index. Messages are in the vault (package transcript). Methods that
// take a *store.Tx work inside the caller's transaction and add no commit.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/index"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A Session is one row of the table sessions.
type Session = transcript.Session

// Options for New.
type Options struct {
	DB      *store.DB
	Vault   *vault.Vault
	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Version string       // written into transcript lines; "" is "gatehouse"

	// ParaID returns the para-ID of a session, which it mints for a new one. nil:
	// sessions get none.
	ParaID func(ctx context.Context, tx *store.Tx, session string, user int64) (string, error)

	// DropVectors removes what is stored of the meaning of chunks that are deleted. nil:
	// there is none.
	DropVectors func(ctx context.Context, tx *store.Tx, chunks []int64) error

	// Project returns the active project of a chat, which is its user's, for a new session;
	// "" for none. nil: there are none.
	Project func(ctx context.Context, tx *store.Tx, at core.Address, user int64) (string, error)

	// Pause is called between the transactions of Fill. nil: it does not pause.
	Pause func(ctx context.Context)

	// Projects is a directory like ~/.claude/projects where transcripts of the
	// operator's sessions are looked for that the vault does not hold. It is
	// only read. "": none.
	Projects string
}

// A Store finds and keeps sessions. It is safe for concurrent use; Close it.
type Store struct {
	*transcript.Files // their messages
	*index.Index      // the words of their messages, titles and tags

	db    *store.DB
	vault *vault.Vault
	clock core.Clock
	log   *slog.Logger

	paraID  func(ctx context.Context, tx *store.Tx, session string, user int64) (string, error)
	project func(ctx context.Context, tx *store.Tx, at core.Address, user int64) (string, error)

	sidecars *sidecar.Files

	mu     sync.Mutex
	opened map[string]time.Time // since Touched; bounded by maxTouched
}

// New returns a Store over db and vault.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		Files: transcript.New(transcript.Options{Vault: o.Vault, Clock: o.Clock, Log: o.Log, Version: o.Version, Projects: o.Projects}),
		db:    o.DB, vault: o.Vault, clock: o.Clock, log: o.Log, paraID: o.ParaID, project: o.Project, sidecars: sidecar.New(o.Vault, o.Log), opened: map[string]time.Time{},
	}
	s.Index = index.New(index.Options{DB: o.DB, Vault: o.Vault, Files: s.Files, Log: o.Log, Sessions: s, DropVectors: o.DropVectors, Pause: o.Pause})
	return s
}

// Close waits until the sidecars of committed changes are written.
func (s *Store) Close() error { return s.sidecars.Close() }

// columns fill a row; the table is called s.
const columns = `s.id, coalesce(s.title, '') AS title, s.module, s.source,
	coalesce(s.working_directory, '') AS working_directory, coalesce(s.vault_root, '') AS vault_root,
	coalesce(s.model, '') AS model, s.chosen_model, s.message_count, s.archived, s.created_at, s.last_accessed,
	coalesce(s.continued_from, '') AS continued_from, coalesce(s.agent_type, '') AS agent_type,
	coalesce(s.metadata, '') AS metadata, s.user_id, s.trust_level, s.title_source,
	coalesce(s.workspace, '') AS workspace, coalesce(s.project_id, '') AS project_id, s.para_id, s.scope`

type row struct {
	ID               string     `db:"id"`
	Title            string     `db:"title"`
	Module           string     `db:"module"`
	Source           string     `db:"source"`
	WorkingDirectory string     `db:"working_directory"`
	VaultRoot        string     `db:"vault_root"`
	Model            string     `db:"model"`
	ChosenModel      string     `db:"chosen_model"`
	MessageCount     int        `db:"message_count"`
	Archived         bool       `db:"archived"`
	CreatedAt        string     `db:"created_at"`
	LastAccessed     string     `db:"last_accessed"`
	ContinuedFrom    string     `db:"continued_from"`
	AgentType        string     `db:"agent_type"`
	Metadata         string     `db:"metadata"`
	User             int64      `db:"user_id"`
	TrustLevel       core.Trust `db:"trust_level"`
	TitleSource      string     `db:"title_source"`
	Workspace        string     `db:"workspace"`
	Project          string     `db:"project_id"`
	ParaID           string     `db:"para_id"`
	Scope            core.Scope `db:"scope"`
}

func (r *row) session() (Session, error) {
	created, err := core.ParseStamp(r.CreatedAt)
	accessed, err2 := core.ParseStamp(r.LastAccessed)
	if err = errors.Join(err, err2); err != nil {
		return Session{}, fmt.Errorf("session %s: %w", r.ID, err)
	}
	s := Session{
		ID: r.ID, Title: r.Title, Module: r.Module, Source: r.Source, WorkingDirectory: r.WorkingDirectory,
		VaultRoot: r.VaultRoot, Model: r.Model, ChosenModel: r.ChosenModel, MessageCount: r.MessageCount, Archived: r.Archived,
		CreatedAt: created, LastAccessed: accessed, ContinuedFrom: r.ContinuedFrom, AgentType: r.AgentType,
		User: r.User, TrustLevel: r.TrustLevel, TitleSource: r.TitleSource, Workspace: r.Workspace, Project: r.Project, ParaID: r.ParaID, Scope: r.Scope,
	}
	if json.Valid([]byte(r.Metadata)) {
		s.Metadata = json.RawMessage(r.Metadata)
	}
	return s, nil
}

// notFound returns the same error for a missing session and for another user's.
func notFound() error { return core.Errorf(core.NotFound, "no such session") }

// ByID returns the session id; core.NotFound without one. Whether the asker may see
// it is the caller's question: compare Session.User.
func (s *Store) ByID(ctx context.Context, q store.Queryer, id string) (Session, error) {
	var r row
	err := q.Get(ctx, &r, `SELECT `+columns+` FROM sessions s WHERE s.id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return Session{}, notFound()
	}
	if err != nil {
		return Session{}, fmt.Errorf("session by id: %w", err)
	}
	return r.session()
}

// Bound returns the chat that the session id is bound to, and whether there is one.
func (s *Store) Bound(ctx context.Context, q store.Queryer, id string) (core.Address, bool, error) {
	var c struct{ Bot, Chat, Thread, Place string }
	err := q.Get(ctx, &c, `SELECT bot, chat, thread, place FROM chats WHERE session_id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return core.Address{}, false, nil
	}
	if err != nil {
		return core.Address{}, false, fmt.Errorf("chat of session: %w", err)
	}
	return core.Address{Bot: c.Bot, Chat: c.Chat, Thread: c.Thread, Place: c.Place}, true, nil
}

// Lane returns the key of the lane for turns of addr: "<bot>|<chat>", and for an API
// address (its Chat is a session's id) the lane of the chat that the session is bound
// to, or "session:<id>".
func (s *Store) Lane(ctx context.Context, tx *store.Tx, addr core.Address) (string, error) {
	if !core.OfSession(addr.Bot) {
		return core.LaneOf(addr), nil
	}
	chat, ok, err := s.Bound(ctx, tx, addr.Chat)
	if err != nil {
		return "", err
	}
	if ok {
		return core.LaneOf(chat), nil
	}
	return core.LaneOf(addr), nil
}

// BusyMode returns what the chat is set to, "collect" or "queue"; "" is the setting's.
func (s *Store) BusyMode(ctx context.Context, tx *store.Tx, addr core.Address) (string, error) {
	mode, err := store.Recall[string](ctx, tx, `SELECT busy_mode FROM chats WHERE bot = $1 AND chat = $2`, addr.Bot, addr.Chat)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return "", fmt.Errorf("busy mode: %w", err)
	}
	return mode, nil
}
