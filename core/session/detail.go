package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/markdown"
)

// A Detail is a session with what hangs on it.
type Detail struct {
	Session
	Tags     []string // in order of the alphabet; at most 64
	Contexts []string // directories and files of the vault, as they were added; at most 100
}

// Detail returns the session id with its tags and contexts, by three statements;
// core.NotFound without one. Whether the asker may see it is the caller's
// question: compare Session.User.
func (s *Store) Detail(ctx context.Context, q store.Queryer, id string) (d Detail, err error) {
	if d.Session, err = s.ByID(ctx, q, id); err != nil {
		return d, err
	}
	d.Tags, d.Contexts = []string{}, []string{}
	if err := q.Select(ctx, &d.Tags, `SELECT tag FROM session_tags WHERE session_id = $1 ORDER BY tag`, id); err != nil {
		return d, fmt.Errorf("tags of session: %w", err)
	}
	err = q.Select(ctx, &d.Contexts, `SELECT folder_path FROM session_contexts WHERE session_id = $1 ORDER BY added_at, folder_path LIMIT $2`, id, maxContexts)
	if err != nil {
		return d, fmt.Errorf("contexts of session: %w", err)
	}
	return d, nil
}

// Version names what Change may change of a session: it is another one when,
// and only when, one of these is. A turn alone does not change it, but for the
// model that answers and for the title that it gives.
func (d *Detail) Version() string {
	b, err := json.Marshal([]any{d.ID, d.Title, d.TitleSource, d.Module, d.WorkingDirectory, d.Model, d.ChosenModel, d.AgentType, d.Workspace, d.Project, d.Archived, d.Metadata, d.Tags, d.Contexts})
	if err != nil { // texts and valid JSON have none
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// A TagCount is a tag and how many sessions have it.
type TagCount struct {
	Tag   string `json:"tag" db:"tag"`
	Count int    `json:"count" db:"count"`
}

// maxTagCounts bounds the tags that Tags lists.
const maxTagCounts = 1000

// Tags returns the tags of user's sessions, or with all of everyone's, with how
// many sessions have each: most used first, the first 1,000.
func (s *Store) Tags(ctx context.Context, user int64, all bool) ([]TagCount, error) {
	list := []TagCount{}
	var err error
	if all {
		err = s.db.Select(ctx, &list, `SELECT tag, count(*) AS count FROM session_tags GROUP BY tag ORDER BY count(*) DESC, tag LIMIT $1`, maxTagCounts)
	} else {
		err = s.db.Select(ctx, &list, `SELECT t.tag AS tag, count(*) AS count FROM sessions s JOIN session_tags t ON t.session_id = s.id
			WHERE s.user_id = $1 GROUP BY t.tag ORDER BY count(*) DESC, t.tag LIMIT $2`, user, maxTagCounts)
	}
	if err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	return list, nil
}

// Export returns a session as Markdown, with its tags: its newest 12 MB, out of the
// last 32 MB of its transcript. A last line reports omissions. The caller checks who
// may see it: compare Session.User.
func (s *Store) Export(ctx context.Context, sess Session) (string, error) {
	side, err := s.current(ctx, s.db, sess.ID)
	if err != nil {
		return "", err
	}
	text := ""
	err = s.Whole(ctx, sess, func(messages []transcript.Message, whole bool) {
		text = markdown.Bounded(sess, side.Tags, messages, whole)
	})
	return text, err
}
