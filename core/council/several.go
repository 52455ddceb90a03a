package council

import (
	"context"
	"slices"
	"strings"

	"gatehouse/core/council/choice"
	"gatehouse/core/council/claims"
	"gatehouse/core/council/ledger"
	"gatehouse/core/llm"
)

// several has all members answer, and chooses one of the answers.
func (h *hearing) several(ctx context.Context) error {
	h.primary = h.route.Scores[0].Model
	for _, s := range slices.Backward(h.route.Scores) { // answers are stored when the loop of an earlier attempt's primary has ended: no other one runs
		if st, ok := h.stored[place{ledger.StageAnswer, s.Model}]; ok && st.Error == "" {
			h.primary = s.Model
		}
	}
	h.route.Explored = false
	if err := h.gather(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	whole := h.whole()
	if len(whole) == 0 {
		return nil
	}
	if err := h.saveAnswers(ctx); err != nil {
		return err
	}
	// The same in each attempt, whoever is the primary: ballots name answers by their places.
	slices.SortFunc(whole, func(a, b *answer) int { return strings.Compare(a.model, b.model) })
	h.blend()
	for _, a := range whole {
		a.score = choice.Weigh(h.domains, h.member(a))
	}
	if h.winner, h.reason = whole[0], "single"; len(whole) > 1 {
		if err := h.decide(ctx, whole); err != nil || ctx.Err() != nil {
			return err
		}
	}
	switch {
	case h.level == choice.Maximum:
		return h.review(ctx, len(h.members)-1)
	case h.disputed, choice.HighStakes(h.domains[0].Domain):
		return h.review(ctx, 1)
	}
	return nil
}

// decide compares, rates and ranks the answers.
func (h *hearing) decide(ctx context.Context, whole []*answer) error {
	h.stage("comparing")
	bodies := make([]string, len(whole))
	for i, a := range whole {
		bodies[i] = a.text
	}
	of := claims.New(h.question, bodies).Relations()
	if of.Unclear() {
		if err := h.compare(ctx, whole, of); err != nil || ctx.Err() != nil {
			return err
		}
	}
	votes, err := h.rate(ctx, whole, of.Of)
	if err != nil || ctx.Err() != nil {
		return err
	}
	scores := make([]choice.Score, len(whole))
	for i, a := range whole {
		scores[i] = a.score
	}
	standings := choice.Peers(scores, votes)
	for _, s := range standings {
		whole[s.Author].welfare, whole[s.Author].rated = s, true
		h.c.o.Log.DebugContext(ctx, "an answer was rated", "query", h.id, "model", s.Model, "welfare", s.Welfare, "pivot", s.Pivot, "rated", s.Rated)
	}
	h.winner, h.reason = whole[standings[0].Author], "welfare"
	if len(votes) == 0 {
		h.reason = "weight"
	}
	if err := h.choose(ctx, whole); err != nil {
		return err
	}
	for i, claim := range of.Claims() {
		if whole[i].claim = claim; whole[i] == h.winner {
			h.agreeing = of.Agreeing(i)
		}
	}
	for _, p := range of.Contradictions() {
		h.note.Contradict = append(h.note.Contradict, [2]string{whole[p[0]].model, whole[p[1]].model})
	}
	h.disputed = len(h.note.Contradict) > 0
	return nil
}

// choose stores the choice. The one of an earlier attempt remains, although the weights
// may have changed since: it may have been reviewed.
func (h *hearing) choose(ctx context.Context, whole []*answer) error {
	for _, a := range whole {
		if st, ok := h.stored[place{ledger.StageChoice, a.model}]; ok {
			h.winner, h.reason = a, st.Content
			return nil
		}
	}
	return h.save(ctx, []ledger.Stage{{Query: h.id, Stage: ledger.StageChoice, Model: h.winner.model, Content: h.reason}}, nil)
}

// compare has the judge decide what is unclear of the answers. It stays so if the judge does not.
func (h *hearing) compare(ctx context.Context, whole []*answer, of *claims.Relations) error {
	authors := names(whole)
	m := h.storedJudge(ledger.StageJudge)
	if m == nil {
		m = h.judge(authors...)
	}
	if m == nil { // all have answered: the best of them judges
		m = h.judge()
	}
	letters := choice.NewBallot(h.seed, -1, len(whole)).Authors
	req := h.judgeRequest(whole, letters)
	if len(h.afford([]llm.Model{m}, req)) == 0 {
		return nil
	}
	parse := func(reply string) (choice.Verdict, error) { return choice.ParseVerdict(reply, len(whole)) }
	v, a, ok, err := ask(ctx, h, judgement{ledger.StageJudge, m, authors, req, 2, 3 * h.m.Wait}, parse)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if h.reviews = append(h.reviews, a); !ok {
		return nil
	}
	h.note.Judge = &v
	var contradict [][2]int
	for _, p := range v.Pairs {
		contradict = append(contradict, [2]int{letters[p[0]], letters[p[1]]})
	}
	of.Judge(contradict)
	return nil
}

// names returns the authors of answers.
func names(answers []*answer) (list []string) {
	for _, a := range answers {
		list = append(list, a.model)
	}
	return list
}

// rate has each author rate the others' answers.
func (h *hearing) rate(ctx context.Context, whole []*answer, relation func(i, j int) choice.Relation) ([]choice.Vote, error) {
	h.stage("rating")
	type rated struct {
		votes []choice.Vote
		err   error
	}
	raters := make([]int, len(whole))
	for i := range raters {
		raters[i] = i
	}
	results := together(raters, func(i int) (x rated) {
		b := choice.NewBallot(h.seed, i, len(whole))
		m := h.model(whole[i].model)
		req := h.ratingRequest(whole, b)
		if len(h.afford([]llm.Model{m}, req)) == 0 {
			return x
		}
		parse := func(text string) (map[string]float64, error) { return choice.ParseRatings(text, len(b.Authors)) }
		of := make([]string, len(b.Authors)) // by letter
		for letter, author := range b.Authors {
			of[letter] = whole[author].model
		}
		ratings, _, ok, err := ask(ctx, h, judgement{ledger.StageRating, m, of, req, 1, 3 * h.m.Wait}, parse)
		if x.err = err; ok {
			x.votes = b.Votes(ratings, relation)
		}
		return x
	})
	var votes []choice.Vote
	for _, x := range results {
		if x.err != nil {
			return nil, x.err
		}
		votes = append(votes, x.votes...)
	}
	return votes, nil
}
