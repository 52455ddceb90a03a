package lines

import (
	"strings"

	"gatehouse/core"
)

// Framing is what a prompt adds around a user's text: the name and trust of a group's
// sender, and the message that the text refers to. It is read for display of transcripts
// that do not record the text without it.

// A Framed is a framed text taken apart.
type Framed struct {
	Name  string      // of the group's sender, "" outside of groups
	Trust core.Trust  // of the group's sender
	Text  string      // what they wrote
	Quote *core.Quote // what it refers to; nil without
}

// leads are the lines above a text that is referred to.
var leads = map[string]core.Quote{
	"Forwarded, not written by the sender of this message:\n": {Forwarded: true},
	"About this passage of yours:\n":                          {Ours: true},
	"In a thread that began with this:\n":                     {Root: true},
	"In answer to this:\n":                                    {},
}

// ParseFraming takes a framed text apart; false for any other text, also if a single
// character of the framing is different. In a text that is not of a group, a sender's
// name and trust are text.
func ParseFraming(text string, group bool) (Framed, bool) {
	out, rest := Framed{}, text
	for lead, quote := range leads {
		behind, ok := strings.CutPrefix(rest, lead)
		if !ok && quote.Forwarded && group {
			if name, after, found := strings.Cut(rest, " has forwarded this. "+lead); found && name != "" && !strings.Contains(name, "\n") {
				out.Name, behind, ok = name, after, true
			}
		}
		if !ok {
			continue
		}
		name, label, said, after, ok := quoted(behind)
		if !ok || quote.Forwarded && (label != "elsewhere" || after != "") || !quote.Forwarded && label != "earlier" {
			return Framed{}, false
		}
		quote.Name = name
		out.Quote = &quote
		if quote.Forwarded {
			out.Text = said
			return out, true
		}
		quote.Text = said
		if rest, ok = strings.CutPrefix(after, "\n"); !ok {
			return Framed{}, false
		}
		break
	}
	if group {
		name, label, said, after, ok := quoted(rest)
		trust, err := trustOf(label)
		if ok && err == nil && after == "" {
			out.Name, out.Trust, out.Text = name, trust, said
			return out, true
		}
	}
	out.Text = rest
	return out, out.Quote != nil
}

func trustOf(label string) (core.Trust, error) {
	if label == "no access of their own" {
		return core.Stranger, nil
	}
	return core.ParseTrust(label)
}

// quoted reads a quotation as agent.Quoted writes it, and returns what follows.
func quoted(text string) (name, label, said, after string, ok bool) {
	head, rest, ok := strings.Cut(text, "\n")
	head, cut := strings.CutPrefix(head, `From "`)
	name, label, named := strings.Cut(head, `" (`)
	label, ended := strings.CutSuffix(label, "):")
	if !ok || !cut || !named || !ended || strings.ContainsAny(name+label, `"()`) {
		return "", "", "", "", false
	}
	var lines []string
	for {
		line, behind, whole := strings.Cut(rest, "\n")
		marked, is := strings.CutPrefix(line, "> ")
		if !is || !whole {
			break
		}
		lines, rest = append(lines, marked), behind
	}
	return name, label, strings.Join(lines, "\n"), rest, len(lines) > 0
}
