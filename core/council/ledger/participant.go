package ledger

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users, and those with counts of all.
func (s *Store) Tables() []string {
	return []string{"council_queries", "council_stages", "model_runs", "audit_log", "model_counters", "model_domains", "domain_nodes", "domain_candidates"}
}

// Columns returns the encrypted columns.
func Columns() []columns.Column {
	return []columns.Column{
		{Table: "council_queries", Name: "query_preview", Row: "query_id"},
		{Table: "council_queries", Name: "note", Row: "query_id"},
		{Table: "council_stages", Name: "content", Row: "query_id || '/' || stage || '/' || model_id"},
		{Table: "model_runs", Name: "raw_response", Row: "run_id"},
		{Table: "audit_log", Name: "query_preview", Row: "audit_id"},
	}
}

// Forget deletes what is stored of a user's questions, and the names of domains that models
// used for no stored question of others. The counts of the models, in which no one is named, stay.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	return all(ctx, tx, "forget the council's queries", []any{r.User},
		`DELETE FROM domain_candidates WHERE raw_string NOT IN (SELECT raw_domain FROM model_runs WHERE user_id <> $1)`,
		`DELETE FROM council_stages WHERE query_id IN (SELECT query_id FROM council_queries WHERE user_id = $1)`,
		`DELETE FROM model_runs WHERE user_id = $1`,
		`DELETE FROM audit_log WHERE user_id = $1`,
		`DELETE FROM council_queries WHERE user_id = $1`)
}

// all executes statements with the same arguments.
func all(ctx context.Context, tx *store.Tx, what string, args []any, statements ...string) error {
	for _, q := range statements {
		if _, err := tx.Exec(ctx, q, args...); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// Merge gives one user's questions to another.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return all(ctx, tx, "give the council's queries", []any{to, from},
		`UPDATE council_queries SET user_id = $1 WHERE user_id = $2`,
		`UPDATE model_runs SET user_id = $1 WHERE user_id = $2`,
		`UPDATE audit_log SET user_id = $1 WHERE user_id = $2`)
}

// ForgetSession deletes the questions of a session that is deleted, and the names of domains
// that models used for no stored question of others.
func (s *Store) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	return all(ctx, tx, "forget a session's council queries", []any{session},
		`DELETE FROM domain_candidates WHERE raw_string NOT IN (SELECT raw_domain FROM model_runs WHERE conversation_id <> $1)`,
		`DELETE FROM council_stages WHERE query_id IN (SELECT query_id FROM council_queries WHERE conversation_id = $1)`,
		`DELETE FROM audit_log WHERE query_id IN (SELECT query_id FROM council_queries WHERE conversation_id = $1)`,
		`DELETE FROM model_runs WHERE conversation_id = $1`,
		`DELETE FROM council_queries WHERE conversation_id = $1`)
}

// Exports returns the statements of an export. Encrypted columns, whose texts are in
// the conversations, are not among them.
func (s *Store) Exports() []store.Export {
	return []store.Export{
		{Name: "council_queries", Query: `SELECT query_id, conversation_id, accuracy_level, domain, callout_type, confidence, models_used, winner, picked, picked_at, calls, micro_usd, created_at
			FROM council_queries WHERE user_id = $1 ORDER BY created_at DESC, query_id DESC LIMIT $2`},
		{Name: "model_runs", Query: `SELECT run_id, query_id, conversation_id, model_id, round, vcg_winner, corrections_applied, latency_ms, input_tokens, output_tokens, micro_usd, domain, state, verdict, verdict_by, created_at
			FROM model_runs WHERE user_id = $1 ORDER BY created_at DESC, run_id DESC LIMIT $2`},
		{Name: "audit_log", Query: `SELECT audit_id, query_id, model_id, event_type, score_before, score_after, verdict, created_at
			FROM audit_log WHERE user_id = $1 ORDER BY created_at DESC, audit_id DESC LIMIT $2`},
	}
}

// Chores returns the housekeeping of the tables.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{
		{Name: "council_domains", Every: reviewEvery, Run: s.Review},
		{Name: "old_council", Every: time.Hour, Run: s.prune},
	}
}

// step is how many rows one transaction prunes.
const step = 200

