package guard

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/diff"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
)

// change returns what a call would change in a file, and the state of that file. Both
// are empty for a call of which nothing can be shown.
func change(ctx context.Context, t tool.Tool, c *tool.Call) (*diff.File, string) {
	if t.Change == nil || c.Turn == nil || len(c.Access.Write) != 1 {
		return nil, ""
	}
	name := c.Access.Write[0]
	made, err := t.Change(ctx, c)
	f := diff.File{Path: name, Problem: "the gateway could not read the file"}
	switch {
	case err == nil:
		f = diff.Files(name, made.Before, made.After)
	case core.KindOf(err) != core.Other:
		f.Problem = core.TextOf(err)
	}
	return &f, made.State
}

// asShown returns the decision on an approved call: allowed, unless the call is not the
// one that was approved, or its file is not what was shown.
func asShown(ctx context.Context, a ask.Ask, t tool.Tool, c *tool.Call, d permission.Decision) permission.Decision {
	body, err := a.Call()
	if err != nil || body.Input != ask.InputHash(t.Name, c.Input) {
		return d.With(permission.Deny, permission.RuleChanged, "This call is not the one that was approved, so it was not made.")
	}
	if body.Shown == "" {
		return d
	}
	if _, state := change(ctx, t, c); state != body.Shown {
		return d.With(permission.Deny, permission.RuleChanged,
			"The file changed after this call was shown for approval, so the call was not made. Read the file again and repeat the call; it will be shown again.")
	}
	d.Shown = body.Shown
	return d
}
