package session

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Address returns the whole address of a chat that someone has talked in, with its
// thread and group; false of one that no one has.
func (s *Store) Address(ctx context.Context, q store.Queryer, bot, chat string) (core.Address, bool, error) {
	var c struct {
		Thread string `db:"thread"`
		Place  string `db:"place"`
	}
	to := core.Address{Bot: bot, Chat: chat}
	err := q.Get(ctx, &c, `SELECT thread, place FROM chats WHERE bot = $1 AND chat = $2`, bot, chat)
	if errors.Is(err, store.ErrNoRows) {
		return to, false, nil
	}
	if err != nil {
		return to, false, fmt.Errorf("address of a chat: %w", err)
	}
	to.Thread, to.Place = c.Thread, c.Place
	return to, true, nil
}

// Groups returns the names of the groups that these sessions are held in, by session; a
// name that is not known is "". A session that a newer one has replaced in its chat is
// found by its newest run, as long as that is kept; later its name is not known.
func (s *Store) Groups(ctx context.Context, ids ...string) (map[string]string, error) {
	out := map[string]string{} // at most one for each of ids
	if len(ids) == 0 {
		return out, nil
	}
	list, args := inList(ids)
	var rows []struct {
		ID   string `db:"id"`
		Name string `db:"name"`
	}
	err := s.db.Select(ctx, &rows, `SELECT session_id AS id, name FROM chats WHERE place <> '' AND session_id IN (`+list+`)
		UNION SELECT s.id AS id, c.name AS name FROM sessions s
			JOIN runs r ON r.id = (SELECT n.id FROM runs n WHERE n.session_id = s.id AND n.bot <> 'api' ORDER BY n.started DESC LIMIT 1)
			JOIN chats c ON c.bot = r.bot AND c.chat = r.chat
			WHERE c.place <> '' AND s.id IN (`+list+`)
		UNION SELECT s.id AS id, '' AS name FROM sessions s WHERE s.scope = 'group' AND s.id IN (`+list+`)`, args...)
	if err != nil {
		return nil, fmt.Errorf("groups of sessions: %w", err)
	}
	for _, r := range rows {
		if out[r.ID] == "" {
			out[r.ID] = r.Name
		}
	}
	return out, nil
}

// Private returns those of these sessions that are known never to have been held in a
// group: what they say is of one user.
func (s *Store) Private(ctx context.Context, ids ...string) (map[string]bool, error) {
	out := map[string]bool{} // at most one for each of ids
	if len(ids) == 0 {
		return out, nil
	}
	list, args := inList(ids)
	var rows []string
	err := s.db.Select(ctx, &rows, `SELECT s.id FROM sessions s WHERE s.scope = 'dm' AND s.id IN (`+list+`)
		AND NOT EXISTS (SELECT 1 FROM chats c WHERE c.session_id = s.id AND c.place <> '')`, args...)
	if err != nil {
		return nil, fmt.Errorf("private sessions: %w", err)
	}
	for _, id := range rows {
		out[id] = true
	}
	return out, nil
}
