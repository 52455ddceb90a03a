package discordtest_test

import (
	"encoding/json"
	"testing"
	"time"

	"gatehouse/connectors/discord/discordtest"
)

type asked struct {
	ID    discordtest.ID `json:"id"`
	Type  int            `json:"type"`
	Token string         `json:"token"`
	Guild discordtest.ID `json:"guild_id"`
	Data  struct {
		Name       string
		ID         string `json:"custom_id"`
		Values     []string
		Kind       int `json:"component_type"`
		Components any
		Options    []struct {
			Name  string
			Type  int
			Value any
		}
	} `json:"data"`
	Member  *struct{ User struct{ ID discordtest.ID } } `json:"member"`
	User    *struct{ ID discordtest.ID }                `json:"user"`
	Message *sent                                       `json:"message"`
}

func (k *socket) asked() asked {
	k.Helper()
	var a asked
	if err := json.Unmarshal(k.event("INTERACTION_CREATE").D, &a); err != nil {
		k.Fatal(err)
	}
	return a
}

func (a asked) callback() string {
	return "interactions/" + a.ID.String() + "/" + a.Token + "/callback"
}

func (o *one) hook(a asked) string { return "webhooks/" + o.Bot().ID().String() + "/" + a.Token }

// commanded registers /ask and uses it once.
func (o *one) commanded(k *socket, in discordtest.ID) asked {
	o.Helper()
	o.must("PUT", "applications/"+o.Bot().ID().String()+"/commands", []m{{"name": "ask", "description": "d",
		"options": []m{{"name": "question", "description": "d", "type": 3, "required": true}}}}, nil)
	if _, err := o.ada.Slash(in, "ask", map[string]any{"question": "why?"}); err != nil {
		o.Fatal(err)
	}
	return k.asked()
}

func (o *one) state(id discordtest.ID, want string) discordtest.Interaction {
	o.Helper()
	i, ok := o.Interaction(id)
	if !ok || i.State != want {
		o.Errorf("the person sees %+v, want %s", i, want)
	}
	return i
}

