package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/store"
)

// States of a query.
const (
	Open   = "open" // its run has not ended, as far as is known
	Done   = "done"
	Failed = "failed"
)

// A Query is one question to a council.
type Query struct {
	ID           string
	User         int64
	Conversation string // the session
	Run          string
	Level, Asked string // the level that is used, and that was asked for
	Question     string // only its beginning is stored
	Domains      []choice.Share
	Seed         uint64
	Created      time.Time
}

// Begin stores an open query. Where one with this id is stored, it returns that, and
// resumed: an earlier attempt has begun it, and its seed and level apply. Another
// user's id is core.Conflict.
func (s *Store) Begin(ctx context.Context, q Query) (stored Query, resumed bool, err error) {
	text, err := s.seal("council_queries", "query_preview", q.ID, preview(q.Question))
	if err != nil {
		return q, false, err
	}
	q.Domains = choice.Normal(q.Domains)
	err = s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		stored, resumed = q, false
		stored.Created = tx.Time().UTC()
		n, err := tx.Exec(ctx, `INSERT INTO council_queries (query_id, user_id, conversation_id, run, accuracy_level, asked_level, query_preview, domain, domains, seed, state, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'open', $11) ON CONFLICT DO NOTHING`,
			q.ID, q.User, q.Conversation, q.Run, q.Level, q.Asked, text, q.Domains[0].Domain, asJSON(q.Domains), int64(q.Seed), core.Stamp(stored.Created))
		if err != nil || n == 1 {
			return err
		}
		var row struct {
			User    int64  `db:"user_id"`
			Level   string `db:"accuracy_level"`
			Asked   string `db:"asked_level"`
			Domains string `db:"domains"`
			Seed    int64  `db:"seed"`
			Created string `db:"created_at"`
		}
		if err := tx.Get(ctx, &row, `SELECT user_id, accuracy_level, asked_level, domains, seed, created_at FROM council_queries WHERE query_id = $1`, q.ID); err != nil {
			return err
		}
		if row.User != q.User {
			return core.Errorf(core.Conflict, "the query %q is another user's", q.ID)
		}
		resumed, stored.Level, stored.Asked, stored.Seed = true, row.Level, row.Asked, uint64(row.Seed)
		if err := json.Unmarshal([]byte(row.Domains), &stored.Domains); err != nil {
			return err
		}
		stored.Created, err = core.ParseStamp(row.Created)
		return err
	})
	if err != nil && core.KindOf(err) != core.Conflict {
		err = fmt.Errorf("store the council's query: %w", err)
	}
	return stored, resumed, err
}

// Stages of a query.
const (
	StageAnswer     = "answer"
	StageRating     = "rating"
	StageJudge      = "judge"
	StageReview     = "review"
	StageRegenerate = "regenerate"
	StageChoice     = "choice" // the model is the winner, the content the reason
)

// A Stage is what one model returned in a stage of a query.
type Stage struct {
	Query, Stage, Model string
	Content             string
	Error               string // why there is no content; "" is a success
	Detail              Detail
}

