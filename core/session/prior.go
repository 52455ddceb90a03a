package session

import (
	"context"
	"encoding/json"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// prior is the conversation that sess goes on from, nil without: the session
// that it continues, where that is the same person's; of an imported one
// without a transcript of its own, the transcript under the id that it had
// where it came from. Transcripts that no row belongs to are the operator's,
// so only the operator's sessions are given those.
func (s *Store) prior(ctx context.Context, sess Session) *Conversation {
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
		Original string `json:"original_id"`
	}
	if sess.User != core.Operator || json.Unmarshal(sess.Metadata, &m) != nil || m.Original == sess.ID || !vault.ValidID(m.Original) {
		return nil
	}
	if _, err := s.ByID(ctx, s.db, m.Original); core.KindOf(err) != core.NotFound {
		return nil
	}
	from := sess
	from.ID, from.MessageCount = m.Original, max(1, sess.MessageCount) // so that it is looked for in every folder
	return s.read(from)
}

// read opens a transcript that is only read; nil where there is none.
func (s *Store) read(from Session) *Conversation {
	c, err := s.open(from)
	if err != nil {
		s.log.Warn("an earlier session is left out", "session", from.ID, "err", err)
		return nil
	}
	if !c.existed {
		return nil
	}
	return c
}

// injected puts what the conversation goes on from in front of taken, which
// takes size of room.
func (c *Conversation) injected(taken []Message, size, room int, r Resume) ([]Message, Resume) {
	if err := c.from.load(room - size); err != nil {
		c.s.log.Warn("an earlier session is left out", "session", c.sess.ID, "err", err)
		return taken, r
	}
	front, more := newest(c.from.tail.messages, room-size)
	if len(front) == 0 {
		return taken, r
	}
	r.Info.Method, r.Session.Method = "context_injection", "context_injection"
	r.Session.SDKSessionValid, r.Session.ContextInjected = false, true
	r.Session.MessagesInjected = len(front) + len(taken)
	r.Session.TokensEstimate = (size + more + bytesPerToken - 1) / bytesPerToken
	r.Session.LoadedFromDisk = r.Session.LoadedFromDisk || c.from.disk
	before := max(c.from.sess.MessageCount, len(c.from.tail.messages))
	r.Info.PreviousMessageCount += before
	r.Session.PreviousMessageCount += before
	return append(front[:len(front):len(front)], taken...), r
}
