package orchestrator

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
)

var (
	//go:embed task.md
	aboutTask string
	//go:embed ask.md
	aboutAsk string
)

// Names of the tools that live here.
const (
	TaskName = "Task"
	AskName  = call.AskName
)

// choiceTime is how long a user may take to decide on interrupted work.
const choiceTime = 24 * time.Hour

// inner returns the tools that need the run itself, as far as they are offered.
func (r *run) inner() []tool.Tool {
	all := []tool.Tool{
		{Name: TaskName, About: aboutTask, Schema: json.RawMessage(call.TaskSchema), Kind: tool.Inner, Effects: true, Timeout: r.o.Limits.RunTime, Run: r.task},
		{Name: AskName, About: aboutAsk, Schema: json.RawMessage(call.AskSchema), Kind: tool.Inner, Effects: true, Timeout: r.o.Limits.RunTime, Run: r.question},
	}
	if r.searches() {
		all = append(all, r.o.Search(r.look))
	}
	return slices.DeleteFunc(all, func(t tool.Tool) bool {
		if !r.agent.Offers(t.Name) {
			return true
		}
		offer := permission.Offered(r.kit.Profile, t, true)
		if !offer.OK {
			r.kit.Missing = append(r.kit.Missing, t.Name+": "+offer.Why)
		}
		return !offer.OK
	})
}

// task runs a sub-turn: the same model and tools, a conversation of its own, of which
// users see the tool calls.
func (r *run) task(ctx context.Context, c *tool.Call) (tool.Result, error) {
	var in struct {
		Description string `json:"description" tool:"required"`
		Prompt      string `json:"prompt" tool:"required"`
	}
	if err := tool.Decode(c.Input, &in); err != nil {
		return tool.Result{}, err
	}
	system, _, err := r.prompt(ctx, r.kitNow().Turn.Dir, true)
	if err != nil {
		return tool.Result{}, err
	}
	asked := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: in.Prompt}}}
	h := &helper{r: r, c: c, side: r.conv.Side(r.t.Run, c.ID)}
	if err := h.keep(asked); err != nil {
		return tool.Result{}, err
	}
	sub := &talk{r: r, name: r.model.About().Name, keep: h.keep, show: h.show, using: h.using, req: &llm.Request{
		System:    system + "\nYou are working on a part of a larger task. Your last message is read by the agent that gave it to you, not by a person.\n",
		Messages:  []llm.Message{{Role: asked.Role, Blocks: asked.Blocks}},
		MaxTokens: r.answerTokens(), Sender: r.sender(r.trust()),
	}}
	for _, t := range r.kit.Tools {
		if t.Name != TaskName && t.Name != AskName {
			sub.tools = append(sub.tools, t)
		}
	}
	sub.offer()
	fault, err := sub.rounds(ctx)
	switch {
	case err != nil:
		return tool.Result{}, err
	case fault != nil:
		return tool.Result{Text: sub.text + "\n" + fault.Text, IsError: true}, nil
	case sub.text == "":
		return tool.Failed("the helper gave no answer"), nil
	}
	return tool.Result{Text: sub.text}, nil
}

// question asks the user.
func (r *run) question(ctx context.Context, c *tool.Call) (tool.Result, error) {
	var in struct {
		Questions json.RawMessage `json:"questions"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil || !call.Askable(in.Questions) {
		return tool.Result{}, core.Errorf(core.Invalid, "questions is a list of 1 to 4, each with a question and 2 to 4 options with labels; see the tool's schema")
	}
	answers, err := r.o.Guard.Ask(ctx, r.kitNow().Profile, in.Questions, r.emit, r.waiting)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: string(answers)}, nil
}