// prune deletes what is older or more than the bounds, a few rows in each transaction.
func (s *Store) prune(ctx context.Context) (total int, err error) {
	now := s.o.Clock.Now()
	if total, err = s.expire(ctx, now.Add(-MaxAge)); err != nil {
		return total, fmt.Errorf("prune the council's tables: %w", err)
	}
	n, err := s.trim(ctx)
	if total += n; err != nil {
		return total, err
	}
	for _, q := range []struct {
		text string
		args []any
	}{
		// the answers to pick from, once that is closed, and of attempts that did not go on
		{`DELETE FROM council_stages WHERE query_id IN (SELECT query_id FROM council_stages WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, []any{core.Stamp(now.Add(-2 * PickOpen)), step}},
		{`DELETE FROM audit_log WHERE audit_id IN (SELECT audit_id FROM audit_log ORDER BY created_at DESC, audit_id DESC LIMIT $1 OFFSET $2)`, []any{step, MaxAudit}},
		// the questions in the log of scores are kept no longer than the queries
		{`UPDATE audit_log SET query_preview = '' WHERE audit_id IN (SELECT audit_id FROM audit_log WHERE query_preview <> '' AND query_id NOT IN (SELECT query_id FROM council_queries) ORDER BY created_at, audit_id LIMIT $1)`, []any{step}},
		{`DELETE FROM domain_candidates WHERE raw_string IN (SELECT raw_string FROM domain_candidates ORDER BY last_seen DESC, raw_string LIMIT $1 OFFSET $2)`, []any{step, MaxCandidates}},
		{`DELETE FROM domain_candidates WHERE last_seen < $1`, []any{core.Stamp(now.Add(-MaxAge))}},
		{`DELETE FROM domain_candidates WHERE last_seen < $1 AND raw_string NOT IN (SELECT raw_domain FROM model_runs)`, []any{core.Stamp(now.Add(-2 * PickOpen))}},
	} {
		for {
			var n int64
			err := s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
				n, err = tx.Exec(ctx, q.text, q.args...)
				return err
			})
			if total += int(n); err != nil {
				return total, fmt.Errorf("prune the council's tables: %w", err)
			}
			if n == 0 {
				break
			}
		}
	}
	return total, nil
}

// expire deletes the queries from before a time.
func (s *Store) expire(ctx context.Context, before time.Time) (total int, err error) {
	for n := step; n == step; total += n {
		err := s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			var ids []string
			if err := tx.Select(ctx, &ids, `SELECT query_id FROM council_queries WHERE created_at < $1 ORDER BY created_at, query_id LIMIT $2`, core.Stamp(before), step); err != nil {
				return err
			}
			n = len(ids)
			return deleteQueries(ctx, tx, ids)
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// trim deletes the oldest queries of users with more than MaxQueries.
func (s *Store) trim(ctx context.Context) (total int, err error) {
	var users []struct {
		User int64 `db:"user_id"`
		N    int   `db:"n"`
	}
	if err := s.o.DB.Select(ctx, &users, `SELECT user_id, count(*) AS n FROM council_queries GROUP BY user_id HAVING count(*) > $1 ORDER BY user_id`, MaxQueries); err != nil {
		return 0, fmt.Errorf("prune the council's tables: %w", err)
	}
	for _, u := range users {
		for left := u.N - MaxQueries; left > 0; left -= step {
			err := s.o.DB.Tx(ctx, func(tx *store.Tx) error { return deleteOldest(ctx, tx, u.User, min(left, step)) })
			if err != nil {
				return total, fmt.Errorf("prune the council's tables: %w", err)
			}
			total += min(left, step)
		}
	}
	return total, nil
}

func deleteOldest(ctx context.Context, tx *store.Tx, user int64, n int) error {
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT query_id FROM council_queries WHERE user_id = $1 ORDER BY created_at, query_id LIMIT $2`, user, n); err != nil {
		return err
	}
	return deleteQueries(ctx, tx, ids)
}

func deleteQueries(ctx context.Context, tx *store.Tx, ids []string) error {
	for _, id := range ids {
		if err := all(ctx, tx, "delete a query", []any{id}, `DELETE FROM council_stages WHERE query_id = $1`, `DELETE FROM model_runs WHERE query_id = $1`, `DELETE FROM council_queries WHERE query_id = $1`); err != nil {
			return err
		}
	}
	return nil
}
