package ledger

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/store"
)

// Bounds of a page of queries.
const (
	defaultPage = 50
	maxPage     = 200
)

// A View is a query as it is shown.
type View struct {
	ID           string         `json:"query_id"`
	User         int64          `json:"user_id"`
	Conversation string         `json:"conversation_id"`
	Level        string         `json:"accuracy_level"`
	Asked        string         `json:"asked_level"`
	Preview      string         `json:"query_preview"`
	Domain       string         `json:"domain"`
	State        string         `json:"state"`
	Callout      string         `json:"callout_type,omitempty"`
	Confidence   string         `json:"confidence,omitempty"`
	Used         []string       `json:"models_used"`
	Winner       string         `json:"winner,omitempty"`
	Reason       string         `json:"reason,omitempty"`
	Explored     bool           `json:"explored"`
	Calls        int            `json:"calls"`
	MicroUSD     *int64         `json:"micro_usd"`
	Picked       string         `json:"picked,omitempty"`
	Created      time.Time      `json:"created_at"`
	Ended        *time.Time     `json:"ended_at,omitempty"`
	PickUntil    *time.Time     `json:"pick_until,omitempty"`
	Domains      []choice.Share `json:"domains,omitempty"`
	Options      []Option       `json:"disagreement_options,omitempty"`
	Runs         []RunView      `json:"runs,omitempty"`
	Note         *Note          `json:"note,omitempty"`
}

// A RunView is a run as it is shown.
type RunView struct {
	ID          string   `json:"run_id"`
	Model       string   `json:"model_id"`
	Round       string   `json:"round"`
	Response    string   `json:"raw_response"`
	Utility     *float64 `json:"utility_score"`
	Confidence  *float64 `json:"confidence_score"`
	Welfare     *float64 `json:"vcg_welfare_score"`
	Winner      bool     `json:"vcg_winner"`
	Corrections []string `json:"corrections_applied"`
	LatencyMS   int64    `json:"latency_ms"`
	TotalMS     int64    `json:"total_ms"`
	Input       int64    `json:"input_tokens"`
	Output      int64    `json:"output_tokens"`
	MicroUSD    *int64   `json:"micro_usd"`
	RawDomain   string   `json:"raw_domain,omitempty"`
	Domain      string   `json:"domain"`
	State       string   `json:"state"`
	Error       string   `json:"error,omitempty"`
	Claim       int      `json:"claim"`
	Verdict     string   `json:"verdict,omitempty"`
	VerdictBy   string   `json:"verdict_by,omitempty"`
}

type queryRow struct {
	ID           string `db:"query_id"`
	User         int64  `db:"user_id"`
	Conversation string `db:"conversation_id"`
	Level        string `db:"accuracy_level"`
	Asked        string `db:"asked_level"`
	Preview      string `db:"query_preview"`
	Domain       string `db:"domain"`
	Domains      string `db:"domains"`
	State        string `db:"state"`
	Callout      string `db:"callout_type"`
	Confidence   string `db:"confidence"`
	Used         string `db:"models_used"`
	Winner       string `db:"winner"`
	Reason       string `db:"reason"`
	Explored     int    `db:"explored"`
	Note         string `db:"note"`
	Calls        int    `db:"calls"`
	MicroUSD     *int64 `db:"micro_usd"`
	Picked       string `db:"picked"`
	Created      string `db:"created_at"`
	Ended        string `db:"ended_at"`
}

const queryColumns = `query_id, user_id, conversation_id, accuracy_level, asked_level, query_preview, domain, domains, state, callout_type, confidence, models_used, winner, reason, explored, note, calls, micro_usd, picked, created_at, ended_at`

func (s *Store) view(r *queryRow) (v View, err error) {
	v = View{ID: r.ID, User: r.User, Conversation: r.Conversation, Level: r.Level, Asked: r.Asked, Domain: r.Domain, State: r.State, Callout: r.Callout, Confidence: r.Confidence,
		Winner: r.Winner, Reason: r.Reason, Explored: r.Explored != 0, Calls: r.Calls, MicroUSD: r.MicroUSD, Picked: r.Picked}
	if v.Preview, err = s.open("council_queries", "query_preview", r.ID, r.Preview); err != nil {
		return v, err
	}
	if err = json.Unmarshal([]byte(r.Used), &v.Used); err != nil {
		return v, fmt.Errorf("query %s: %w", r.ID, err)
	}
	if v.Used == nil {
		v.Used = []string{}
	}
	if v.Created, err = core.ParseStamp(r.Created); err != nil {
		return v, fmt.Errorf("query %s: %w", r.ID, err)
	}
	if r.Ended != "" {
		at, err := core.ParseStamp(r.Ended)
		if err != nil {
			return v, fmt.Errorf("query %s: %w", r.ID, err)
		}
		v.Ended = &at
		if until := at.Add(PickOpen); v.Callout == choice.CalloutDisagreement && v.Picked == "" && s.o.Clock.Now().Before(until) {
			v.PickUntil = &until
		}
	}
	return v, nil
}

// A Filter chooses queries.
type Filter struct {
	User         int64 // 0: of all users
	Conversation string
	Disputed     bool // only those with contradicting answers
	Limit        int  // 0 is 50; at most 200
	Cursor       string
}

