package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Names of the first generation's routes, which cannot be session ids.
var reserved = map[string]bool{"session": true, "sessions": true, "stream": true, "active-streams": true, "count": true}

// maxAlias bounds a client's own session id.
const maxAlias = 128

// aliasSpace makes the UUIDs of aliases; fixed for ever.
var aliasSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("gatehouse:session-alias"))

// ID returns the session id that a client's own id represents: a UUID for itself,
// in lower case; another name (1 to 128 of [A-Za-z0-9._:@-], not starting with
// a dot) for one UUID per user. Anything else is core.Invalid. It is what
// Address.Chat of an API turn should be, so that one session has one lane.
func ID(given string, user int64) (id string, alias bool, err error) {
	if len(given) == 36 {
		if u, err := uuid.Parse(given); err == nil {
			return u.String(), false, nil
		}
	}
	for _, r := range given {
		if !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._:@-", r)) {
			return "", false, invalidID()
		}
	}
	if given == "" || len(given) > maxAlias || given[0] == '.' || reserved[given] {
		return "", false, invalidID()
	}
	return aliasID(user, given), true, nil
}

func aliasID(user int64, alias string) string {
	return uuid.NewSHA1(aliasSpace, []byte(strconv.FormatInt(user, 10)+":"+alias)).String()
}

func invalidID() error {
	return core.Errorf(core.Invalid, "session_id must be a UUID, or up to 128 letters, digits and . _ : @ -")
}

// Locate returns the session that a client's own id means for user, and whether it
// exists. One that does not exist yet is the id that Resolve will give it.
// Someone else's is core.NotFound (but for the operator), a malformed or
// reserved id core.Invalid.
func (s *Store) Locate(ctx context.Context, user int64, given string) (id string, known bool, err error) {
	p, err := s.locate(ctx, s.db, Ref{User: user}, given)
	return p.id, p.known, err
}

func (s *Store) resolveAPI(ctx context.Context, tx *store.Tx, ref Ref) (Session, bool, []core.Warning, error) {
	given := ref.Options.Session
	if given == "" {
		given = ref.Chat
	}
	if given == "" {
		given = uuid.NewString()
	}
	p, err := s.locate(ctx, tx, ref, given)
	if err != nil {
		return Session{}, false, nil, err
	}
	if p.known {
		warnings, err := s.about(ctx, tx, p.sess.ID, ref.Options.Contexts)
		return p.sess, false, append(warnings, stays(&p.sess, &ref)...), err
	}
	return s.createAPI(ctx, tx, ref, given, p)
}

// A place is what a client's id means.
type place struct {
	id        string
	known     bool
	sess      Session // when known
	alias     bool    // id differs from what was given, by a row in session_aliases
	collision bool    // what was given is another user's
	adopt     string  // a transcript without a row, to go on with
	adopted   int     // messages of one in the second place, to go on with
}

// locate finds or plans a session; it changes nothing. An id whose transcript
// lies in the vault without a row is the operator's to pick up; for anyone
// else it is taken, and they get another one. One that lies in the second
// place alone (Options.Projects) is the operator's too, and nothing to others.
func (s *Store) locate(ctx context.Context, q store.Queryer, ref Ref, given string) (p place, err error) {
	if p.id, p.alias, err = ID(given, ref.User); err != nil {
		return place{}, err
	}
	if p, err = s.standing(ctx, q, ref, given, p); err != nil || p.known {
		return p, err
	}
	taken, err := s.taken(ctx, q, p.id)
	if err == nil && taken != "" { // perhaps by the session itself, made since it was looked for
		p, err = s.standing(ctx, q, ref, given, p)
	}
	if err != nil || p.known {
		return p, err
	}
	switch {
	case taken == "" && (p.alias || ref.User != core.Operator):
	case taken == "":
		p.adopted, _, err = s.CountElsewhere(p.id)
	case taken != takenByRow && !p.alias && ref.User == core.Operator:
		p.adopt = taken
	default:
		p.alias, p.collision = true, true
		p.id = aliasID(ref.User, given+"/again") // no alias holds a slash
		if taken, err = s.taken(ctx, q, p.id); err == nil && taken != "" {
			p.id = uuid.NewString()
		}
	}
	return p, err
}

