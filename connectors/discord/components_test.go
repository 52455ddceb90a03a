package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/markup/markuptest"
	"gatehouse/core"
)

// column is n buttons, one a row.
func column(n int) (rows [][]core.Button) {
	for i := range n {
		rows = append(rows, []core.Button{{Label: fmt.Sprint("Choice ", i), Data: fmt.Sprintf("aaaabbbbccccdddd:%d", i)}})
	}
	return rows
}

func TestManyChoicesBecomeAMenu(t *testing.T) {
	c := newClub(t)
	send := func(rows [][]core.Button) (discordtest.Message, core.Delivery) {
		o := out(direct(c.ada.DM()), 0, "choose")
		o.Buttons = rows
		d := c.bot.Send(t.Context(), o)
		history := c.History(c.ada.DM())
		return history[len(history)-1], d
	}
	if m, d := send(column(5)); d.Outcome != core.Sent || len(m.Buttons) != 5 || m.Buttons[4][0].Type != 2 {
		t.Errorf("five: %+v, %+v", d, m.Buttons)
	}
	other := []core.Button{{Label: "Other…", Data: "aaaabbbbccccdddd:other", Form: true}}
	m, d := send(append(column(30), other))
	if d.Outcome != core.Sent || len(m.Buttons) != 3 || len(m.Buttons[0][0].Options) != 25 || len(m.Buttons[1][0].Options) != 5 || m.Buttons[2][0].Type != 2 {
		t.Fatalf("thirty and a form: %+v, %+v", d, m.Buttons)
	}
	if o := m.Buttons[1][0].Options[4]; o.Label != "Choice 29" || m.Buttons[1][0].Placeholder == "" {
		t.Errorf("the last entry is %+v", o)
	}
	if _, err := c.ada.Press(c.ada.DM(), m.ID, m.Buttons[1][0].CustomID, "aaaabbbbccccdddd:29"); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Kind != core.KindCallback || in.Callback.Data != "aaaabbbbccccdddd:29" || in.Callback.Fields != nil {
		t.Errorf("the choice arrives as %+v", in.Callback)
	}
	if _, d := send(column(4*25 + 1)); d.Outcome != core.Sent {
		t.Errorf("five menus: %+v", d)
	}
	if _, d := send(column(5*25 + 1)); d.Outcome != core.Refused || !strings.Contains(d.Reason, "5") {
		t.Errorf("more than five menus: %+v", d)
	}
}

func TestAFormIsOpenedAndWhatIsWrittenComesBack(t *testing.T) {
	asked := make(chan core.Inbound, 10)
	refuse := make(chan error, 1)
	c := newClubWith(t, func(o *Options) {
		o.Form = func(_ context.Context, in *core.Inbound) (connectors.Form, error) {
			asked <- *in
			select {
			case err := <-refuse:
				return connectors.Form{}, err
			default:
			}
			long := strings.Repeat("wörd ", 40)
			return connectors.Form{Title: long, Fields: []connectors.Field{{Label: long, About: long, Hint: long}, {Label: "Second"}}}, nil
		}
	})
	o := out(inChannel(c.talk), 1, "which?")
	o.Buttons = [][]core.Button{{{Label: "Other…", Data: "aaaabbbbccccdddd:form", Form: true}}}
	d := c.bot.Send(t.Context(), o)
	message, _ := discordtest.ParseID(d.MessageID)
	press := func() discordtest.ID {
		t.Helper()
		id, err := c.ada.Press(c.talk, message, "form:aaaabbbbccccdddd:form")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	dialog := press()
	if in := <-asked; in.Callback.Data != "aaaabbbbccccdddd:form" || in.Address != inChannel(c.talk) || in.From.ID != c.ada.ID().String() || in.MessageID != d.MessageID {
		t.Errorf("Form is asked about %+v", in)
	}
	eventually(t, "a dialog", func() bool { i, _ := c.Interaction(dialog); return i.State == discordtest.StateModal })
	i, _ := c.Interaction(dialog)
	if f := i.Modal.Fields; len(f) != 2 || !f[0].Lines || !f[0].Required || f[1].Label != "Second" || f[0].Description == "" {
		t.Errorf("the dialog shows %+v", i.Modal)
	}
	words := strings.Repeat("ä", 4000)
	if _, err := c.ada.Submit(dialog, map[string]string{"0": words, "1": " two\nlines "}); err != nil {
		t.Fatal(err)
	}
	in := c.next() // the press itself was not stored
	if in.Kind != core.KindCallback || !in.Addressed || in.Callback.Data != "aaaabbbbccccdddd:form" || in.MessageID != d.MessageID ||
		len(in.Callback.Fields) != 2 || in.Callback.Fields[0] != words || in.Callback.Fields[1] != "two\nlines" {
		t.Fatalf("what was written arrives as %+v", in)
	}
	if err := c.bot.Acknowledge(t.Context(), in.Address, in.Callback.ID, "Thank you"); err != nil {
		t.Error(err)
	}
	refuse <- core.Errorf(core.Denied, "This question is for another user.")
	press()
	whispered := func(text string) func() bool {
		return func() bool {
			h := c.History(c.talk)
			return h[len(h)-1].OnlyFor == c.ada.ID() && strings.Contains(markuptest.Show(h[len(h)-1].Text).Text.String(), text)
		}
	}
	eventually(t, "the refusal, for who pressed alone", whispered("This question is for another user."))
	refuse <- errors.New("secret of the database")
	press()
	eventually(t, "a plain sentence", whispered("Something went wrong."))
}