func TestACommandIsAnsweredOnce(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	if _, err := o.ada.Slash(o.general, "ask", nil); err == nil {
		t.Error("a command that nobody registered")
	}
	a := o.commanded(k, o.general)
	if a.Type != 2 || a.Data.Name != "ask" || a.Data.Options[0].Value != "why?" || a.Data.Options[0].Type != 3 || a.Member.User.ID != o.ada.ID() || a.Guild != o.guild.ID() || a.User != nil {
		t.Errorf("got %+v", a)
	}
	o.refused("PATCH", o.hook(a)+"/messages/@original", m{"content": "x"}, 404, 10015, "Unknown Webhook")
	o.wrong("POST", a.callback(), m{"type": 1}, "type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5, 6, 7, 9}.")
	o.wrong("POST", a.callback(), m{"type": 6}, "type", "INTERACTION_RESPONSE_TYPE_INVALID", "This response type is only valid for component interactions.")
	o.wrong("POST", a.callback(), m{"type": 4, "data": m{"content": string(make([]byte, 2001))}}, "data.content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	o.refused("POST", a.callback(), m{"type": 4, "data": m{}}, 400, 50006, "Cannot send an empty message")
	o.state(a.ID, discordtest.StateWaiting)
	if r := o.must("POST", a.callback(), m{"type": 4, "data": m{"content": "because"}}, nil); r.status != 204 {
		t.Errorf("callback: %d", r.status)
	}
	i := o.state(a.ID, discordtest.StateAnswered)
	if v, _ := o.Message(o.general, i.Message); v.Text != "because" || v.Interaction != a.ID || v.Type != 20 {
		t.Errorf("the answer: %+v", v)
	}
	k.message("MESSAGE_CREATE")
	o.refused("POST", a.callback(), m{"type": 4, "data": m{"content": "again"}}, 400, 40060, "Interaction has already been acknowledged.")
	o.refused("POST", "interactions/7/x/callback", m{"type": 5}, 404, 10062, "Unknown interaction")
}

func TestThreeSecondsToAnswer(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	a := o.commanded(k, o.dm)
	if a.User == nil || a.User.ID != o.ada.ID() || a.Member != nil {
		t.Errorf("in a DM: %+v", a)
	}
	o.clock.Advance(3*time.Second + time.Millisecond)
	o.refused("POST", a.callback(), m{"type": 5}, 404, 10062, "Unknown interaction")
}

func TestAFailureIsShown(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	failed := make(chan discordtest.Interaction, 10)
	defer o.Watch(func(c discordtest.Change) {
		if c.Interaction != nil && c.Interaction.State == discordtest.StateFailed {
			failed <- *c.Interaction
		}
	})()
	a := o.commanded(k, o.dm)
	o.clock.Advance(4 * time.Second)
	if got := <-failed; got.ID != a.ID {
		t.Errorf("got %+v", got)
	}
}

func TestADeferredAnswerHasFifteenMinutes(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	a := o.commanded(k, o.general)
	o.must("POST", a.callback(), m{"type": 5}, nil)
	i := o.state(a.ID, discordtest.StateThinking)
	if v, _ := o.Message(o.general, i.Message); !v.Thinking {
		t.Errorf("nothing is loading: %+v", v)
	}
	o.clock.Advance(15*time.Minute - time.Second)
	o.must("PATCH", o.hook(a)+"/messages/@original", m{"content": "at last"}, nil)
	o.state(a.ID, discordtest.StateAnswered)
	if v, _ := o.Message(o.general, i.Message); v.Thinking || v.Text != "at last" {
		t.Errorf("got %+v", v)
	}
	o.must("POST", o.hook(a), m{"content": "and more"}, nil)
	if n := len(o.History(o.general)); n != 2 {
		t.Errorf("%d messages", n)
	}
	o.clock.Advance(time.Second)
	o.refused("PATCH", o.hook(a)+"/messages/@original", m{"content": "late"}, 401, 50027, "Invalid Webhook Token")
	o.refused("POST", o.hook(a), m{"content": "late"}, 401, 50027, "Invalid Webhook Token")
}

func TestTheFirstFollowupFillsADeferral(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	a := o.commanded(k, o.general)
	o.must("POST", a.callback(), m{"type": 5, "data": m{"flags": 64}}, nil)
	o.must("POST", o.hook(a), m{"content": "quietly"}, nil)
	h := o.History(o.general)
	if len(h) != 1 || h[0].Text != "quietly" || h[0].OnlyFor != o.ada.ID() {
		t.Errorf("history: %+v", h)
	}
	var page []sent
	if o.must("GET", messages(o.general), nil, &page); len(page) != 0 {
		t.Error("REST lists an ephemeral message")
	}
	o.refused("DELETE", messages(o.general)+"/"+h[0].ID.String(), nil, 404, 10008, "Unknown Message")
	o.must("DELETE", o.hook(a)+"/messages/@original", nil, nil)
	if len(o.History(o.general)) != 0 {
		t.Error("it stays")
	}
}

func TestButtonsAndMenus(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	menu := m{"type": 3, "custom_id": "pick", "options": []m{{"label": "A", "value": "a"}, {"label": "B", "value": "b"}}}
	mine := o.send(o.dm, m{"content": "ok?", "components": []m{row(button("yes"), m{"type": 2, "style": 5, "label": "l", "url": "https://example.org"}), row(menu)}})
	k.message("MESSAGE_CREATE")
	if _, err := o.ada.Press(o.dm, mine.ID, "no"); err == nil {
		t.Error("a button that is not there was pressed")
	}
	if _, err := o.NewUser("Eve").Press(o.dm, mine.ID, "yes"); err == nil {
		t.Error("a stranger presses a button in a DM")
	}
	if _, err := o.ada.Press(o.dm, mine.ID, "yes"); err != nil {
		t.Fatal(err)
	}
	a := k.asked()
	if a.Type != 3 || a.Data.ID != "yes" || a.Message == nil || a.Message.ID != mine.ID {
		t.Errorf("got %+v", a)
	}
	o.must("POST", a.callback(), m{"type": 7, "data": m{"content": "done", "components": []m{}}}, nil)
	if v, _ := o.Message(o.dm, mine.ID); v.Text != "done" || len(v.Buttons) != 0 {
		t.Errorf("updated: %+v", v)
	}
	k.message("MESSAGE_UPDATE")
	second := o.send(o.dm, m{"content": "ok?", "components": []m{row(menu)}})
	k.message("MESSAGE_CREATE")
	o.ada.Press(o.dm, second.ID, "pick", "b")
	a = k.asked()
	if len(a.Data.Values) != 1 || a.Data.Values[0] != "b" {
		t.Errorf("got %+v", a)
	}
	o.must("POST", a.callback()+"?with_response=true", m{"type": 6}, nil)
	o.state(a.ID, discordtest.StateQuiet)
	o.must("PATCH", o.hook(a)+"/messages/@original", m{"content": "picked"}, nil)
	if v, _ := o.Message(o.dm, second.ID); v.Text != "picked" {
		t.Errorf("updated later: %+v", v)
	}
}

func TestDialogs(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	a := o.commanded(k, o.dm)
	input := row(m{"type": 4, "custom_id": "name", "label": "Name", "style": 1})
	o.wrong("POST", a.callback(), m{"type": 9, "data": m{"custom_id": "d", "title": "", "components": []m{input}}}, "data.title", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.")
	o.must("POST", a.callback(), m{"type": 9, "data": m{"custom_id": "d", "title": "Who?", "components": []m{input}}}, nil)
	if i := o.state(a.ID, discordtest.StateModal); i.Modal.Title != "Who?" || i.Modal.Inputs[0] != "name" {
		t.Errorf("dialog: %+v", i.Modal)
	}
	if _, err := o.ada.Submit(a.ID, map[string]string{"name": "Ada"}); err != nil {
		t.Fatal(err)
	}
	b := k.asked()
	if b.Type != 5 || b.Data.ID != "d" {
		t.Errorf("got %+v", b)
	}
	o.must("POST", b.callback(), m{"type": 4, "data": m{"content": "hello Ada"}}, nil)
}
