package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// Bounds of the parts of an ask's text, in bytes. Their sum stays below 2,000
// characters, the smallest limit of a platform for one message.
const (
	maxButton  = 40   // runes of an answer on a button
	maxName    = 40   // runes of a user's name
	maxAsked   = 1000 // of a command or path
	maxReason  = 150  // of why it is asked
	maxList    = 200  // of the list of commands
	maxLines   = 30   // of a command
	maxSettled = 200  // runes of what was asked, once it is decided
	maxGrants  = 400  // of what the buttons for a session allow
)

// permissionPart returns the message that shows a tool call in full, with its
// buttons, and the first lines that it would change in a file. A call that is too long for
// a chat can only be denied there; the panel shows it in full and can allow it. own means
// that the message is for the chat of the call; left is the time for an answer.
func permissionPart(a ask.Ask, req core.PermissionRequest, p permission.Profile, name string, own bool, left time.Duration) core.Part {
	what, act := core.Visible(req.Path), "read"
	switch {
	case req.Command != "":
		what, act = core.Visible(req.Command), "run"
	case req.URL != "":
		what, act = core.Visible(req.URL), "open"
	case req.Kind == string(tool.Write):
		act = "change"
	}
	whole, long := len(what) <= maxAsked && strings.Count(what, "\n") < maxLines, 0
	if !whole {
		long = utf8.RuneCountInString(what)
	}
	if req.Command == "" {
		what = strings.ReplaceAll(what, "\n", "\\n")
	}
	reason, list := reasonAndList(a, req)
	lede, block, rest := "", "", ""
	if view, err := ask.View(a); err == nil && whole {
		lede, block, rest = change(view.Diff, maxAsked+50-len(what), own)
	}
	// Users choose their names, so the text has the user's number, too.
	text := texts.Text("permission", texts.With{"Tool": req.ToolName, "Kind": act, "What": placeholder, "Caution": reason, "Commands": list, "TooLong": long, "Owner": p.Owner,
		"Change": lede, "Block": mark(block), "More": rest, "Name": core.CutRunes(name, maxName), "User": p.User, "Trust": p.Trust, "Within": within(left)})
	deny := core.Button{Label: texts.Text("button_deny"), Data: a.Data(ask.OptionDeny)}
	if !whole {
		return core.Part{Text: text, Buttons: [][]core.Button{{deny}}}
	}
	before, after, _ := strings.Cut(text, placeholder)
	text = before + what + after
	style := core.StylePre
	if req.Path != "" {
		style = core.StyleCode // within its line
	}
	part := core.Part{Spans: []core.Span{{Style: style, Offset: units(before), Length: units(what)}}}
	if before, after, ok := strings.Cut(text, blockholder); ok {
		text = before + block + after
		part.Spans = append(part.Spans, core.Span{Style: core.StylePre, Language: "diff", Offset: units(before), Length: units(block)})
	}
	part.Buttons = [][]core.Button{{{Label: texts.Text("button_allow"), Data: a.Data(ask.OptionOnce)}, deny}}
	room, wider := maxGrants, ""
	for i, g := range req.SuggestedGrants {
		label := core.Visible(g.Label)
		if utf8.RuneCountInString(label) > maxButton {
			label = fmt.Sprintf("(%d) %s", i+1, label)
			line := "\n" + label
			if len(line) > room {
				continue // the panel has it
			}
			room -= len(line)
			wider += line
			label = string([]rune(label)[:maxButton-1]) + "…"
		}
		part.Buttons = append(part.Buttons, []core.Button{{Label: label, Data: a.Data(ask.OptionGrant(i))}})
	}
	if len(part.Buttons) > 1 {
		text += "\n\n" + texts.Text("permission_grants") + wider
	}
	part.Text = text
	return part
}

// placeholder marks the place of the exact command or path in the text.
const placeholder = "\x00"

// blockholder marks the place of the changed lines.
const blockholder = "\x01"

// mark returns the mark of a block, "" for none.
func mark(block string) string {
	if block == "" {
		return ""
	}
	return blockholder
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

// reasonAndList returns why a shell's command is asked, where that is more than
// that nothing allows it, and the simple commands in it, a line each, where they
// are more than the command itself.
func reasonAndList(a ask.Ask, req core.PermissionRequest) (reason, list string) {
	view, err := ask.View(a)
	if err != nil || req.Command == "" {
		return "", ""
	}
	reason = core.CutRunes(escaped(view.Caution()), maxReason)
	if len(view.Commands) == 0 || len(view.Commands) == 1 && view.Commands[0] == req.Command {
		return reason, ""
	}
	for i, c := range view.Commands {
		line := fmt.Sprintf("\n%d. %s", i+1, escaped(c))
		if len(list)+len(line) > maxList {
			return reason, list + "\n" + texts.Text("commands_more", texts.With{"N": len(view.Commands) - i})
		}
		list += line
	}
	return reason, list
}

// escaped returns text on one line with invisible characters escaped.
func escaped(s string) string { return strings.ReplaceAll(core.Visible(s), "\n", "\\n") }

// waitingText returns the notice for the user whose call waits.
func waitingText(req core.PermissionRequest, left time.Duration) string {
	what := strings.Join(strings.Fields(core.Visible(req.Command+req.Path+req.URL)), " ")
	return texts.Text("permission_waits", texts.With{"Tool": req.ToolName, "What": core.CutRunes(what, maxSettled), "Within": within(left)})
}

// within returns a time that is left, in whole minutes or hours; a short one in seconds.
func within(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 2*time.Hour:
		return texts.Text("hours", texts.With{"N": int(d / time.Hour)})
	case d%time.Minute == 0 && d > 0, d >= 2*time.Minute:
		return texts.Text("minutes", texts.With{"N": int(d / time.Minute)})
	}
	return texts.Text("seconds", texts.With{"N": max(1, int(d/time.Second))})
}

// settledText returns the text that replaces an ask: the question, cut to one
// line, and the decision.
func settledText(a ask.Ask, outcome string) string {
	var body struct {
		Request *core.PermissionRequest `json:"request"`
	}
	what := ""
	switch {
	case json.Unmarshal([]byte(a.Payload), &body) == nil && body.Request != nil:
		r := body.Request
		what = r.ToolName + ": " + core.Visible(r.Command+r.Path+r.URL)
	case a.Kind == ask.KindQuestion:
		for _, q := range Questions(a) {
			what = strings.TrimSpace(what + " " + core.Visible(q.Question))
		}
	}
	what = strings.Join(strings.Fields(what), " ")
	if what == "" {
		return outcome
	}
	return core.CutRunes(what, maxSettled) + "\n" + outcome
}
