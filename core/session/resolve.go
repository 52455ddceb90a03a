package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Ref names the user of a turn and where the turn came from.
type Ref struct {
	core.Address
	User      int64
	Admin     bool       // the sender is owner or admin: may continue other users's sessions over the API
	Trust     core.Trust // the turn's; a new session's ceiling
	Options   *core.Options
	PlaceName string // the group's title, hostile text
	Source    string // the platform; "" is "gatehouse", or for API turns that of Options, "api" without one
	AgentType string // "" is "vault-agent"
}

// Resolve finds the turn's session or makes it. In a chat that is the session
// bound to it; a direct chat whose session belongs to someone else gets a new
// one. Over the API it is Options.Session (else Address.Chat): an unknown UUID
// makes a session with that id, another name is the caller's own alias for
// one; another user's session is core.NotFound, a malformed id core.Invalid.
func (s *Store) Resolve(ctx context.Context, tx *store.Tx, ref Ref) (Session, bool, []core.Warning, error) {
	if ref.Trust == core.Stranger {
		return Session{}, false, nil, texts.Error(core.Denied, "fault_not_allowed")
	}
	if ref.Options == nil {
		ref.Options = &core.Options{}
	}
	if core.OfSession(ref.Bot) {
		return s.resolveAPI(ctx, tx, ref)
	}
	sess, isNew, err := s.resolveChat(ctx, tx, ref)
	return sess, isNew, nil, err
}

func (s *Store) resolveChat(ctx context.Context, tx *store.Tx, ref Ref) (Session, bool, error) {
	var r struct {
		row
		ChatName  string `db:"chat_name"`
		ChatModel string `db:"chat_model"`
	}
	err := tx.Get(ctx, &r, `SELECT `+columns+`, c.name AS chat_name, c.model AS chat_model
		FROM chats c JOIN sessions s ON s.id = c.session_id WHERE c.bot = $1 AND c.chat = $2`, ref.Bot, ref.Chat)
	switch {
	case errors.Is(err, store.ErrNoRows):
	case err != nil:
		return Session{}, false, fmt.Errorf("session of chat: %w", err)
	case ref.Group() || r.User == ref.User:
		if err := s.rename(ctx, tx, ref, r.ChatName); err != nil {
			return Session{}, false, err
		}
		sess, err := r.session()
		sess.ChatModel = r.ChatModel
		return sess, false, err
	default:
		if err := s.Unbind(ctx, tx, ref.Address); err != nil {
			return Session{}, false, err
		}
	}
	sess, err := s.create(ctx, tx, ref, uuid.NewString())
	if err != nil {
		return Session{}, false, err
	}
	if err := s.bind(ctx, tx, ref, sess.ID); err != nil {
		return Session{}, false, err
	}
	set, err := s.Settings(ctx, tx, ref.Address)
	if err != nil {
		return Session{}, false, err
	}
	sess.ChatModel = set.Model
	s.sidecars.Keep(tx, sidecar.Of(sess, ref.Address, nil, nil))
	return sess, true, nil
}

