// Package memory is the chat commands /memory, /remember and /forget, and the messages
// to a chat about what was remembered.
package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/memory"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	perPage  = 10  // corrections of an answer
	maxShown = 160 // runes of one that an answer repeats
)

// Commands are the handlers.
type Commands struct {
	memories *memory.Store
	place    func(ctx context.Context, at core.Address) (memory.Place, error)
	asks     *ask.Buttons
	clock    core.Clock
}

// New returns the handlers of /memory, /remember and /forget. place returns the conversation of a
// chat with its project; without one, both are empty.
func New(m *memory.Store, place func(context.Context, core.Address) (memory.Place, error), asks *ask.Buttons, clock core.Clock) *Commands {
	return &Commands{m, place, asks, clock}
}

// Commands returns /memory, /remember and /forget.
func (c *Commands) Commands() []command.Command {
	return []command.Command{
		{Name: "memory", About: texts.Text("about_memory"), Args: texts.Text("args_memory"), Shows: true, Private: true, Run: c.Run},
		{Name: "remember", About: texts.Text("about_remember"), How: texts.Text("remember_how"), Args: texts.Text("args_remember"), Private: true, Run: c.Remember},
		{Name: "forget", About: texts.Text("about_forget"), How: texts.Text("forget_how"), Args: texts.Text("args_forget"), Private: true, Run: c.Forget},
	}
}

// Said is the message to the user, and the buttons under it.
type Said struct {
	Text  string // Markdown; "" for nothing
	Offer ask.Offer
}

// Verbs of /memory, in the data of buttons: a verb and the id of a correction.
const (
	verbUndo    = "undo"
	verbRestore = "restore"
	verbEdit    = "edit"   // and the text that takes the place of the correction's
	verbNewer   = "before" // the page of a list before a number
)

// Say returns the message about what was learnt from another message of the chat at. Of older
// corrections a group is shown the numbers alone, and it is offered no Edit: others would read
// the text.
func Say(l memory.Learnt, at core.Address) Said {
	c := &l.Correction
	s := Said{Offer: ask.Offer{Command: "memory"}}
	add := func(label, verb string) { s.Offer.Add(label, verb+" "+c.ID) }
	switch {
	case l.Outcome == memory.Secret:
		s.Text = texts.Text("memory_secret", texts.With{"What": l.What})
	case l.Outcome == memory.Full:
		s.Text = texts.Text("memory_full", texts.With{"Most": memory.Max})
	case l.Outcome == memory.Nothing:
	case l.Old != nil:
		s.Text = texts.Text("memory_conflict", texts.With{"N": c.Number, "Text": shorten(c.Text), "Old": l.Old.Number, "OldText": shown(at, l.Old)})
		if l.Outcome == memory.Asked {
			s.Text = texts.Text("memory_ask_conflict", texts.With{"Text": shorten(c.Text), "Old": l.Old.Number, "OldText": shown(at, l.Old)})
		}
		add(texts.Text("memory_button_replace", texts.With{"Old": l.Old.Number}), memory.ChoiceReplace)
		add(texts.Text("memory_button_both"), memory.ChoiceBoth)
		if c.Card != memory.CardEdited { // it stays
			add(texts.Text("memory_button_cancel"), memory.ChoiceSkip)
		}
	case l.Outcome == memory.Stored:
		s.Text = texts.Text("memory_stored", texts.With{"N": c.Number, "Text": shorten(c.Text), "As": chosen(c)})
		add(texts.Text("memory_button_undo"), verbUndo)
	case c.Card == memory.CardImplicit:
		s.Text = texts.Text("memory_ask_implicit", texts.With{"Text": shorten(c.Text)})
		add(texts.Text("memory_button_accept"), memory.ChoiceSave)
		add(texts.Text("memory_button_reject"), memory.ChoiceSkip)
	default:
		s.Text = texts.Text("memory_ask_review", texts.With{"Text": shorten(c.Text), "As": chosen(c)})
		add(texts.Text("memory_button_save"), memory.ChoiceSave)
		if !at.Group() {
			add(texts.Text("memory_button_edit"), verbEdit)
		}
		add(texts.Text("memory_button_skip"), memory.ChoiceSkip)
	}
	return s
}

// chosen returns what a model took a text for, and where it is to apply; "" where rules did.
func chosen(c *memory.Correction) string {
	if c.Via != memory.ViaSemantic {
		return ""
	}
	return texts.Text("memory_as", texts.With{"Type": string(c.Type), "Scope": string(c.Scope)})
}

// shown returns the text of a correction for the chat at; "" for a group, where others would
// read it.
func shown(at core.Address, c *memory.Correction) string {
	if at.Group() {
		return ""
	}
	return shorten(c.Text)
}

// shorten returns a user's text for Markdown.
func shorten(text string) string {
	cut := core.CutRunes(core.Visible(text), maxShown)
	if cut != core.Visible(text) {
		cut += "…"
	}
	return texts.Escape(cut)
}

