package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// Bounds of what a chat shows of an ask, in bytes; together they stay below
// the 2,000 characters that the narrowest platform takes in one message.
const (
	maxButton  = 40   // runes of an answer on a button
	maxName    = 40   // runes of a person's name
	maxAsked   = 1200 // of a command or path
	maxLines   = 30   // of a command
	maxSettled = 200  // runes of what was asked, once it is decided
	maxGrants  = 400  // of what the buttons for a session allow
)

// permissionPart shows what a tool wants, whole, with the buttons that decide
// it. Nobody is let say yes to what they were not shown: a command or path that
// is too long for a chat can be refused there, and is allowed in the panel.
func permissionPart(a permission.Ask, req core.PermissionRequest, p permission.Profile, name string) core.Part {
	what, kind := core.Visible(req.Path), "read"
	switch {
	case req.Command != "":
		what, kind = core.Visible(req.Command), "run"
	case req.URL != "":
		what, kind = core.Visible(req.URL), "open"
	case req.Kind == string(tool.Write):
		kind = "change"
	}
	whole, long := len(what) <= maxAsked && strings.Count(what, "\n") < maxLines, 0
	if !whole {
		long = utf8.RuneCountInString(what)
	}
	if req.Command == "" {
		what = strings.ReplaceAll(what, "\n", "\\n")
	}
	// For whom is told by the name that they give themselves, which anybody may
	// choose, and by the number that nobody can.
	text := texts.Text("permission", texts.With{"Tool": req.ToolName, "Kind": kind, "What": what, "TooLong": long, "Owner": p.Owner,
		"Name": core.CutRunes(name, maxName), "User": p.User, "Trust": p.Trust, "Until": req.ExpiresAt.UTC().Format("15:04:05")})
	deny := core.Button{Label: texts.Text("button_deny"), Data: a.Data(permission.OptionDeny)}
	if !whole {
		return core.Part{Text: text, Buttons: [][]core.Button{{deny}}}
	}
	part := core.Part{Buttons: [][]core.Button{{{Label: texts.Text("button_allow"), Data: a.Data(permission.OptionOnce)}, deny}}}
	room := maxGrants
	for i, g := range req.SuggestedGrants {
		line := fmt.Sprintf("\n(%d) %s", i+1, core.Visible(g.Label))
		if len(line) > room {
			continue // the panel has it
		}
		if room == maxGrants {
			text += "\n\n" + texts.Text("permission_grants")
		}
		room -= len(line)
		text += line
		part.Buttons = append(part.Buttons, []core.Button{{Label: texts.Text("button_allow_session", texts.With{"N": i + 1}), Data: a.Data(permission.OptionGrant(i))}})
	}
	part.Text = text
	return part
}

// waitingText tells the person whose call waits that it does.
func waitingText(req core.PermissionRequest) string {
	what := strings.Join(strings.Fields(core.Visible(req.Command+req.Path+req.URL)), " ")
	return texts.Text("permission_waits", texts.With{"Tool": req.ToolName, "What": core.CutRunes(what, maxSettled), "Until": req.ExpiresAt.UTC().Format("15:04:05")})
}

// settledText stands in a chat where an ask was: what was asked, cut to one
// line, above what was decided.
func settledText(a permission.Ask, outcome string) string {
	var body struct {
		Request *core.PermissionRequest `json:"request"`
	}
	what := ""
	switch {
	case json.Unmarshal([]byte(a.Payload), &body) == nil && body.Request != nil:
		r := body.Request
		what = r.ToolName + ": " + core.Visible(r.Command+r.Path+r.URL)
	case a.Kind == permission.KindQuestion:
		for _, q := range questionsOf(a) {
			what = strings.TrimSpace(what + " " + core.Visible(q.Question))
		}
	}
	what = strings.Join(strings.Fields(what), " ")
	if what == "" {
		return outcome
	}
	return core.CutRunes(what, maxSettled) + "\n" + outcome
}
