package session

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
)

// current reads a session's sidecar from the database.
func (s *Store) current(ctx context.Context, q store.Queryer, id string) (sidecar.Sidecar, error) {
	d, err := s.Detail(ctx, q, id)
	if err != nil {
		return sidecar.Sidecar{}, err
	}
	chat, _, err := s.Bound(ctx, q, id)
	if err != nil {
		return sidecar.Sidecar{}, err
	}
	return sidecar.Of(d.Session, chat, d.Tags, d.Contexts), nil
}

// keepCurrent has the sidecar of id written as tx sees it, after the commit.
func (s *Store) keepCurrent(ctx context.Context, tx *store.Tx, id string) error {
	c, err := s.current(ctx, tx, id)
	if core.KindOf(err) == core.NotFound {
		return nil
	}
	if err == nil {
		s.sidecars.Keep(tx, c)
	}
	return err
}

// maxRepair bounds the sessions whose sidecars Repair checks, newest first.
const maxRepair = 1000

// Repair compares the sidecars of the 1,000 newest sessions with the database,
// writes those that are missing or differ, and returns how many that were. It
// also removes what a crash has left half written. Call it at the start.
func (s *Store) Repair(ctx context.Context) (int, error) {
	if err := errors.Join(s.sidecars.Sweep(), s.vault.SweepTranscripts()); err != nil {
		return 0, err
	}
	all, err := s.newest(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range all {
		written, err := s.sidecars.Repair(c)
		if err != nil {
			return n, err
		}
		if written {
			n++
		}
	}
	return n, nil
}

// newest reads the sidecars of the newest sessions, with three queries.
func (s *Store) newest(ctx context.Context) ([]sidecar.Sidecar, error) {
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
	all := make([]sidecar.Sidecar, 0, len(rows))
	for _, r := range rows {
		sess, err := r.session()
		if err != nil {
			return nil, err
		}
		all = append(all, sidecar.Of(sess, core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place}, of[r.ID], about[r.ID]))
	}
	return all, nil
}