// Remember stores the text behind the command.
func (c *Commands) Remember(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	if r.Args() == "" {
		return command.Respond("remember_how")
	}
	here, err := c.place(ctx, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	l, err := c.memories.Add(ctx, r.User, memory.Draft{Text: core.CutRunes(r.Args(), 4*memory.MaxText), Source: fmt.Sprintf("chat:%d", r.Seq), Session: here.Session, Project: here.Project}, r.By())
	if err != nil {
		return command.Outcome{}, err
	}
	s := Say(l, r.In.Address)
	return c.asks.Offer(r, s.Text, s.Offer)
}

// Forget deletes the correction with the number behind the command.
func (c *Commands) Forget(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	if r.Args() == "" {
		return command.Respond("forget_how")
	}
	if _, err := strconv.Atoi(strings.TrimPrefix(r.Args(), "#")); err != nil {
		return arguments.Wrong(r.Args(), texts.Text("forget_how"))
	}
	return c.forget(ctx, r, r.Args())
}

func (c *Commands) forget(ctx context.Context, r command.Request, ref string) (command.Outcome, error) {
	gone, err := c.memories.Delete(ctx, r.User, ref, r.By())
	if core.KindOf(err) == core.NotFound {
		return missing(ref), nil
	}
	if err != nil {
		return command.Outcome{}, err
	}
	o := ask.Offer{Command: "memory"}
	o.Add(texts.Text("memory_button_undo"), verbRestore+" "+gone.ID)
	return c.asks.Offer(r, texts.Text("memory_forgotten", texts.With{"N": gone.Number, "Text": shown(r.In.Address, &gone)}), o)
}

func missing(ref string) command.Outcome {
	return command.Outcome{Text: texts.Text("memory_gone", texts.With{"Ref": texts.Excerpt(ref)})}
}

// Run shows what is remembered of the sender, or those with some words in them. Buttons
// send it with a verb.
func (c *Commands) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	verb, ref, _ := strings.Cut(r.Args(), " ")
	switch verb {
	case verbUndo:
		return c.forget(ctx, r, ref)
	case verbRestore:
		back, err := c.memories.Restore(ctx, r.User, ref, r.By())
		if core.KindOf(err) == core.NotFound {
			return missing(ref), nil
		}
		if err != nil {
			return command.Outcome{}, err
		}
		if back.Conflicts != "" {
			return c.say(ctx, r, memory.Stored, back)
		}
		return command.Respond("memory_restored", texts.With{"N": back.Number, "Text": shown(r.In.Address, &back)})
	case memory.ChoiceSave, memory.ChoiceReplace, memory.ChoiceBoth, memory.ChoiceSkip:
		if len(ref) == idLength {
			return c.decide(ctx, r, verb, ref)
		}
	case verbEdit:
		if ref, text, _ := strings.Cut(ref, " "); len(ref) == idLength {
			return c.edit(ctx, r, ref, strings.TrimSpace(text))
		}
	}
	if r.In.Group() { // others would read it
		return command.Respond("memory_in_group")
	}
	return c.list(ctx, r)
}

// idLength is the length of an id: a user who searches for text does not send a verb with one.
const idLength = 36

// decide settles a card.
func (c *Commands) decide(ctx context.Context, r command.Request, choice, ref string) (command.Outcome, error) {
	l, err := c.memories.Decide(ctx, r.User, ref, choice, r.By())
	switch core.KindOf(err) {
	case core.NotFound:
		return missing(texts.Text("memory_that")), nil
	case core.Conflict:
		return command.Respond("memory_settled")
	}
	switch {
	case err != nil:
		return command.Outcome{}, err
	case choice == memory.ChoiceSkip:
		return command.Respond("memory_skipped")
	case choice == memory.ChoiceBoth:
		return command.Respond("memory_both")
	case choice == memory.ChoiceReplace:
		replaced := 0
		if l.Old != nil {
			replaced = l.Old.Number
		}
		return command.Respond("memory_replaced", texts.With{"N": l.Correction.Number, "Text": shown(r.In.Address, &l.Correction), "Old": replaced})
	}
	return c.say(ctx, r, l.Outcome, l.Correction)
}

// waits is how long the text of an edited correction is awaited.
const waits = 10 * time.Minute

// edit gives a correction that is in force, or that a card asks about, another text, and keeps
// it. Without a text it awaits the next message.
func (c *Commands) edit(ctx context.Context, r command.Request, ref, text string) (command.Outcome, error) {
	if r.In.Group() {
		return command.Respond("memory_edit_group")
	}
	now, err := c.memories.Get(ctx, r.User, ref)
	if core.KindOf(err) == core.NotFound || err == nil && now.Status == memory.Deleted {
		return missing(texts.Text("memory_that")), nil
	}
	if err != nil {
		return command.Outcome{}, err
	}
	if !now.Editable(c.clock.Now()) {
		return command.Respond("memory_settled")
	}
	if text == "" {
		return c.await(r, &now)
	}
	text = core.CutRunes(text, 4*memory.MaxText)
	now, err = c.memories.Update(ctx, r.User, now.ID, memory.Change{Text: &text}, r.By())
	if err != nil {
		return command.Outcome{}, err
	}
	if now.Status == memory.Pending {
		return c.decide(ctx, r, memory.ChoiceSave, now.ID)
	}
	return c.say(ctx, r, memory.Stored, now)
}

