package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/store"
)

type nodeRow struct {
	ID      string `db:"node_id"`
	Name    string `db:"display_name"`
	Aliases string `db:"aliases"`
	Queries int    `db:"query_count"`
	Seen    string `db:"last_seen"`
}

// Tree returns the domains in effect, as they were at most a minute ago.
func (s *Store) Tree(ctx context.Context) (*domains.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	if s.tree != nil && now.Sub(s.read) < time.Minute {
		return s.tree, nil
	}
	t, err := readTree(ctx, s.o.DB)
	if err == nil {
		s.tree, s.read = t, now
	}
	return t, err
}

func (s *Store) forgetTree() {
	s.mu.Lock()
	s.tree = nil
	s.mu.Unlock()
}

func readTree(ctx context.Context, q store.Queryer) (*domains.Tree, error) {
	var rows []nodeRow
	if err := q.Select(ctx, &rows, `SELECT node_id, display_name, aliases, query_count, last_seen FROM domain_nodes ORDER BY depth, node_id`); err != nil {
		return nil, fmt.Errorf("read the domains: %w", err)
	}
	nodes := make([]domains.Node, len(rows))
	for i, r := range rows {
		nodes[i] = domains.Node{ID: r.ID, Name: r.Name, Queries: r.Queries}
		if err := json.Unmarshal([]byte(r.Aliases), &nodes[i].Aliases); err != nil {
			return nil, fmt.Errorf("domain %s: %w", r.ID, err)
		}
		if r.Seen != "" {
			at, err := core.ParseStamp(r.Seen)
			if err != nil {
				return nil, fmt.Errorf("domain %s: %w", r.ID, err)
			}
			nodes[i].LastSeen = at
		}
	}
	return domains.NewTree(nodes), nil
}

// asked counts a question in the likeliest of its domains and in those that members named, once
// in each. Domains that were deleted are left out.
func asked(ctx context.Context, tx *store.Tx, r *Result, likeliest string) error {
	ids := []string{likeliest}
	for _, run := range r.Runs {
		if run.Round == RoundAnswer && run.Domain != "" {
			ids = append(ids, run.Domain)
		}
	}
	slices.Sort(ids) // transactions lock them in one order
	for _, id := range slices.Compact(ids) {
		if domains.IsRoot(id) {
			if err := seen(ctx, tx, domains.Node{ID: id}, 1); err != nil {
				return err
			}
			continue
		}
		if _, err := tx.Exec(ctx, `UPDATE domain_nodes SET query_count = query_count + 1, last_seen = $2 WHERE node_id = $1`, id, core.Stamp(tx.Time())); err != nil {
			return err
		}
	}
	return nil
}

// seen inserts a node where it is not stored, and counts sightings.
func seen(ctx context.Context, tx *store.Tx, n domains.Node, count int) error {
	if n.Name == "" {
		for _, r := range domains.Roots() {
			if r.ID == n.ID {
				n.Name = r.Name
			}
		}
	}
	if n.Name == "" {
		n.Name = n.ID
	}
	if n.Aliases == nil {
		n.Aliases = []string{}
	}
	parent := sql.NullString{String: domains.Parent(n.ID), Valid: domains.Parent(n.ID) != ""}
	_, err := tx.Exec(ctx, `INSERT INTO domain_nodes (node_id, parent_id, depth, display_name, aliases, query_count, is_l0_root, last_seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (node_id) DO UPDATE SET query_count = domain_nodes.query_count + $6, last_seen = $8`,
		n.ID, parent, domains.Depth(n.ID), n.Name, asJSON(n.Aliases), count, flag(domains.IsRoot(n.ID)), core.Stamp(tx.Time()))
	return err
}

