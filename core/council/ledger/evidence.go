package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/store"
)

// Verdicts of an answer.
const (
	Correct   = "correct"
	Incorrect = "incorrect"
	// flagged is the verdict in the log of scores when reviewers found an answer wrong.
	flagged = "peer_review_flagged_incorrect"
)

// What a verdict comes from, the weakest first. A stronger one replaces a weaker one.
const (
	BySilence    = "silence" // the user's next turn had no correction
	ByReview     = "review"
	ByCorrection = "correction"
	ByPick       = "pick"
)

func weight(by string) float64 {
	switch by {
	case BySilence:
		return choice.WeightSilence
	case ByReview:
		return choice.WeightReview
	}
	return choice.WeightUser
}

func strength(by string) int {
	return slices.Index([]string{"", BySilence, ByReview, ByCorrection, ByPick}, by)
}

type judged struct {
	ID         string `db:"run_id"`
	Model      string `db:"model_id"`
	Domain     string `db:"domain"`
	Confidence *int64 `db:"confidence_score"`
	Claim      int    `db:"claim"`
	Verdict    string `db:"verdict"`
	By         string `db:"verdict_by"`
}

const judgedColumns = `run_id, model_id, domain, confidence_score, claim, verdict, verdict_by`

// verdict stores that an answer was found correct or incorrect, unless what is stored is
// as strong, and changes the model's counters.
func (s *Store) verdict(ctx context.Context, tx *store.Tx, q owner, run, verdict, by string) error {
	var r judged
	err := tx.Get(ctx, &r, `SELECT `+judgedColumns+` FROM model_runs WHERE run_id = $1`, run)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if strength(r.By) >= strength(by) {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE model_runs SET verdict = $2, verdict_by = $3 WHERE run_id = $1`, run, verdict, by); err != nil {
		return err
	}
	c, err := s.counters(ctx, tx, r.Model)
	if err != nil {
		return err
	}
	bins := c.bins()
	var e choice.Evidence
	if r.Verdict != "" { // it is replaced
		e = count(&bins, r.Confidence, r.Verdict == Correct, -weight(r.By))
	}
	e = e.Add(count(&bins, r.Confidence, verdict == Correct, weight(by)))
	for _, d := range choice.Path(r.Domain) {
		_, err := tx.Exec(ctx, `INSERT INTO model_domains (model_id, domain, wins, runs) VALUES ($1, $2, $3, $4)
			ON CONFLICT (model_id, domain) DO UPDATE SET wins = model_domains.wins + excluded.wins, runs = model_domains.runs + excluded.runs`,
			r.Model, d, *micro(e.Wins), *micro(e.Runs))
		if err != nil {
			return err
		}
	}
	before := domains.Reliability{Score: c.Score, Correct: c.Correct, Wrong: c.Wrong}
	after, crossed := before, false
	if r.Verdict != verdict {
		if r.Verdict != "" {
			before = before.Without(r.Verdict == Correct)
		}
		after, crossed = before.Apply(verdict == Correct)
	}
	_, err = tx.Exec(ctx, `UPDATE model_counters SET score = $2, correct_count = $3, wrong_count = $4, bins = $5, updated_at = $6 WHERE model_id = $1`,
		r.Model, after.Score, after.Correct, after.Wrong, asJSON(bins[:]), core.Stamp(tx.Time()))
	if err != nil || !crossed {
		return err
	}
	return s.log(ctx, tx, q, r.Model, before.Score, after.Score, verdict, by)
}

// count adds a verdict of this weight to the bins, and returns it as evidence.
func count(bins *[choice.Bins]choice.Bin, confidence *int64, correct bool, weight float64) choice.Evidence {
	e := choice.Evidence{Runs: weight}
	if correct {
		e.Wins = weight
	}
	if confidence != nil {
		v := float64(*confidence) / 1e6
		b := &bins[choice.BinOf(v)]
		b.Sum, b.Wins, b.Runs = floor(b.Sum+weight*v), floor(b.Wins+e.Wins), floor(b.Runs+weight)
	}
	return e
}

func floor(v float64) float64 { return max(0, math.Round(v*1e6)/1e6) }

// counters returns the row of a model, which it inserts where there is none. Beyond
// MaxModels the one that was not used for the longest time is deleted.
func (s *Store) counters(ctx context.Context, tx *store.Tx, model string) (c counters, err error) {
	n, err := tx.Exec(ctx, `INSERT INTO model_counters (model_id, score, updated_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, model, domains.StartScore, core.Stamp(tx.Time()))
	if err != nil {
		return c, err
	}
	if n == 1 {
		if err := dropModels(ctx, tx, model); err != nil {
			return c, err
		}
	}
	err = tx.Get(ctx, &c, `SELECT model_id, score, correct_count, wrong_count, latency_ms, bins FROM model_counters WHERE model_id = $1`+tx.ForUpdate(), model)
	return c, err
}

func dropModels(ctx context.Context, tx *store.Tx, but string) error {
	var total int
	if err := tx.Get(ctx, &total, `SELECT count(*) FROM model_counters`); err != nil || total <= MaxModels {
		return err
	}
	var oldest string
	if err := tx.Get(ctx, &oldest, `SELECT model_id FROM model_counters WHERE model_id <> $1 ORDER BY updated_at, model_id LIMIT 1`, but); err != nil {
		return err
	}
	return all(ctx, tx, "drop a model", []any{oldest}, `DELETE FROM model_counters WHERE model_id = $1`, `DELETE FROM model_domains WHERE model_id = $1`)
}

// latency moves the mean of a model's time to the first token towards this one.
func (s *Store) latency(ctx context.Context, tx *store.Tx, model string, ms int64) error {
	if _, err := s.counters(ctx, tx, model); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE model_counters SET latency_ms = CASE WHEN latency_ms = 0 THEN $2 ELSE (9 * latency_ms + $2) / 10 END, updated_at = $3 WHERE model_id = $1`,
		model, ms, core.Stamp(tx.Time()))
	return err
}

// log stores a change of a score.
func (s *Store) log(ctx context.Context, tx *store.Tx, q owner, model string, before, after int, verdict, by string) error {
	id := uuid.NewString()
	text, err := s.seal("audit_log", "query_preview", id, q.Preview)
	if err != nil {
		return err
	}
	if verdict == Incorrect && by == ByReview {
		verdict = flagged
	}
	_, err = tx.Exec(ctx, `INSERT INTO audit_log (audit_id, user_id, query_id, model_id, event_type, score_before, score_after, verdict, correction_stored, query_preview, payload, created_at)
		VALUES ($1, $2, $3, $4, 'score_update', $5, $6, $7, $8, $9, $10, $11)`,
		id, q.User, q.Query, model, before, after, verdict, flag(by == ByCorrection), text, asJSON(map[string]string{"by": by, "domain": q.Domain}), core.Stamp(tx.Time()))
	return err
}

// answers returns the answers of a query that did not fail.
func (s *Store) answers(ctx context.Context, tx *store.Tx, query string) (rows []judged, err error) {
	err = tx.Select(ctx, &rows, `SELECT `+judgedColumns+` FROM model_runs WHERE query_id = $1 AND round = 'answer' AND state = 'ok' ORDER BY model_id, run_id`, query)
	return rows, err
}

// same returns the answers that say the same as the i-th, it included.
func same(rows []judged, i int) (list []judged) {
	for _, r := range rows {
		if r.ID == rows[i].ID || r.Claim != 0 && r.Claim == rows[i].Claim {
			list = append(list, r)
		}
	}
	return list
}

// spread stores the verdict on a model's answer, and what follows for the others: those
// that say the same share it, those that contradict a correct one are incorrect. Nothing
// follows for an answer of which neither is known.
func (s *Store) spread(ctx context.Context, tx *store.Tx, q owner, model, verdict, by string) error {
	rows, err := s.answers(ctx, tx, q.Query)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(r judged) bool { return r.Model == model })
	if i < 0 {
		return nil
	}
	shared := same(rows, i)
	against := func(r judged) bool {
		return slices.ContainsFunc(shared, func(o judged) bool { return q.Note.contradict(o.Model, r.Model) })
	}
	for _, r := range rows {
		of := verdict
		if !slices.Contains(shared, r) {
			if of = Incorrect; verdict != Correct || !against(r) {
				continue
			}
		}
		if err := s.verdict(ctx, tx, q, r.ID, of, by); err != nil {
			return err
		}
	}
	return nil
}

// reviewed spreads the verdict of the reviewers on the answer that is shown.
func (s *Store) reviewed(ctx context.Context, tx *store.Tx, q owner) error {
	rows, err := s.answers(ctx, tx, q.Query)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Model == q.Winner && r.By == ByReview {
			return s.spread(ctx, tx, q, r.Model, r.Verdict, ByReview)
		}
	}
	return nil
}

// settleWithin is how long after an answer the user's next turn judges it.
const settleWithin = 7 * 24 * time.Hour

// A Blame is what a user's next turn meant for the model that had answered.
type Blame struct {
	Query string
	Model string
	Delta int // of its score
}

// A Turn is a user's turn after an answer.
type Turn struct {
	User         int64
	Conversation string
	After        string // the run of the answer that the turn follows; "" where that is not known
	Verdict      string // Correct or Incorrect; "" is neither
}

// Settle stores how a user's turn judges the answer that it follows, if that is a council's to
// the same user. The first such turn does so, with any verdict; else Blame is empty.
func (s *Store) Settle(ctx context.Context, tx *store.Tx, t Turn) (Blame, error) {
	n, err := tx.Exec(ctx, `UPDATE council_queries SET settled = 1 WHERE query_id = $1 AND user_id = $2 AND conversation_id = $3 AND state = 'done' AND settled = 0 AND created_at > $4`,
		t.After, t.User, t.Conversation, core.Stamp(tx.Time().Add(-settleWithin)))
	if err != nil || n == 0 {
		return Blame{}, err
	}
	q, err := s.owner(ctx, tx, t.After)
	if err != nil || t.Verdict == "" || q.Winner == "" || q.Callout == choice.CalloutDisagreement {
		return Blame{}, err
	}
	before, err := s.counters(ctx, tx, q.Winner)
	if err != nil {
		return Blame{}, err
	}
	by := BySilence
	if t.Verdict == Incorrect {
		by = ByCorrection
	}
	if err := s.spread(ctx, tx, q, q.Winner, t.Verdict, by); err != nil {
		return Blame{}, fmt.Errorf("settle the council's answer: %w", err)
	}
	after, err := s.counters(ctx, tx, q.Winner)
	return Blame{Query: q.Query, Model: q.Winner, Delta: after.Score - before.Score}, err
}