// Queries returns a page of queries, the newest first, and the cursor of the next; "" at
// the end. A cursor of another list is core.Invalid.
func (s *Store) Queries(ctx context.Context, f Filter) (page []View, next string, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultPage
	}
	f.Limit = min(f.Limit, maxPage)
	var c store.Conditions
	if f.User != 0 {
		c.And("user_id = ?", f.User)
	}
	if f.Conversation != "" {
		c.And("conversation_id = ?", f.Conversation)
	}
	if f.Disputed {
		c.And("callout_type = 'disagreement'")
	}
	if f.Cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		at, id, ok := strings.Cut(string(b), " ")
		if _, bad := core.ParseStamp(at); err != nil || !ok || bad != nil {
			return nil, "", core.Errorf(core.Invalid, "cursor: not one of this list")
		}
		c.And("(created_at < ? OR created_at = ? AND query_id < ?)", at, at, id)
	}
	where := ""
	if len(c.Where) > 0 {
		where = "WHERE " + strings.Join(c.Where, " AND ")
	}
	var rows []queryRow
	if err := s.o.DB.Select(ctx, &rows, fmt.Sprintf(`SELECT `+queryColumns+` FROM council_queries %s ORDER BY created_at DESC, query_id DESC LIMIT %d`, where, f.Limit+1), c.Args...); err != nil {
		return nil, "", fmt.Errorf("read the council's queries: %w", err)
	}
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		last := rows[f.Limit-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(last.Created + " " + last.ID))
	}
	page = make([]View, len(rows))
	for i := range rows {
		if page[i], err = s.view(&rows[i]); err != nil {
			return nil, "", err
		}
	}
	return page, next, nil
}

// Query returns a query with its runs, and the options of a dispute. user 0 reads those
// of all users; one that is not the user's is core.NotFound.
func (s *Store) Query(ctx context.Context, user int64, id string) (View, error) {
	var r queryRow
	err := s.o.DB.Get(ctx, &r, `SELECT `+queryColumns+` FROM council_queries WHERE query_id = $1`, id)
	if errors.Is(err, store.ErrNoRows) || err == nil && user != 0 && r.User != user {
		return View{}, core.Errorf(core.NotFound, "no such query")
	}
	if err != nil {
		return View{}, fmt.Errorf("read the council's query: %w", err)
	}
	v, err := s.view(&r)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal([]byte(r.Domains), &v.Domains); err != nil {
		return v, fmt.Errorf("query %s: %w", id, err)
	}
	if r.Note != "" {
		note, err := s.noteOf(id, r.Note)
		if v.Note = &note; err != nil {
			return v, err
		}
	}
	if v.Options, err = s.Options(ctx, r.User, id); err != nil {
		return v, err
	}
	v.Runs, err = s.runs(ctx, id)
	return v, err
}

// Last returns the last query of a conversation that has ended, with its runs, or
// core.NotFound.
func (s *Store) Last(ctx context.Context, user int64, conversation string) (View, error) {
	var id string
	err := s.o.DB.Get(ctx, &id, `SELECT query_id FROM council_queries WHERE conversation_id = $1 AND user_id = $2 AND state = 'done' ORDER BY created_at DESC, query_id DESC LIMIT 1`, conversation, user)
	if errors.Is(err, store.ErrNoRows) {
		return View{}, core.Errorf(core.NotFound, "no answer of a council in this conversation")
	}
	if err != nil {
		return View{}, fmt.Errorf("read the council's last query: %w", err)
	}
	return s.Query(ctx, user, id)
}

func (s *Store) runs(ctx context.Context, query string) ([]RunView, error) {
	var rows []struct {
		ID          string `db:"run_id"`
		Model       string `db:"model_id"`
		Round       string `db:"round"`
		Response    string `db:"raw_response"`
		Utility     *int64 `db:"utility_score"`
		Confidence  *int64 `db:"confidence_score"`
		Welfare     *int64 `db:"vcg_welfare_score"`
		Winner      int    `db:"vcg_winner"`
		Corrections string `db:"corrections_applied"`
		LatencyMS   int64  `db:"latency_ms"`
		TotalMS     int64  `db:"total_ms"`
		Input       int64  `db:"input_tokens"`
		Output      int64  `db:"output_tokens"`
		MicroUSD    *int64 `db:"micro_usd"`
		RawDomain   string `db:"raw_domain"`
		Domain      string `db:"domain"`
		State       string `db:"state"`
		Error       string `db:"error"`
		Claim       int    `db:"claim"`
		Verdict     string `db:"verdict"`
		VerdictBy   string `db:"verdict_by"`
	}
	if err := s.o.DB.Select(ctx, &rows, `SELECT run_id, model_id, round, raw_response, utility_score, confidence_score, vcg_welfare_score, vcg_winner, corrections_applied,
		latency_ms, total_ms, input_tokens, output_tokens, micro_usd, raw_domain, domain, state, error, claim, verdict, verdict_by
		FROM model_runs WHERE query_id = $1 ORDER BY round, vcg_winner DESC, vcg_welfare_score DESC, run_id`, query); err != nil {
		return nil, fmt.Errorf("read the council's runs: %w", err)
	}
	out := make([]RunView, len(rows))
	for i, r := range rows {
		text, err := s.open("model_runs", "raw_response", r.ID, r.Response)
		if err != nil {
			return nil, err
		}
		out[i] = RunView{ID: r.ID, Model: r.Model, Round: r.Round, Response: text, Utility: share(r.Utility), Confidence: share(r.Confidence), Welfare: share(r.Welfare), Winner: r.Winner != 0,
			LatencyMS: r.LatencyMS, TotalMS: r.TotalMS, Input: r.Input, Output: r.Output, MicroUSD: r.MicroUSD, RawDomain: r.RawDomain, Domain: r.Domain,
			State: r.State, Error: r.Error, Claim: r.Claim, Verdict: r.Verdict, VerdictBy: r.VerdictBy}
		if err := json.Unmarshal([]byte(r.Corrections), &out[i].Corrections); err != nil {
			return nil, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return out, nil
}