// ResolveDomain returns the domain of a name that a model used. A name of no node is stored
// as a candidate, and counted unless it was for this answer (counted). The nearest node that
// was stored for it stays while it is in the tree and nearer than the one found now.
func (s *Store) ResolveDomain(ctx context.Context, model, raw string, counted bool, near func(name string, labels []string) []float64) (domains.Resolution, error) {
	tree, err := s.Tree(ctx)
	if err != nil {
		return domains.Resolution{}, err
	}
	raw = cut(raw, choice.MaxDomainName)
	r := tree.Resolve(raw, near)
	if !r.Candidate || raw == "" {
		return r, nil
	}
	err = s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		var row struct {
			Models     string `db:"model_sources"`
			Nearest    string `db:"nearest_node"`
			Similarity int64  `db:"similarity"`
		}
		err := tx.Get(ctx, &row, `SELECT model_sources, nearest_node, similarity FROM domain_candidates WHERE raw_string = $1`+tx.ForUpdate(), raw)
		if err != nil && !errors.Is(err, store.ErrNoRows) {
			return err
		}
		models := []string{}
		if row.Models != "" {
			if err := json.Unmarshal([]byte(row.Models), &models); err != nil {
				return err
			}
		}
		if !slices.Contains(models, model) && len(models) < choice.MaxMembers {
			models = append(models, model)
			slices.Sort(models)
		}
		r = tree.Nearer(r, domains.Candidate{Nearest: row.Nearest, Similarity: float64(row.Similarity) / 1e6})
		_, err = tx.Exec(ctx, `INSERT INTO domain_candidates (raw_string, nearest_node, similarity, query_count, model_sources, first_seen, last_seen)
			VALUES ($1, $2, $3, 1, $4, $5, $5)
			ON CONFLICT (raw_string) DO UPDATE SET nearest_node = $2, similarity = $3, query_count = domain_candidates.query_count + $6, model_sources = $4, last_seen = $5`,
			raw, r.Nearest, *micro(r.Similarity), asJSON(models), core.Stamp(tx.Time()), 1-flag(counted))
		return err
	})
	if err != nil {
		return r, fmt.Errorf("count a domain: %w", err)
	}
	return r, nil
}

// Candidates returns the names that models use and that are no node's, the most
// frequent first.
func (s *Store) Candidates(ctx context.Context, limit int) ([]domains.Candidate, error) {
	return candidates(ctx, s.o.DB, 0, limit)
}

func candidates(ctx context.Context, q store.Queryer, least, limit int) ([]domains.Candidate, error) {
	var rows []struct {
		Raw        string `db:"raw_string"`
		Nearest    string `db:"nearest_node"`
		Similarity int64  `db:"similarity"`
		Count      int    `db:"query_count"`
		Models     string `db:"model_sources"`
		First      string `db:"first_seen"`
		Last       string `db:"last_seen"`
	}
	if err := q.Select(ctx, &rows, `SELECT raw_string, nearest_node, similarity, query_count, model_sources, first_seen, last_seen FROM domain_candidates
		WHERE query_count >= $1 ORDER BY query_count DESC, raw_string LIMIT $2`, least, limit); err != nil {
		return nil, fmt.Errorf("read candidates: %w", err)
	}
	out := make([]domains.Candidate, len(rows))
	for i, r := range rows {
		c := domains.Candidate{Raw: r.Raw, Nearest: r.Nearest, Similarity: float64(r.Similarity) / 1e6, Count: r.Count}
		err := json.Unmarshal([]byte(r.Models), &c.Models)
		if err == nil {
			c.First, err = core.ParseStamp(r.First)
		}
		if err == nil {
			c.Last, err = core.ParseStamp(r.Last)
		}
		if err != nil {
			return nil, fmt.Errorf("candidate %q: %w", r.Raw, err)
		}
		out[i] = c
	}
	return out, nil
}

// Review promotes candidates to nodes and retires nodes, and returns how many of both.
func (s *Store) Review(ctx context.Context) (n int, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		tree, err := readTree(ctx, tx)
		if err != nil {
			return err
		}
		list, err := candidates(ctx, tx, domains.MinSightings, MaxCandidates)
		if err != nil {
			return err
		}
		known := map[string][]evidence{} // by domain; a domain's is all read at once
		for _, c := range list {
			parent := tree.Place(c).Domain
			if known[parent] == nil && len(c.Models) >= domains.MinModels { // else it is not promoted
				if known[parent], err = readEvidence(ctx, tx, parent); err != nil {
					return err
				}
			}
			node, ok := tree.Promote(c, sides(known[parent], c.Raw))
			if !ok {
				continue
			}
			delete(known, parent)
			if err := s.promote(ctx, tx, c, node); err != nil {
				return err
			}
			if tree, err = readTree(ctx, tx); err != nil {
				return err
			}
			n++
		}
		for _, id := range tree.Retired(tx.Time()) {
			if err := retire(ctx, tx, tree, id); err != nil {
				return err
			}
			if tree, err = readTree(ctx, tx); err != nil { // the parent has its names now
				return err
			}
			n++
		}
		if n > 0 {
			tx.OnCommit(s.forgetTree)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("review the domains: %w", err)
	}
	return n, nil
}

