package session

import (
	"context"
	"encoding/json"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// Open opens a session's transcript. Nothing is read or created before it is needed.
// History of a session that was imported or continues another one begins with the
// newest messages of that one.
func (s *Store) Open(ctx context.Context, sess Session) (*transcript.Conversation, error) {
	c, err := s.Files.Open(sess)
	if err == nil {
		c.Continue(s.prior(ctx, sess))
	}
	return c, err
}

// prior returns the conversation that sess goes on from, nil without: the session
// that it continues, where that is the same person's; of an imported one
// without a transcript of its own, the transcript under the id that it had
// where it came from. Transcripts that no row belongs to are the operator's,
// so only the operator's sessions are given those.
func (s *Store) prior(ctx context.Context, sess Session) *transcript.Conversation {
	if sess.ContinuedFrom != "" {
		from, err := s.ByID(ctx, s.db, sess.ContinuedFrom)
		if err == nil && (from.User != sess.User || from.ID == sess.ID || !vault.ValidID(from.ID)) {
			return nil
		}
		if err == nil {
			return s.read(from)
		}
		if core.KindOf(err) != core.NotFound {
			s.log.Warn("an earlier session is left out", "session", sess.ID, "err", err)
			return nil
		}
	}
	var m struct {
		Original string          `json:"original_id"`
		Import   json.RawMessage `json:"import"` // its transcript was brought in
	}
	if sess.User != core.Operator || json.Unmarshal(sess.Metadata, &m) != nil || m.Import != nil || m.Original == sess.ID || !vault.ValidID(m.Original) {
		return nil
	}
	if _, err := s.ByID(ctx, s.db, m.Original); core.KindOf(err) != core.NotFound {
		return nil
	}
	from := sess
	from.ID, from.MessageCount = m.Original, max(1, sess.MessageCount) // so that it is looked for in every directory
	return s.read(from)
}

// read opens a transcript that is only read; nil if there is none.
func (s *Store) read(from Session) *transcript.Conversation {
	c, err := s.Existing(from)
	if err != nil {
		s.log.Warn("an earlier session is left out", "session", from.ID, "err", err)
	}
	return c
}
