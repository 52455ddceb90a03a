package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
)

// Bounds of what a chat shows of an ask, in bytes; together they stay below
// the 2,000 characters that the narrowest platform takes in one message.
const (
	maxButton  = 40   // of a pattern on a button
	maxAsked   = 1200 // of a command or path
	maxLines   = 30   // of a command
	maxSettled = 200  // runes of what was asked, once it is decided
	maxGrants  = 450  // of patterns that are too long for their buttons
)

// permissionPart shows what a tool wants, whole, with the buttons that decide
// it. Nobody is let say yes to what they were not shown: a command or path that
// is too long for a chat can be refused there, and is allowed in the panel.
func permissionPart(a permission.Ask, req core.PermissionRequest, p permission.Profile) core.Part {
	whom := fmt.Sprintf("the owner or an admin (user %d)", p.User)
	if !p.Owner {
		whom = fmt.Sprintf("a guest (user %d)", p.User)
	}
	what, verb := visible(req.Path), "read"
	switch {
	case req.Command != "":
		what, verb = visible(req.Command), "run"
	case req.Kind == string(tool.Write):
		verb = "change"
	}
	whole := len(what) <= maxAsked && strings.Count(what, "\n") < maxLines
	text := req.ToolName + " wants to " + verb
	switch {
	case !whole:
		text += fmt.Sprintf(" something of %d characters: too long to be shown here. Read it in the panel under Approvals, and allow it there.", utf8.RuneCountInString(what))
	case req.Command != "":
		text += ":\n\n" + what + "\n"
	default:
		text += " " + strings.ReplaceAll(what, "\n", "\\n")
	}
	text += fmt.Sprintf("\nFor %s, at trust %s. Without an answer by %s UTC it is refused.", whom, p.Trust, req.ExpiresAt.UTC().Format("15:04:05"))
	deny := core.Button{Label: "Deny", Data: a.Data(permission.OptionDeny)}
	if !whole {
		return core.Part{Text: text, Buttons: [][]core.Button{{deny}}}
	}
	part := core.Part{Buttons: [][]core.Button{{{Label: "Allow once", Data: a.Data(permission.OptionOnce)}, deny}}}
	room := maxGrants
	for i, g := range req.SuggestedGrants {
		label := visible(g.Label)
		if len(label) > maxButton {
			line := fmt.Sprintf("\n(%d) %s", i+1, label)
			if len(line) > room {
				continue // the panel has it
			}
			room -= len(line)
			text, label = text+line, fmt.Sprintf("(%d)", i+1)
		}
		part.Buttons = append(part.Buttons, []core.Button{{Label: "Allow in this session: " + label, Data: a.Data(permission.OptionGrant(i))}})
	}
	part.Text = text
	return part
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
		what = r.ToolName + ": " + visible(r.Command+r.Path)
	case a.Kind == permission.KindQuestion:
		for _, q := range questionsOf(a) {
			what = strings.TrimSpace(what + " " + visible(q.Question))
		}
	}
	what = strings.Join(strings.Fields(what), " ")
	if what == "" {
		return outcome
	}
	return core.CutRunes(what, maxSettled) + "\n" + outcome
}

// visible is hostile text with everything in it to be seen: what is drawn as
// nothing, or turns the direction of what follows, is spelled out.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r == ' ':
			b.WriteRune(r)
		case r == utf8.RuneError, !unicode.IsGraphic(r), unicode.IsSpace(r), r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, unicode.Is(unicode.Variation_Selector, r):
			fmt.Fprintf(&b, "\\u{%X}", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