// evidence is how the answers of a model in a domain are judged, of those for which it named a
// candidate, or of all others ("").
type evidence struct {
	Model string  `db:"model_id"`
	Named string  `db:"named"`
	Wins  float64 `db:"wins"`
	Runs  float64 `db:"runs"`
}

// readEvidence returns the evidence in a domain, in the order of the models; never nil.
func readEvidence(ctx context.Context, tx *store.Tx, domain string) ([]evidence, error) {
	out := []evidence{}
	err := tx.Select(ctx, &out, `SELECT model_id, coalesce(raw_string, '') AS named, sum(CASE WHEN verdict = 'correct' THEN 1 ELSE 0 END) AS wins, count(*) AS runs
		FROM model_runs LEFT JOIN domain_candidates ON raw_string = raw_domain WHERE domain = $1 AND round = 'answer' AND verdict <> '' GROUP BY 1, 2 ORDER BY 1, 2`, domain)
	return out, err
}

// sides returns the evidence of each model inside of a candidate and in the rest of its domain.
func sides(of []evidence, raw string) (out []domains.Side) {
	for _, e := range of {
		if len(out) == 0 || out[len(out)-1].Model != e.Model {
			out = append(out, domains.Side{Model: e.Model})
		}
		side := &out[len(out)-1].Others
		if e.Named == raw {
			side = &out[len(out)-1].In
		}
		side.Wins, side.Runs = side.Wins+e.Wins, side.Runs+e.Runs
	}
	return out
}

// promote makes a candidate a node; the answers that named it are in that domain.
func (s *Store) promote(ctx context.Context, tx *store.Tx, c domains.Candidate, n domains.Node) error {
	if err := seen(ctx, tx, domains.Node{ID: domains.Parent(n.ID)}, 0); err != nil {
		return err
	}
	if err := seen(ctx, tx, n, c.Count); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM domain_candidates WHERE raw_string = $1`, c.Raw); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO model_domains (model_id, domain, wins, runs)
		SELECT model_id, $1, sum(CASE WHEN verdict = 'correct' THEN weight ELSE 0 END), sum(weight)
		FROM (SELECT model_id, verdict, CASE verdict_by WHEN 'silence' THEN CAST($4 AS BIGINT) WHEN 'review' THEN CAST($5 AS BIGINT) ELSE CAST($6 AS BIGINT) END AS weight
			FROM model_runs WHERE domain = $2 AND raw_domain = $3 AND round = 'answer' AND verdict <> '') AS judged GROUP BY model_id
		ON CONFLICT DO NOTHING`, n.ID, domains.Parent(n.ID), c.Raw, *micro(weight(BySilence)), *micro(weight(ByReview)), *micro(weight(ByPick))); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE model_runs SET domain = $1 WHERE domain = $2 AND raw_domain = $3`, n.ID, domains.Parent(n.ID), c.Raw)
	return err
}

// retire removes a node; its names and answers are its parent's.
func retire(ctx context.Context, tx *store.Tx, tree *domains.Tree, id string) error {
	node, _ := tree.Node(id)
	parent, _ := tree.Node(domains.Parent(id))
	aliases := parent.Aliases
	for _, a := range append(node.Aliases, node.Name) {
		if !slices.Contains(aliases, a) && len(aliases) < domains.MaxAliases {
			aliases = append(aliases, a)
		}
	}
	if err := seen(ctx, tx, domains.Node{ID: parent.ID}, 0); err != nil {
		return err
	}
	for _, q := range []struct {
		text string
		args []any
	}{
		{`UPDATE domain_nodes SET aliases = $2, query_count = query_count + $3, last_seen = $4 WHERE node_id = $1`, []any{parent.ID, asJSON(aliases), node.Queries, core.Stamp(parent.LastSeen)}},
		{`UPDATE model_runs SET domain = $2 WHERE domain = $1`, []any{id, parent.ID}},
		{`DELETE FROM model_domains WHERE domain = $1`, []any{id}}, // the parent's has it already
		{`DELETE FROM domain_nodes WHERE node_id = $1`, []any{id}},
	} {
		if _, err := tx.Exec(ctx, q.text, q.args...); err != nil {
			return err
		}
	}
	return nil
}

// reviewEvery is the interval of promotions and retirements.
const reviewEvery = time.Hour
