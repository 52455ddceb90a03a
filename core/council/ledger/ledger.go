// Package ledger stores the questions and answers of councils, the outcomes
// about the models, and the domains. It owns the tables council_queries,
// council_stages, model_runs, model_counters, model_domains, audit_log, domain_nodes
// and domain_candidates, and the view council_conversations.
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// Bounds of what is stored.
const (
	MaxQueries    = 5000 // of one user; the oldest are deleted
	MaxAge        = 90 * 24 * time.Hour
	MaxAudit      = 20_000 // rows of the log of scores
	MaxCandidates = 1000
	MaxModels     = 500       // with counters
	MaxContent    = 256 << 10 // bytes of a stage's content: an answer has no more; a longer one is cut
	PickOpen      = 24 * time.Hour

	previewRunes  = 80
	responseRunes = 500
	maxError      = 300
	maxNote       = 1000 // bytes of a reviewer's correction, and of a text
)

// Sealer encrypts the columns with texts of users and models.
type Sealer interface {
	Seal(at sealed.Place, text string) (string, error)
	Open(at sealed.Place, value string) (string, error)
}

// A Picked is what a user decided in a dispute.
type Picked struct {
	User         int64
	Query        string
	Conversation string
	Domain       string
	Model        string   // whose answer was picked
	Same         []string // whose answers say the same, it included
	Preview      string   // of the question
}

// Options of New. All are required.
type Options struct {
	DB    *store.DB
	Clock core.Clock
	Seal  Sealer
}

// A Store keeps the tables. It is safe for concurrent use.
type Store struct {
	o  Options
	mu sync.Mutex
	// tree is read from the tables again after they change, and each minute: another gateway
	// may have changed them.
	tree *domains.Tree
	read time.Time // of tree
}

// New returns a Store.
func New(o Options) *Store { return &Store{o: o} }

// micro returns a share in millionths, as the tables have it; what is no number is NULL.
func micro(v float64) *int64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	n := int64(math.Round(v * 1e6))
	return &n
}

func share(n *int64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n) / 1e6
	return &v
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null" // of values of this package: does not happen
	}
	return string(b)
}

func (s *Store) seal(table, column, row, text string) (string, error) {
	v, err := s.o.Seal.Seal(sealed.Place{Table: table, Column: column, Row: row}, text)
	if err != nil {
		return "", fmt.Errorf("encrypt %s.%s: %w", table, column, err)
	}
	return v, nil
}

func (s *Store) open(table, column, row, value string) (string, error) {
	v, err := s.o.Seal.Open(sealed.Place{Table: table, Column: column, Row: row}, value)
	if err != nil {
		return "", fmt.Errorf("decrypt %s.%s: %w", table, column, err)
	}
	return v, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// preview returns the beginning of a question on one line.
func preview(text string) string {
	return core.CutRunes(strings.Join(strings.Fields(cut(text, MaxContent)), " "), previewRunes)
}

// cut returns the beginning of a text, at most n bytes in whole characters.
func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

func stageRow(query, stage, model string) string { return query + "/" + stage + "/" + model }

// Records returns what is known of the models. One without a row is new.
func (s *Store) Records(ctx context.Context, models []string) (map[string]*choice.Record, error) {
	out := map[string]*choice.Record{}
	if len(models) == 0 {
		return out, nil
	}
	for _, m := range models {
		out[m] = &choice.Record{Domains: map[string]choice.Evidence{}, Score: domains.StartScore}
	}
	var counters []counters
	where, args := of(models)
	if err := s.o.DB.Select(ctx, &counters, `SELECT model_id, score, correct_count, wrong_count, latency_ms, bins FROM model_counters`+where, args...); err != nil {
		return nil, fmt.Errorf("read the council's records: %w", err)
	}
	for _, c := range counters {
		if r := out[c.Model]; r != nil {
			r.Score, r.Latency, r.Calibration = c.Score, float64(c.Latency), choice.Calibrate(c.bins())
		}
	}
	var rows []struct {
		Model  string `db:"model_id"`
		Domain string `db:"domain"`
		Wins   int64  `db:"wins"`
		Runs   int64  `db:"runs"`
	}
	if err := s.o.DB.Select(ctx, &rows, `SELECT model_id, domain, wins, runs FROM model_domains`+where, args...); err != nil {
		return nil, fmt.Errorf("read the council's records: %w", err)
	}
	for _, d := range rows {
		if r := out[d.Model]; r != nil {
			r.Domains[d.Domain] = choice.Evidence{Wins: float64(d.Wins) / 1e6, Runs: float64(d.Runs) / 1e6}
		}
	}
	return out, nil
}

// of returns the condition for the rows of these models. It is empty for more than two
// councils have: then most rows are theirs.
func of(models []string) (where string, args []any) {
	if len(models) > 2*choice.MaxMembers {
		return "", nil
	}
	c := store.Conditions{}
	for _, m := range models {
		c.And("?", m)
	}
	return " WHERE model_id IN (" + strings.Join(c.Where, ", ") + ")", c.Args
}

type counters struct {
	Model   string `db:"model_id"`
	Score   int    `db:"score"`
	Correct int    `db:"correct_count"`
	Wrong   int    `db:"wrong_count"`
	Latency int64  `db:"latency_ms"`
	Bins    string `db:"bins"`
}

func (c *counters) bins() (bins [choice.Bins]choice.Bin) {
	var list []choice.Bin
	if json.Unmarshal([]byte(c.Bins), &list) == nil {
		copy(bins[:], list)
	}
	return bins
}

// sorted returns the names of the domains in order.
func sorted(m map[string]choice.Evidence) []string { return slices.Sorted(maps.Keys(m)) }
