package orchestrator

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/bill"
)

// Parts of a model's window.
const (
	outputPart = 4   // an answer takes at most a quarter of it
	resultPart = 2   // a tool's result takes half of what the conversation may, at 4 bytes a token
	leastPart  = 8   // what is left for the conversation, however long the prompt is
	fitPart    = 80  // percent of what is left: tokens are estimated
	mostPart   = 60  // percent of the window
	leastSize  = 200 // tokens below which no conversation is cut
)

// window returns the tokens that the run's model takes, 0 if no one knows: a setting, what
// is known of the model, or the limit that its provider reported when it refused more.
func (r *run) window() int {
	w := 0
	if r.model != nil {
		w = r.model.About().Window
	}
	if r.learnt > 0 && (w == 0 || r.learnt < w) {
		w = r.learnt
	}
	return w
}

// budget returns tokens as far as the model's window allows them, in addition to the
// prompt, the tools and an answer.
func (r *run) budget(tokens int) int {
	if r.maxTokens > 0 {
		tokens = min(tokens, r.maxTokens)
	}
	w := r.window()
	if w == 0 {
		return tokens
	}
	room := min(w*mostPart/100, (w-r.answerTokens()-r.fixed)*fitPart/100)
	return min(tokens, max(room, w/leastPart))
}

// answerTokens returns the limit of an answer in the model's window.
func (r *run) answerTokens() int {
	most := r.o.Limits.OutputTokens
	if w := r.window(); w > 0 {
		most = min(most, max(1, w/outputPart))
	}
	return most
}

// resultSize returns how many bytes of a tool's result the model reads.
func (r *run) resultSize() int { return min(maxResult, r.budget(runBudget)*4/resultPart) }

// fix notes what each request takes in front of the conversation.
func (r *run) fix(system string) {
	req := llm.Request{System: system}
	for _, x := range r.tools() {
		req.Tools = append(req.Tools, llm.Tool{Name: x.Name, About: x.About, Schema: x.Schema})
	}
	r.fixed = bill.Size(&req) / 4
}

// squeeze makes a request that the provider refused as too long shorter: it sums up the
// conversation's older part, or leaves it out where that fails, and limits the answer. ok
// is false if there is nothing to leave out. It is done once in a run.
func (t *talk) squeeze(ctx context.Context, f *llm.Fault) (ok bool, err error) {
	r := t.r
	if !t.own || t.squeezed {
		return false, nil
	}
	t.squeezed = true
	r.learnt = f.Window
	before, output := bill.Size(&llm.Request{Messages: t.req.Messages}), t.req.MaxTokens
	t.req.MaxTokens = r.outputTokens()
	if before/4 <= r.budget(runBudget) {
		if t.req.MaxTokens < output { // the room for the answer was too much
			return true, nil
		}
		r.maxTokens = max(leastSize, before/4/2) // its tokens are shorter than estimated
	}
	c, found, err := r.conv.Compactable(r.budget(runBudget))
	if err != nil {
		return false, err
	}
	if found {
		if _, err := t.shorten(ctx, c, r.budget(runBudget)); err != nil || ctx.Err() != nil {
			return false, err
		}
	}
	past, _, err := r.conv.History(r.budget(runBudget))
	if err != nil {
		return false, err
	}
	messages := r.messagesForModel(past, r.memory.Relevant)
	if after := bill.Size(&llm.Request{Messages: messages}); len(messages) == 0 || after >= before {
		return false, nil
	}
	t.req.Messages = messages
	t.show(core.Warning{Code: "compacted", Message: "The conversation was too long for the model: its older part was summed up or left out."})
	return true, nil
}
