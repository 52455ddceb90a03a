package skill

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

func run(t *testing.T, x tool.Tool, input string) (tool.Result, error) {
	t.Helper()
	if _, err := x.Touches(nil, json.RawMessage(input)); err != nil {
		return tool.Result{}, err
	}
	return x.Run(context.Background(), &tool.Call{Input: json.RawMessage(input), Turn: &tool.Turn{User: 7}, Progress: func(string) {}})
}

func TestASkillIsListedAndLoadedByItsNameForTheTurn(t *testing.T) {
	x, ok := New([]Entry{{"weekly", "Sums the week\nup"}, {"recipes", "Cooks"}}, func(_ context.Context, turn *tool.Turn, name string) (string, error) {
		if name == "recipes" {
			return "", core.Errorf(core.NotFound, "not for you")
		}
		return name + " body", nil
	})
	if !ok {
		t.Fatal("not offered")
	}
	if err := tool.Check(x); err != nil {
		t.Error(err)
	}
	if !strings.Contains(x.About, "- weekly: Sums the week up\n- recipes: Cooks\n") {
		t.Errorf("list is missing: %s", x.About)
	}
	r, err := run(t, x, `{"skill": "/weekly", "args": "47"}`)
	if err != nil || r.Text != "Skill weekly\nArguments: 47\n\nweekly body" {
		t.Errorf("%q, %v", r.Text, err)
	}
	for input, want := range map[string]string{
		`{"skill": "none"}`:    `there is no skill "none"; there are: weekly, recipes`,
		`{"skill": "recipes"}`: "not for you",
		`{}`:                   "skill is missing",
		`{"name": "weekly"}`:   `"name" is not an input of this tool; its inputs are: skill, args`,
	} {
		if _, err := run(t, x, input); core.TextOf(err) != want {
			t.Errorf("%s: %q, want %q", input, core.TextOf(err), want)
		}
	}
}

func TestWithoutSkillsNothingIsOfferedAndLongOnesAreBounded(t *testing.T) {
	if _, ok := New(nil, nil); ok {
		t.Error("offered without skills")
	}
	list := make([]Entry, 3*maxListed)
	for i := range list {
		list[i] = Entry{"s", strings.Repeat("x", 10_000)}
	}
	x, _ := New(list, func(context.Context, *tool.Turn, string) (string, error) { return strings.Repeat("y", 10*maxBody), nil })
	if len(x.About) > maxListed*(maxAbout+20)+1000 || !strings.Contains(x.About, "and 200 more") {
		t.Errorf("the list has %d bytes", len(x.About))
	}
	r, err := run(t, x, `{"skill": "s"}`)
	if err != nil || len(r.Text) > maxBody+100 {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
}