// say answers with the message about a correction that was not learnt here.
func (c *Commands) say(ctx context.Context, r command.Request, o memory.Outcome, now memory.Correction) (command.Outcome, error) {
	l, err := c.learnt(ctx, r, o, now)
	if err != nil {
		return command.Outcome{}, err
	}
	s := Say(l, r.In.Address)
	return c.asks.Offer(r, s.Text, s.Offer)
}

// learnt returns what there is to say about a correction, with the one that its card is about. A
// group is not shown its text, which may have been edited elsewhere.
func (c *Commands) learnt(ctx context.Context, r command.Request, o memory.Outcome, now memory.Correction) (memory.Learnt, error) {
	if r.In.Group() {
		now.Text = ""
	}
	l := memory.Learnt{Outcome: o, Correction: now}
	if now.Conflicts == "" {
		return l, nil
	}
	old, err := c.memories.Get(ctx, r.User, now.Conflicts)
	if err == nil && old.Status == memory.Active {
		l.Old = &old
	}
	if core.KindOf(err) == core.NotFound { // deleted since
		err = nil
	}
	return l, err
}

// await has the next message handed to edit. Until then the question of a card can still be
// answered.
func (c *Commands) await(r command.Request, now *memory.Correction) (command.Outcome, error) {
	text, o := texts.Text("memory_edit_how", texts.With{"Text": shorten(now.Text), "Minutes": int(waits.Minutes())}), ask.Offer{Command: "memory"}
	if now.Status == memory.Pending {
		o.Add(texts.Text("memory_button_save"), memory.ChoiceSave+" "+now.ID)
		o.Add(texts.Text("memory_button_skip"), memory.ChoiceSkip+" "+now.ID)
	}
	out, err := c.asks.Offer(r, text, o)
	if err != nil {
		return command.Outcome{}, err
	}
	next, err := c.asks.AwaitNext(r, "memory "+verbEdit+" "+now.ID, text, waits)
	offered, awaited := out.Write, next.Write
	out.Write = func(ctx context.Context, tx *store.Tx) error {
		if offered != nil {
			if err := offered(ctx, tx); err != nil {
				return err
			}
		}
		return awaited(ctx, tx)
	}
	return out, err
}

// list shows a page of corrections.
func (c *Commands) list(ctx context.Context, r command.Request) (command.Outcome, error) {
	f := memory.Filter{Text: r.Args(), Limit: perPage}
	if verb, rest, _ := strings.Cut(r.Args(), " "); verb == verbNewer {
		if n, err := fmt.Sscanf(rest, "%d", &f.After); n == 1 && err == nil {
			_, f.Text, _ = strings.Cut(rest, " ")
		}
	}
	all, next, err := c.memories.List(ctx, r.User, f)
	if err != nil {
		return command.Outcome{}, err
	}
	active, cards, err := c.memories.Count(ctx, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	words := texts.Escape(core.CutRunes(core.CleanName(f.Text), 60))
	if len(all) == 0 && cards == 0 {
		return command.Respond("memory_none", texts.With{"Words": words})
	}
	var b strings.Builder
	o := ask.Offer{Command: "memory"}
	if len(all) > 0 {
		b.WriteString(texts.Text("memory_list", texts.With{"Count": active, "Words": words}) + "\n\n")
	}
	for i := range all {
		b.WriteString(texts.Text("memory_line", texts.With{"N": all[i].Number, "Text": shorten(all[i].Text), "Pinned": all[i].Pinned}) + "\n\n")
		o.AddOf("forget", texts.Text("memory_button_forget", texts.With{"N": all[i].Number}), fmt.Sprint(all[i].Number))
	}
	if cards > 0 {
		b.WriteString(texts.Text("memory_open", texts.With{"Cards": cards}) + "\n\n")
		if err := c.addCards(ctx, r, &b, &o); err != nil {
			return command.Outcome{}, err
		}
	}
	if next > 0 {
		o.Add(texts.Text("memory_button_more"), strings.TrimSpace(fmt.Sprintf("%s %d %s", verbNewer, next, f.Text)))
	}
	return c.asks.Offer(r, strings.TrimSpace(b.String()), o)
}

// addCards adds the newest open card, with its buttons.
func (c *Commands) addCards(ctx context.Context, r command.Request, b *strings.Builder, o *ask.Offer) error {
	open, _, err := c.memories.List(ctx, r.User, memory.Filter{Cards: true, Limit: 1})
	if err != nil || len(open) == 0 {
		return err
	}
	l, err := c.learnt(ctx, r, memory.Asked, open[0])
	if err != nil {
		return err
	}
	s := Say(l, r.In.Address)
	b.WriteString(s.Text)
	for i, label := range s.Offer.Labels {
		o.Add(label, s.Offer.Args[i])
	}
	return nil
}