// A Detail is what a call cost.
type Detail struct {
	LatencyMS    int64    `json:"latency_ms"` // to the first token
	TotalMS      int64    `json:"total_ms"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	MicroUSD     *int64   `json:"micro_usd"` // nil where no price is known
	Confidence   float64  `json:"confidence"`
	Reported     bool     `json:"reported"`     // the model reported its confidence
	Domain       string   `json:"domain"`       // as it reported it
	Of           []string `json:"of,omitempty"` // whose answers it read, in their order
}

// Save is SaveAll of one stage.
func (s *Store) Save(ctx context.Context, st Stage) error {
	return s.SaveAll(ctx, []Stage{st}, func(context.Context, *store.Tx) error { return nil })
}

// SaveAll stores replies in one transaction with also, as TxSoon does: a power cut within a
// second may lose them, a killed process does not. What is stored before stays.
func (s *Store) SaveAll(ctx context.Context, stages []Stage, also func(context.Context, *store.Tx) error) error {
	contents := make([]string, len(stages))
	for i, st := range stages {
		var err error
		if contents[i], err = s.seal("council_stages", "content", stageRow(st.Query, st.Stage, st.Model), cut(st.Content, MaxContent)); err != nil {
			return err
		}
	}
	err := s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		for i, st := range stages {
			if c := st.Detail.Confidence; math.IsNaN(c) || math.IsInf(c, 0) { // JSON has neither
				st.Detail.Confidence, st.Detail.Reported = 0, false
			}
			state := "ok"
			if st.Error != "" {
				state = "failed"
			}
			if _, err := tx.Exec(ctx, `INSERT INTO council_stages (query_id, stage, model_id, state, content, error, detail, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE EXISTS (SELECT 1 FROM council_queries WHERE query_id = $1) ON CONFLICT DO NOTHING`,
				st.Query, st.Stage, st.Model, state, contents[i], cut(st.Error, maxError), asJSON(st.Detail), core.Stamp(tx.Time())); err != nil {
				return err
			}
		}
		return also(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("store stages of the council: %w", err)
	}
	return nil
}

// Stages returns what is stored of a query, by stage and model.
func (s *Store) Stages(ctx context.Context, query string) ([]Stage, error) {
	var rows []struct {
		Stage   string `db:"stage"`
		Model   string `db:"model_id"`
		Content string `db:"content"`
		Error   string `db:"error"`
		Detail  string `db:"detail"`
	}
	if err := s.o.DB.Select(ctx, &rows, `SELECT stage, model_id, content, error, detail FROM council_stages WHERE query_id = $1 ORDER BY stage, model_id`, query); err != nil {
		return nil, fmt.Errorf("read the stages of the council: %w", err)
	}
	out := make([]Stage, len(rows))
	for i, r := range rows {
		content, err := s.open("council_stages", "content", stageRow(query, r.Stage, r.Model), r.Content)
		if err != nil {
			return nil, err
		}
		out[i] = Stage{Query: query, Stage: r.Stage, Model: r.Model, Content: content, Error: r.Error}
		if err := json.Unmarshal([]byte(r.Detail), &out[i].Detail); err != nil {
			return nil, fmt.Errorf("read the stages of the council: %w", err)
		}
	}
	return out, nil
}

// Rounds of a run.
const (
	RoundAnswer = "answer"
	RoundReview = "peer_review"
)

// A Run is one answer or review of a model.
type Run struct {
	Model, Round string
	Response     string // only its beginning is stored
	// Utility, Confidence and Welfare are NaN where there is none.
	Utility, Confidence, Welfare float64
	Winner                       bool
	Corrections                  []string // ids of what was in the prompt
	Detail                       Detail
	Domain                       string // resolved
	State                        string // ok, failed, late
	Error                        string
	// Claim is one number for answers that say the same, from 1; 0 where nothing was compared.
	Claim int
	// Verdict is Correct or Incorrect where reviewers found so.
	Verdict string
}

// A Note is the remarks of judge and reviewers on the answer that is shown.
type Note struct {
	Judge   *choice.Verdict `json:"judge,omitempty"`
	Reviews []Reviewed      `json:"reviews,omitempty"`
	Left    []string        `json:"left_out,omitempty"` // members without an answer, with the reason
	Text    string          `json:"text,omitempty"`     // for the reader
	// Contradict has each pair of models whose answers contradict each other.
	Contradict [][2]string `json:"contradictions,omitempty"`
}

func (n *Note) contradict(a, b string) bool {
	return slices.Contains(n.Contradict, [2]string{a, b}) || slices.Contains(n.Contradict, [2]string{b, a})
}

// A Reviewed is one review.
type Reviewed struct {
	Model string `json:"model"`
	choice.Review
}

// bounded returns the note within what is stored of it.
func (n Note) bounded() Note {
	n.Reviews = slices.Clone(n.Reviews[:min(len(n.Reviews), choice.MaxMembers)])
	for i := range n.Reviews {
		n.Reviews[i].Correction = cut(n.Reviews[i].Correction, maxNote)
		n.Reviews[i].Issues = n.Reviews[i].Issues[:min(len(n.Reviews[i].Issues), choice.MaxPoints)]
	}
	n.Left = n.Left[:min(len(n.Left), choice.MaxMembers)]
	n.Contradict = n.Contradict[:min(len(n.Contradict), choice.MaxMembers*(choice.MaxMembers-1)/2)]
	n.Text = cut(n.Text, maxNote)
	return n
}

// A Result is how a query ended.
type Result struct {
	Query      string
	Failed     bool
	Winner     string // whose answer is shown; provisional in a dispute
	Reason     string // routing, explored, welfare, weight, single, review: why
	Explored   bool
	Confidence string
	Callout    string
	Used       []string // models that answered
	Domains    []choice.Share
	Note       Note
	Calls      int
	MicroUSD   *int64
	Runs       []Run
}

// Finish stores in tx how a query ended, once: a second call changes nothing. In a
// dispute no run is a winner. With the reviews' verdicts the counters of the models change,
// and the question is counted in its domains.
func (s *Store) Finish(ctx context.Context, tx *store.Tx, r Result) error {
	note, err := s.seal("council_queries", "note", r.Query, asJSON(r.Note.bounded()))
	if err != nil {
		return err
	}
	state := Done
	if r.Failed {
		state = Failed
	}
	domains := choice.Normal(r.Domains)
	n, err := tx.Exec(ctx, `UPDATE council_queries SET state = $2, callout_type = $3, confidence = $4, models_used = $5, winner = $6, reason = $7,
		explored = $8, note = $9, calls = $10, micro_usd = $11, ended_at = $12, domain = $13, domains = $14 WHERE query_id = $1 AND state = 'open'`,
		r.Query, state, r.Callout, r.Confidence, asJSON(r.Used), r.Winner, r.Reason, flag(r.Explored), note, r.Calls, r.MicroUSD,
		core.Stamp(tx.Time()), domains[0].Domain, asJSON(domains))
	if err != nil || n == 0 {
		return err
	}
	q, err := s.owner(ctx, tx, r.Query)
	if err != nil {
		return err
	}
	for i := range r.Runs {
		if err := s.addRun(ctx, tx, q, &r, &r.Runs[i], i); err != nil {
			return err
		}
	}
	if err := s.reviewed(ctx, tx, q); err != nil {
		return err
	}
	return asked(ctx, tx, &r, q.Domain)
}

// owner is whose a query is.
type owner struct {
	Query        string `db:"query_id"`
	User         int64  `db:"user_id"`
	Conversation string `db:"conversation_id"`
	Preview      string `db:"query_preview"`
	Domain       string `db:"domain"`
	Winner       string `db:"winner"`
	Callout      string `db:"callout_type"`
	Sealed       string `db:"note"`
	Note         Note   `db:"-"`
}

func (s *Store) owner(ctx context.Context, tx *store.Tx, query string) (q owner, err error) {
	err = tx.Get(ctx, &q, `SELECT query_id, user_id, conversation_id, query_preview, domain, winner, callout_type, note FROM council_queries WHERE query_id = $1`, query)
	if errors.Is(err, store.ErrNoRows) {
		return q, core.Errorf(core.NotFound, "no such query")
	}
	if err != nil {
		return q, err
	}
	if q.Preview, err = s.open("council_queries", "query_preview", q.Query, q.Preview); err == nil {
		q.Note, err = s.noteOf(q.Query, q.Sealed)
	}
	return q, err
}

// noteOf decrypts a query's note.
func (s *Store) noteOf(query, value string) (n Note, err error) {
	text, err := s.open("council_queries", "note", query, value)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &n)
	}
	if err != nil {
		err = fmt.Errorf("query %s: %w", query, err)
	}
	return n, err
}

func (s *Store) addRun(ctx context.Context, tx *store.Tx, q owner, r *Result, run *Run, n int) error {
	id := fmt.Sprintf("%s.%d", r.Query, n+1)
	text, err := s.seal("model_runs", "raw_response", id, core.CutRunes(cut(run.Response, MaxContent), responseRunes))
	if err != nil {
		return err
	}
	corrections := run.Corrections
	if corrections == nil {
		corrections = []string{}
	}
	domain := run.Domain
	if domain == "" {
		domain = q.Domain
	}
	winner := run.Winner && r.Callout != choice.CalloutDisagreement
	d := run.Detail
	_, err = tx.Exec(ctx, `INSERT INTO model_runs (run_id, query_id, user_id, conversation_id, model_id, round, raw_response, utility_score, confidence_score,
			vcg_welfare_score, vcg_winner, corrections_applied, latency_ms, total_ms, input_tokens, output_tokens, micro_usd, raw_domain, domain, state, error, claim, verdict, verdict_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, '', '', $23)`,
		id, r.Query, q.User, q.Conversation, run.Model, run.Round, text, micro(run.Utility), micro(run.Confidence), micro(run.Welfare), flag(winner), asJSON(corrections),
		d.LatencyMS, d.TotalMS, d.InputTokens, d.OutputTokens, d.MicroUSD, cut(d.Domain, choice.MaxDomainName), domain, run.State, cut(run.Error, maxError), run.Claim, core.Stamp(tx.Time()))
	if err != nil {
		return err
	}
	if run.State == "ok" && d.LatencyMS > 0 {
		if err := s.latency(ctx, tx, run.Model, d.LatencyMS); err != nil {
			return err
		}
	}
	if run.Verdict != "" && run.Round == RoundAnswer {
		return s.verdict(ctx, tx, q, id, run.Verdict, ByReview)
	}
	return nil
}
