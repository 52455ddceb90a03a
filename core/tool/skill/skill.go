// Package skill holds the tool that loads a skill: instructions for one kind of
// task, which the prompt only lists.
package skill

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/tool"
)

var (
	//go:embed skill.md
	about string
	//go:embed skill.json
	schema json.RawMessage
)

// Limits of what the tool returns.
const (
	maxListed = 100     // skills that the description lists; more are only counted
	maxAbout  = 300     // bytes of one skill's description
	maxBody   = 100_000 // bytes of a skill
)

// An Entry is one skill as the list names it. Name is what the model gives back.
type Entry struct {
	Name, About string
}

// A Load finds the body of the skill name for a turn. An unknown one, or one
// that is not for this turn, is core.NotFound.
type Load func(ctx context.Context, t *tool.Turn, name string) (body string, err error)

// New makes Skill with list in its description. Both are fixed: make it again
// for each run, so that skills that change are returned as they are now. Without skills
// there is nothing to offer; then ok is false.
func New(list []Entry, load Load) (x tool.Tool, ok bool) {
	run := func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		in, err := decode(c.Input)
		if err != nil {
			return tool.Result{}, err
		}
		if !slices.ContainsFunc(list, func(e Entry) bool { return e.Name == in.Name }) {
			return tool.Result{}, core.Errorf(core.NotFound, "there is no skill %q; there are: %s", core.CutRunes(in.Name, 64), names(list))
		}
		body, err := load(ctx, c.Turn, in.Name)
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Text: text(in, body)}, nil
	}
	return tool.Tool{
		Name: "Skill", About: about + "\n" + listed(list), Schema: schema, Kind: tool.Inner,
		Touches: func(_ *tool.Turn, raw json.RawMessage) (tool.Access, error) {
			_, err := decode(raw)
			return tool.Access{}, err
		},
		Run: run,
	}, len(list) > 0
}

type input struct {
	Name string `json:"skill" tool:"required"`
	Args string `json:"args"`
}

// decode also takes "/name", as users write it.
func decode(raw json.RawMessage) (in input, err error) {
	err = tool.Decode(raw, &in)
	in.Name = strings.TrimPrefix(strings.TrimSpace(in.Name), "/")
	return in, err
}

func text(in input, body string) string {
	if len(body) > maxBody {
		body = core.CutRunes(body, maxBody) + fmt.Sprintf("\n(cut after %d bytes)", maxBody)
	}
	head := "Skill " + in.Name + "\n"
	if in.Args != "" {
		head += "Arguments: " + in.Args + "\n"
	}
	return head + "\n" + body
}

func listed(list []Entry) string {
	var b strings.Builder
	b.WriteString("Skills:\n")
	for i, e := range list {
		if i == maxListed {
			fmt.Fprintf(&b, "- and %d more\n", len(list)-maxListed)
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", core.CleanName(e.Name), core.CutRunes(strings.Join(strings.Fields(e.About), " "), maxAbout))
	}
	return b.String()
}

func names(list []Entry) string {
	var out []string
	for i, e := range list {
		if i == maxListed {
			break
		}
		out = append(out, core.CleanName(e.Name))
	}
	return strings.Join(out, ", ")
}
