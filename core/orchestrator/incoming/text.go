package incoming

import (
	"slices"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/attach/content"
)

// Text returns a row's text as the model reads it. In a group each user's text is marked
// with name and trust, as data, and so is the message that the row refers to: its author,
// if known, and each line with "> ". begun reports whether the conversation has messages.
func Text(row *core.Inbound, trust core.Trust, begun bool) string {
	words := row.Text
	if row.Group() {
		words = agent.Quoted{Name: row.From.Name, Trust: trust, Text: row.Text}.String()
	}
	q := row.Quote
	switch {
	case q == nil:
		return words
	case q.Forwarded:
		said := "Forwarded, not written by the sender of this message:\n" + agent.Quoted{Name: q.Name, Label: "elsewhere", Text: row.Text}.String()
		if row.Group() {
			said = agent.SafeName(row.From.Name) + " has forwarded this. " + said
		}
		return said
	case q.Ours:
		return "About this passage of yours:\n" + agent.Quoted{Name: "you", Label: "earlier", Text: q.Text}.String() + "\n" + words
	case q.Root && begun: // the conversation has it
		return words
	}
	refers := "In answer to this:\n"
	if q.Root {
		refers = "In a thread that began with this:\n"
	}
	return refers + agent.Quoted{Name: q.Name, Label: "earlier", Text: q.Text}.String() + "\n" + words
}

// Says reports whether the model reads Text of a row: if it has text, or nothing else, or
// refers to a message whose files come with it. begun is Text's.
func Says(row *core.Inbound, begun bool) bool {
	return row.Text != "" || len(row.Files) == 0 ||
		row.Again == "" && Referred(row, begun) != nil && slices.ContainsFunc(row.Files, func(f core.File) bool { return f.Quoted })
}

// Referred returns the message that Text adds to the row's, for users; nil if there is none.
func Referred(row *core.Inbound, begun bool) *core.Quote {
	if row.Quote == nil || row.Quote.Root && begun {
		return nil
	}
	q := *row.Quote
	q.Name, q.Text = core.CleanName(q.Name), core.CutRunes(q.Text, agent.MaxQuoted)
	return &q
}

// Given returns the text that a request gives to begin a conversation with, as data.
func Given(text string) core.Block {
	return delimited("Given with this conversation, to begin with:", text)
}

// Repeated returns the text of a message that is answered again and is not in the
// conversation any more, as data: it has the texts of the files and messages that came with
// the message, too.
func Repeated(text string) core.Block {
	return delimited("To be answered again, with what came with it:", text)
}

func delimited(lead, text string) core.Block {
	mark := content.Fence(text)
	return core.Block{Type: "text", Text: lead + "\n" + mark + "\n" + text + "\n" + mark}
}
