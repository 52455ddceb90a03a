package why

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/council/ledger"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Outbox has the messages of chats (outbox.Outbox).
type Outbox interface {
	Posting(ctx context.Context, q store.Queryer, key string) (p outbox.Posting, found bool, err error)
	Posted(ctx context.Context, tx *store.Tx, prefix string) ([]core.Reply, error)
	Post(ctx context.Context, tx *store.Tx, r core.Reply) error
}

// Picks are the council's questions, whose picks the chat of the answer shows, however they are
// made. All fields are required.
type Picks struct {
	*ledger.Store
	DB     *store.DB
	Outbox Outbox
}

// Pick is that of the ledger.
func (p Picks) Pick(ctx context.Context, user int64, query, model string) (picked ledger.Picked, err error) {
	err = p.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		picked, err = p.PickIn(ctx, tx, user, query, model)
		return err
	})
	return picked, err
}

// PickIn is that of the ledger. With the pick the message with the answer changes: it states
// what was picked, and has no buttons to pick.
func (p Picks) PickIn(ctx context.Context, tx *store.Tx, user int64, query, model string) (ledger.Picked, error) {
	picked, err := p.Store.PickIn(ctx, tx, user, query, model)
	if err != nil {
		return picked, err
	}
	if err := p.show(ctx, tx, &picked); err != nil {
		return picked, fmt.Errorf("show a pick: %w", err)
	}
	return picked, nil
}

const (
	// firstEdit is the ordinal of the first edit, below the key of the answer's messages: there
	// are fewer of these. The same pick again posts the same.
	firstEdit = 900
	// maxGrown is to how many units a message may grow by what is put into it: the smallest
	// limit of a platform is 2,000.
	maxGrown = 1900
)

// show edits the messages of the answer to a picked question, which its run has posted, unless
// they were edited before.
func (p Picks) show(ctx context.Context, tx *store.Tx, picked *ledger.Picked) error {
	key := "run:" + picked.Query
	posted, found, err := p.Outbox.Posting(ctx, tx, key)
	if err != nil || !found {
		return err
	}
	whose, err := p.Outbox.Posted(ctx, tx, key)
	if err != nil || len(whose) == 0 {
		return err
	}
	parts := make([]core.Part, len(posted.Parts))
	for i := range posted.Parts {
		parts[i] = posted.Parts[i].Part
	}
	n := firstEdit
	for _, i := range settled(parts, picked) {
		err := p.Outbox.Post(ctx, tx, core.Reply{Address: whose[0].Address, Key: key, First: n, Replaces: fmt.Sprintf("@%s/%d", key, i), Parts: parts[i : i+1 : i+1]})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		if err != nil {
			return err
		}
		n++
	}
	return nil
}

// settled changes the parts of an answer for a pick, and returns which ones: the sentence that
// it is provisional is replaced, and the buttons to pick are removed.
func settled(parts []core.Part, picked *ledger.Picked) (changed []int) {
	label, last := "", -1
	for i := range parts {
		for j, row := range parts[i].Buttons {
			parts[i].Buttons[j] = slices.DeleteFunc(slices.Clone(row), func(b core.Button) bool {
				query, mark, ok := command.PickOf(b.Data)
				if !ok || query != picked.Query {
					return false
				}
				if slices.ContainsFunc(picked.Same, func(m string) bool { return command.PickMark(m) == mark }) {
					label = b.Label
				}
				last = i
				return true
			})
		}
		parts[i].Buttons = slices.DeleteFunc(parts[i].Buttons, func(row []core.Button) bool { return len(row) == 0 })
		if len(parts[i].Buttons) == 0 {
			parts[i].Buttons = nil
		}
	}
	if last < 0 {
		return nil
	}
	changed = []int{last}
	model := plain(picked.Model)
	if label == "" {
		label, model = model, ""
	}
	old, whole := texts.Text("council_disputed"), texts.Text("council_picked", texts.With{"Label": label, "Model": model})
	for _, text := range []string{whole, texts.Text("council_picked", texts.With{"Label": label, "Model": ""})} {
		for i := range parts {
			if reword(&parts[i], old, text) {
				if i != last {
					changed = append(changed, i)
				}
				return changed
			}
		}
	}
	if text := "\n\n" + whole; units(parts[last].Text+text) <= maxGrown {
		parts[last].Text += text
	}
	return changed
}

// reword replaces a sentence of a part, with its style, if it has it and there is room.
func reword(p *core.Part, old, text string) bool {
	before, after, found := strings.Cut(p.Text, old)
	from, was, is := units(before), units(old), units(text)
	if !found || old == "" || is > was && units(p.Text)-was+is > maxGrown {
		return false
	}
	spans := make([]core.Span, 0, len(p.Spans))
	for _, s := range p.Spans {
		switch end := s.Offset + s.Length; {
		case s.Offset >= from+was:
			s.Offset += is - was
		case s.Offset <= from && end >= from+was:
			s.Length += is - was
		case end > from: // a style of a part of the sentence
			continue
		}
		spans = append(spans, s)
	}
	p.Text, p.Spans = before+text+after, spans
	return true
}

// units returns the length of a text as spans count it.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