// rename keeps the group's title as it is now.
func (s *Store) rename(ctx context.Context, tx *store.Tx, ref Ref, known string) error {
	name := core.CleanName(ref.PlaceName)
	if name == "" || name == known {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE chats SET name = $1 WHERE bot = $2 AND chat = $3`, name, ref.Bot, ref.Chat)
	if err != nil {
		return fmt.Errorf("chat name: %w", err)
	}
	return nil
}

func (s *Store) bind(ctx context.Context, tx *store.Tx, ref Ref, id string) error {
	_, err := tx.Exec(ctx, `INSERT INTO chats (bot, chat, thread, place, session_id, kind, name, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (bot, chat) DO UPDATE SET thread = excluded.thread, place = excluded.place,
			session_id = excluded.session_id, kind = excluded.kind, updated_at = excluded.updated_at,
			name = CASE WHEN excluded.name <> '' THEN excluded.name ELSE chats.name END`,
		ref.Bot, ref.Chat, ref.Thread, ref.Place, id, string(ref.Scope()), core.CleanName(ref.PlaceName), core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("bind chat: %w", err)
	}
	return nil
}

// Unbind ends the chat's conversation: its next message starts a new session.
// A chat without one is fine.
func (s *Store) Unbind(ctx context.Context, tx *store.Tx, addr core.Address) error {
	var id string
	err := tx.Get(ctx, &id, `SELECT session_id FROM chats WHERE bot = $1 AND chat = $2 AND session_id IS NOT NULL`, addr.Bot, addr.Chat)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE chats SET session_id = NULL, updated_at = $1 WHERE bot = $2 AND chat = $3`,
			core.Stamp(tx.Time()), addr.Bot, addr.Chat)
	}
	if err != nil {
		return fmt.Errorf("unbind chat: %w", err)
	}
	return s.keepCurrent(ctx, tx, id)
}

// create inserts a session with the working directory that was asked for, if
// that exists and the trust allows it.
func (s *Store) create(ctx context.Context, tx *store.Tx, ref Ref, id string) (Session, error) {
	dir, err := s.directory(ref)
	if err != nil {
		return Session{}, err
	}
	owner := ref.User
	if ref.Group() {
		owner = core.Operator // many users speak in it: it is no one's own
	}
	sess := Session{
		ID: id, Module: cmp.Or(ref.Options.Module, "chat"), Source: ref.Source, WorkingDirectory: dir, VaultRoot: s.vault.Path(),
		Model: ref.Options.Model, CreatedAt: tx.Time().UTC(), LastAccessed: tx.Time().UTC(),
		AgentType: ref.AgentType, User: owner, TrustLevel: ref.Trust, TitleSource: "default",
		Workspace: ref.Options.Workspace, ContinuedFrom: ref.Options.ContinuedFrom, Scope: ref.Scope(),
	}
	if sess.AgentType == "" {
		sess.AgentType = "vault-agent"
	}
	if sess.Source == "" {
		sess.Source = "gatehouse"
		if ref.Bot == core.APIBot {
			sess.Source = cmp.Or(ref.Options.Source, core.APIBot)
		}
	}
	if s.project != nil && !core.OfSession(ref.Bot) {
		if sess.Project, err = s.project(ctx, tx, ref.Address, owner); err != nil {
			return Session{}, err
		}
	}
	now, archived := core.Stamp(tx.Time()), 0
	if sess.Archived = sess.Module == SingleModule; sess.Archived { // no one goes on with it
		archived = 1
	}
	_, err = tx.Exec(ctx, `INSERT INTO sessions (id, title, module, source, working_directory, vault_root, model,
			created_at, last_accessed, agent_type, user_id, trust_level, workspace, continued_from, archived, scope, project_id)
		VALUES ($1, '', $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, nullif($11, ''), nullif($12, ''), $13, $14, nullif($15, ''))`,
		id, sess.Module, sess.Source, dir, sess.VaultRoot, sess.Model, now, sess.AgentType, owner, ref.Trust, sess.Workspace, sess.ContinuedFrom, archived, string(sess.Scope), sess.Project)
	if err != nil {
		return Session{}, fmt.Errorf("create session: %w", err)
	}
	return sess, nil
}

// directory returns what a new session keeps: relative to the vault, "" for the
// vault and for what does not exist.
func (s *Store) directory(ref Ref) (string, error) {
	if ref.Options.WorkingDirectory == "" {
		return "", nil
	}
	d, err := s.vault.Dir(ref.Options.WorkingDirectory)
	switch {
	case err != nil:
		return "", err
	case !d.Inside && ref.Trust < core.Full:
		return "", texts.Error(core.Denied, "fault_folder_outside")
	case !d.Exists || d.Rel == ".":
		return "", nil
	case d.Inside:
		return d.Rel, nil
	}
	return d.Path, nil
}
