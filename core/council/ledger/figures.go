package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/store"
)

// MinCurve is how many queries with a verdict a model needs until its curve is shown.
const MinCurve = 10

// A Model is what is known of a model.
type Model struct {
	ID       string       `json:"model_id"`
	Score    int          `json:"score"` // 0 to 100
	Correct  int          `json:"correct_count"`
	Wrong    int          `json:"wrong_count"`
	Latency  int64        `json:"latency_ms"`
	Verdicts float64      `json:"verdicts"` // evidence: outcomes from a weaker source count for less than one
	WinRate  *float64     `json:"win_rate"` // nil below MinCurve
	Domains  []DomainRate `json:"domains"`
}

// A DomainRate is a model's evidence in a domain.
type DomainRate struct {
	Domain      string  `json:"domain"`
	Runs        float64 `json:"runs"`
	WinRate     float64 `json:"win_rate"`
	Reliability float64 `json:"reliability"` // smoothed, as it counts for the choice
}

// Models returns what is known of all models, by id.
func (s *Store) Models(ctx context.Context) ([]Model, error) {
	var rows []counters
	if err := s.o.DB.Select(ctx, &rows, `SELECT model_id, score, correct_count, wrong_count, latency_ms, bins FROM model_counters ORDER BY model_id`); err != nil {
		return nil, fmt.Errorf("read the council's models: %w", err)
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Model
	}
	records, err := s.Records(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Model, len(rows))
	for i, r := range rows {
		m := Model{ID: r.Model, Score: r.Score, Correct: r.Correct, Wrong: r.Wrong, Latency: r.Latency, Domains: []DomainRate{}}
		record := records[r.Model]
		if all := record.Domains[""]; all.Runs > 0 {
			m.Verdicts = all.Runs
			if all.Runs >= MinCurve {
				rate := choice.Round(all.Wins / all.Runs)
				m.WinRate = &rate
			}
		}
		for _, d := range sorted(record.Domains) {
			if e := record.Domains[d]; d != "" && e.Runs > 0 {
				m.Domains = append(m.Domains, DomainRate{d, e.Runs, choice.Round(e.Wins / e.Runs), choice.Round(record.Reliability(d))})
			}
		}
		out[i] = m
	}
	return out, nil
}

// A Change is a change of a model's score.
type Change struct {
	Model      string    `json:"model_id"`
	Before     int       `json:"score_before"`
	After      int       `json:"score_after"`
	Verdict    string    `json:"verdict"`
	Correction bool      `json:"correction_stored"`
	At         time.Time `json:"created_at"`
}

// maxChanges bounds a curve.
const maxChanges = 1000

// changes returns the statement for the changes of one model, or all, by an index.
func changes(model string, since time.Time) (query string, args []any) {
	var c store.Conditions
	if model == "" {
		c.And("event_type = 'score_update'")
	} else {
		c.And("model_id = ?", model)
	}
	c.And("created_at >= ?", core.Stamp(since))
	return fmt.Sprintf(`SELECT model_id, score_before, score_after, verdict, correction_stored, created_at FROM (
			SELECT * FROM audit_log WHERE %s ORDER BY created_at DESC, audit_id DESC LIMIT %d) AS newest
		ORDER BY created_at, audit_id`, strings.Join(c.Where, " AND "), maxChanges), c.Args
}

// Reliability returns the changes of the scores since a time, the oldest first, of one
// model or, with "", of all; the newest maxChanges.
func (s *Store) Reliability(ctx context.Context, model string, since time.Time) ([]Change, error) {
	var rows []struct {
		Model      string `db:"model_id"`
		Before     int    `db:"score_before"`
		After      int    `db:"score_after"`
		Verdict    string `db:"verdict"`
		Correction int    `db:"correction_stored"`
		At         string `db:"created_at"`
	}
	query, args := changes(model, since)
	if err := s.o.DB.Select(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("read the changes of scores: %w", err)
	}
	out := make([]Change, len(rows))
	for i, r := range rows {
		at, err := core.ParseStamp(r.At)
		if err != nil {
			return nil, fmt.Errorf("change of a score: %w", err)
		}
		out[i] = Change{r.Model, r.Before, r.After, r.Verdict, r.Correction != 0, at}
	}
	return out, nil
}

