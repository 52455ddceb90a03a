package session

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// ContextPath returns a path as Options.Contexts and Change keep it: relative to the
// vault, with slashes; core.Invalid for what is none. Whether it exists is not
// asked, so that no one learns it.
func ContextPath(given string) (string, error) { return contextOf(given) }

// goesOn checks what a new session goes on from: a session of the same person,
// else it is not found. Its messages will be read at the new session's trust, so its
// ceiling applies to the new one too.
func (s *Store) goesOn(ctx context.Context, tx *store.Tx, ref *Ref) error {
	if ref.Options.ContinuedFrom == "" {
		return nil
	}
	from, err := s.ByID(ctx, tx, ref.Options.ContinuedFrom)
	if err == nil && from.User != ref.User {
		err = notFound()
	}
	if err != nil {
		return err
	}
	ref.Trust = core.Least(ref.Trust, from.TrustLevel)
	return nil
}

// about adds paths to what the session id is about. What is one too many is
// left out with a warning.
func (s *Store) about(ctx context.Context, tx *store.Tx, id string, paths []string) (_ []core.Warning, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	defer func() {
		if err == nil {
			err = s.keepCurrent(ctx, tx, id)
		}
	}()
	var was []string
	if err := tx.Select(ctx, &was, `SELECT folder_path FROM session_contexts WHERE session_id = $1`, id); err != nil {
		return nil, fmt.Errorf("contexts of session: %w", err)
	}
	have := make(map[string]bool, len(was)+len(paths))
	for _, p := range was {
		have[p] = true
	}
	for i, given := range paths {
		p, err := contextOf(given)
		if err != nil {
			return nil, err
		}
		if have[p] {
			continue
		}
		if len(have) == maxContexts {
			return []core.Warning{{Code: "contexts", Message: fmt.Sprintf("a session is about at most %d folders and files; %d were left out", maxContexts, len(paths)-i)}}, nil
		}
		have[p] = true
		if _, err := tx.Exec(ctx, contextRows.add, id, p, core.Stamp(tx.Time().Add(time.Duration(i)*time.Microsecond))); err != nil {
			return nil, fmt.Errorf("contexts of session: %w", err)
		}
	}
	return nil, nil
}

// stays reports what a request asked of a session that has begun otherwise. The
// API refuses that where it can see it; a session that began a moment ago it
// cannot.
func stays(sess *Session, ref *Ref) []core.Warning {
	o := ref.Options
	for _, f := range []struct{ name, asked, is string }{
		{"agent_path", o.Agent, sess.AgentType}, {"module", o.Module, sess.Module},
		{"workspace", o.Workspace, sess.Workspace}, {"continued_from", o.ContinuedFrom, sess.ContinuedFrom},
	} {
		if f.asked != "" && f.asked != f.is {
			return []core.Warning{{Code: "session_exists", Message: "the conversation has begun already: its " + f.name + " stays as it is"}}
		}
	}
	return nil
}
