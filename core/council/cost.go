package council

import (
	"slices"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

// What calls are expected to take, in tokens.
const (
	answerTokens = 1000
	replyTokens  = 300
)

// size returns about how many tokens a request has.
func size(req *llm.Request) int64 {
	n := len(req.System)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			n += len(b.Text) + len(b.Input) + 6000*len(b.Media)
		}
	}
	return int64(n / 4)
}

// expected returns what a call is expected to cost; known is false where its model
// has no price.
func (h *hearing) expected(m llm.Model, input, output int64) (microUSD int64, known bool) {
	return h.s.Cost(m.About().Name, core.Tokens{Input: input, Output: output})
}

// affordable returns the highest level up to the one that was asked for whose expected
// cost is within the limit of a question; without a limit that level itself. The lowest
// is always affordable. A model without a price counts as too dear: what it costs is
// not known.
func (h *hearing) affordable(asked string) string {
	levels := choice.Levels()
	at := slices.Index(levels, asked)
	for h.m.Most > 0 && at > 0 && !h.fits(levels[at]) {
		at--
	}
	return levels[at]
}

func (h *hearing) fits(level string) bool {
	input := size(h.s.Prompt)
	var sum, dearest int64
	for _, m := range h.m.Models {
		c, known := h.expected(m, input, answerTokens)
		if !known {
			return false
		}
		sum, dearest = sum+c, max(dearest, c)
	}
	if level == choice.Fast {
		return dearest <= h.m.Most
	}
	n := int64(len(h.m.Models))
	var reply int64 // the dearest member's, about one answer
	for _, m := range h.m.Models {
		c, _ := h.expected(m, 2*answerTokens, replyTokens)
		reply = max(reply, c)
	}
	if h.m.Judge != nil {
		c, known := h.expected(h.m.Judge, 2*answerTokens, replyTokens)
		if !known {
			return false
		}
		reply = max(reply, c)
	}
	switch level {
	case choice.Balanced:
		return dearest+reply <= h.m.Most
	case choice.High: // answers, ratings, judge and one review
		return sum+(n+2)*reply <= h.m.Most
	}
	return sum+(2*n+1)*reply+dearest <= h.m.Most
}

// afford returns those of the models that can be asked within the limit of the question,
// from what it has cost so far and what the calls that run are expected to cost; recordCall ends
// each of theirs. What is left out is noted once.
func (h *hearing) afford(models []llm.Model, req *llm.Request) []llm.Model {
	list := h.reserve(models, req)
	h.mu.Lock()
	defer h.mu.Unlock()
	if note := texts.Text("council_cost"); len(list) < len(models) && !slices.Contains(h.notes, note) {
		h.notes = append(h.notes, note)
	}
	return list
}

// reserve is afford, without the note.
func (h *hearing) reserve(models []llm.Model, req *llm.Request) []llm.Model {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, costs := h.payable(models, req)
	if h.reserved == nil {
		h.reserved = map[string]int64{}
	}
	for i, c := range costs {
		h.reserved[list[i].About().Name] += c
	}
	return list
}

// affords reports whether m can be asked within the limit. It notes nothing: the answer is
// the same without it.
func (h *hearing) affords(m llm.Model, req *llm.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, _ := h.payable([]llm.Model{m}, req)
	return len(list) == 1
}

// payable returns those of the models that can be asked, and within a limit what the call of
// each is expected to cost; h.mu is held.
func (h *hearing) payable(models []llm.Model, req *llm.Request) (list []llm.Model, costs []int64) {
	if h.m.Most <= 0 {
		return models, nil
	}
	input, output := size(req), int64(answerTokens)
	if req.Format != nil {
		output = replyTokens
	}
	left := h.m.Most - h.spent
	for _, c := range h.reserved {
		left -= c
	}
	for _, m := range models {
		if c, known := h.expected(m, input, output); known && c <= left {
			left -= c
			list, costs = append(list, m), append(costs, c)
		}
	}
	return list, costs
}

// overCost is the fault of a member that was not asked.
func overCost() *llm.Fault {
	return &llm.Fault{Code: "budget", Text: texts.Text("council_cost")}
}