// A Level is what a level cost and found.
type Level struct {
	Level     string   `json:"accuracy_level" db:"accuracy_level"`
	Queries   int      `json:"queries" db:"queries"`
	Disputes  int      `json:"disputes" db:"disputes"`
	Agreed    int      `json:"agreed" db:"agreed"` // with confidence High
	Failed    int      `json:"failed" db:"failed"`
	Picks     int      `json:"-" db:"picks"`
	Calls     int      `json:"calls" db:"calls"`
	MicroUSD  int64    `json:"micro_usd" db:"cost"`
	SingleUSD int64    `json:"single_micro_usd" db:"single"` // of the answers that were shown: what one model would have cost
	Ratio     *float64 `json:"cost_ratio" db:"-"`            // of both; nil where no price is known
}

// An Analysis is the council's figures since a time.
type Analysis struct {
	Since   time.Time `json:"since"`
	Levels  []Level   `json:"levels"`
	Domains []Asked   `json:"domains"`
	Picks   int       `json:"picks"`
}

// An Asked counts the queries of a domain.
type Asked struct {
	Domain   string `json:"domain" db:"domain"`
	Queries  int    `json:"queries" db:"queries"`
	Disputes int    `json:"disputes" db:"disputes"`
}

// Analyze returns the figures since a time.
func (s *Store) Analyze(ctx context.Context, since time.Time) (Analysis, error) {
	a := Analysis{Since: since.UTC(), Levels: []Level{}, Domains: []Asked{}}
	at := core.Stamp(since)
	var rows []Level
	if err := s.o.DB.Select(ctx, &rows, `SELECT accuracy_level, count(*) AS queries, sum(CASE WHEN callout_type = 'disagreement' THEN 1 ELSE 0 END) AS disputes,
			sum(CASE WHEN confidence = 'High' THEN 1 ELSE 0 END) AS agreed, sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed,
			sum(CASE WHEN picked <> '' THEN 1 ELSE 0 END) AS picks, CAST(sum(calls) AS BIGINT) AS calls, CAST(coalesce(sum(micro_usd), 0) AS BIGINT) AS cost,
			CAST(coalesce(sum((SELECT sum(r.micro_usd) FROM model_runs AS r WHERE r.query_id = q.query_id AND r.model_id = q.winner AND r.round = 'answer' AND q.state = 'done')), 0) AS BIGINT) AS single
		FROM council_queries AS q WHERE created_at >= $1 AND state <> 'open' GROUP BY accuracy_level`, at); err != nil {
		return a, fmt.Errorf("read the council's figures: %w", err)
	}
	for _, level := range choice.Levels() {
		for _, l := range rows {
			if l.Level != level {
				continue
			}
			if l.SingleUSD > 0 {
				ratio := choice.Round(float64(l.MicroUSD) / float64(l.SingleUSD))
				l.Ratio = &ratio
			}
			a.Picks += l.Picks
			a.Levels = append(a.Levels, l)
		}
	}
	err := s.o.DB.Select(ctx, &a.Domains, `SELECT domain, count(*) AS queries, sum(CASE WHEN callout_type = 'disagreement' THEN 1 ELSE 0 END) AS disputes
		FROM council_queries WHERE created_at >= $1 AND state <> 'open' GROUP BY domain ORDER BY 2 DESC, 1 LIMIT 100`, at)
	if err != nil {
		err = fmt.Errorf("read the council's figures: %w", err)
	}
	return a, err
}

// A Domain is a node of the tree as it is shown.
type Domain struct {
	domains.Node
	Parent string `json:"parent_id,omitempty"`
	Depth  int    `json:"depth"`
	Root   bool   `json:"is_l0_root"`
}

// An Ontology is the domains with what may become one.
type Ontology struct {
	Domains    []Domain            `json:"domains"`    // by id
	Candidates []domains.Candidate `json:"candidates"` // the most frequent first; at most 200
}

// Ontology returns the tree with what is stored of it, and the candidates.
func (s *Store) Ontology(ctx context.Context) (o Ontology, err error) {
	tree, err := readTree(ctx, s.o.DB)
	if err != nil {
		return o, err
	}
	for _, id := range tree.IDs() {
		n, _ := tree.Node(id)
		o.Domains = append(o.Domains, Domain{n, domains.Parent(id), domains.Depth(id), domains.IsRoot(id)})
	}
	o.Candidates, err = s.Candidates(ctx, maxPage)
	return o, err
}