// standing returns p with the session that is known under the id, if there is one.
func (s *Store) standing(ctx context.Context, q store.Queryer, ref Ref, given string, p place) (place, error) {
	sess, err := s.known(ctx, q, ref, given, p)
	switch {
	case err == nil:
		p.id, p.known, p.sess = sess.ID, true, sess
		return p, nil
	case errors.Is(err, errNotYours):
		return place{}, notFound()
	case core.KindOf(err) != core.NotFound:
		return place{}, err
	}
	return p, nil
}

// errNotYours stays inside this file; the outside sees notFound.
var errNotYours = notFound()

// known returns the session that the caller's id represents; a NotFound error when
// there is none, errNotYours when there is one of someone else.
func (s *Store) known(ctx context.Context, q store.Queryer, ref Ref, given string, p place) (Session, error) {
	if !p.alias {
		given = p.id
		sess, err := s.ByID(ctx, q, p.id)
		if err == nil && sess.User != ref.User && !ref.Admin && ref.User != core.Operator {
			err = errNotYours
		}
		if core.KindOf(err) != core.NotFound || errors.Is(err, errNotYours) {
			return sess, err
		}
	}
	var r row
	err := q.Get(ctx, &r, `SELECT `+columns+` FROM session_aliases a JOIN sessions s ON s.id = a.session_id
		WHERE a.user_id = $1 AND a.alias = $2`, ref.User, given)
	if errors.Is(err, store.ErrNoRows) {
		return s.unlisted(ctx, q, ref.User, p)
	}
	if err != nil {
		return Session{}, fmt.Errorf("session by alias: %w", err)
	}
	return r.session()
}

// unlisted returns the user's session under the id of an alias that is not stored, as after a
// reindex. The id is made of the user and the alias, so the session was made under it.
func (s *Store) unlisted(ctx context.Context, q store.Queryer, user int64, p place) (Session, error) {
	if !p.alias {
		return Session{}, notFound()
	}
	sess, err := s.ByID(ctx, q, p.id)
	if err == nil && sess.User != user {
		err = notFound()
	}
	return sess, err
}

// createAPI makes the session that an unknown id asks for. One that is picked
// up from a transcript is sandboxed, because no one knows who wrote it.
func (s *Store) createAPI(ctx context.Context, tx *store.Tx, ref Ref, given string, p place) (Session, bool, []core.Warning, error) {
	var warnings []core.Warning
	adopted := p.adopted
	if adopted > 0 {
		ref.Trust = core.Sandboxed
	}
	if p.adopt != "" {
		var err error
		ref.Trust = core.Sandboxed
		if adopted, err = s.CountMessages(p.adopt); err != nil {
			return Session{}, false, nil, err
		}
	}
	if p.collision {
		warnings = append(warnings, core.Warning{Code: "session_collision",
			Message: "this session id is already used by another conversation; a new session was started"})
	}
	if err := s.goesOn(ctx, tx, &ref); err != nil {
		return Session{}, false, nil, err
	}
	sess, err := s.create(ctx, tx, ref, p.id)
	if err == nil {
		var more []core.Warning
		more, err = s.about(ctx, tx, p.id, ref.Options.Contexts)
		warnings = append(warnings, more...)
	}
	if err == nil && p.alias {
		if u, uerr := uuid.Parse(given); uerr == nil {
			given = u.String()
		}
		_, err = tx.Exec(ctx, `INSERT INTO session_aliases (user_id, alias, session_id) VALUES ($1, $2, $3)
			ON CONFLICT (user_id, alias) DO UPDATE SET session_id = excluded.session_id`, ref.User, given, p.id)
	}
	if err == nil && adopted > 0 {
		sess.MessageCount = adopted
		_, err = tx.Exec(ctx, `UPDATE sessions SET message_count = $1 WHERE id = $2`, adopted, p.id)
	}
	if err != nil {
		return Session{}, false, nil, err
	}
	return sess, true, warnings, s.keepCurrent(ctx, tx, p.id)
}

// takenByRow is no file name.
const takenByRow = "row"

// taken returns the transcript that already has this id, takenByRow for a session
// of someone else, or "".
func (s *Store) taken(ctx context.Context, q store.Queryer, id string) (string, error) {
	switch _, err := s.ByID(ctx, q, id); {
	case err == nil:
		return takenByRow, nil
	case core.KindOf(err) != core.NotFound:
		return "", err
	}
	files, err := s.vault.FindTranscripts(id)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return files[0], nil
}
