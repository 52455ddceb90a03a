package phones_test

import (
	"context"
	"slices"
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord"
	"gatehouse/core"
)

// asking is a bot on the simulated Discord that asks Cleo something, with more
// choices than fit as buttons and a form for her own words.
func asking(t *testing.T, s stage) *connectorstest.Store {
	t.Helper()
	store := &connectorstest.Store{}
	b, err := discord.New(discord.Options{Name: "bot", Token: s.discord.Token(), APIURL: s.discord.URL(), Cursors: store, Memory: store,
		Form: func(context.Context, *core.Inbound) (connectors.Form, error) {
			return connectors.Form{Title: "Your answer", Fields: []connectors.Field{{Label: "Tea", About: "Which tea shall it be?", Hint: "Green, black or white"}}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, running := make(chan error, 1), make(chan bool)
	go func() {
		ended <- b.Run(ctx, store, func(st core.BotState) {
			if st.State == core.Running || st.State == core.Degraded {
				select {
				case running <- true:
				default:
				}
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended; b.Close() })
	<-running
	part := core.Part{Text: "Which tea?"}
	for _, name := range []string{"Green", "Black", "White", "Mint", "Rooibos", "Oolong"} {
		part.Buttons = append(part.Buttons, []core.Button{{Label: name, Data: "aaaabbbbccccdddd:" + name}})
	}
	part.Buttons = append(part.Buttons, []core.Button{{Label: "Other…", Data: "aaaabbbbccccdddd:write", Form: true}})
	cleo := s.discord.Users()[0]
	cleo.Send("Make tea, please.")
	if d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot", Chat: cleo.DM().String()}, Part: part}); d.Outcome != core.Sent {
		t.Fatalf("delivery %+v", d)
	}
	return store
}

func TestMenusAndFormsOfDiscordArePlayed(t *testing.T) {
	s := serve(t, phones.Options{})
	store := asking(t, s)
	cleo := s.discord.Users()[0]
	events := follow(t, s.web)
	var first state
	events.next(&first)
	dm := chat(t, first.Worlds[1], phones.Private, cleo.ID().String())
	m := dm.Messages[len(dm.Messages)-1]
	if len(m.Buttons) != 2 || m.Buttons[0][0].Text != "Choose…" || len(m.Buttons[0][0].Menu) != 6 || m.Buttons[0][0].Menu[3] != (phones.Item{Text: "Mint", Value: "aaaabbbbccccdddd:Mint"}) {
		t.Fatalf("the menu: %+v", m.Buttons)
	}
	do := func(path string, more map[string]any) {
		t.Helper()
		body := map[string]any{"platform": "discord", "from": cleo.ID().String(), "chat": dm.ID}
		for k, v := range more {
			body[k] = v
		}
		if status, answer := post(t, s.web, path, body); status != 200 {
			t.Fatal(path, status, answer)
		}
	}
	do("/press", map[string]any{"message": m.ID, "data": m.Buttons[0][0].Data, "value": "aaaabbbbccccdddd:Mint"})
	if in := store.Await(t, 2)[1]; in.Callback == nil || in.Callback.Data != "aaaabbbbccccdddd:Mint" {
		t.Errorf("chosen: %+v", in)
	}
	do("/press", map[string]any{"message": m.ID, "data": m.Buttons[1][0].Data})
	var c phones.Change
	for c.Kind != phones.ChangeForm {
		events.next(&c)
	}
	want := phones.Field{ID: "0", Label: "Tea", About: "Which tea shall it be?", Hint: "Green, black or white", Lines: true, Required: true, Most: 4000}
	if c.Person.ID != cleo.ID().String() || c.Form.Title != "Your answer" || !slices.Equal(c.Form.Fields, []phones.Field{want}) {
		t.Fatalf("the form: %+v", c.Form)
	}
	do("/fill", map[string]any{"form": c.Form.ID, "fields": map[string]string{"0": "fresh mint"}})
	if in := store.Await(t, 3)[2]; in.Callback == nil || !slices.Equal(in.Callback.Fields, []string{"fresh mint"}) {
		t.Errorf("written: %+v", in)
	}
	if status, _ := post(t, s.web, "/fill", map[string]any{"platform": "discord", "from": cleo.ID().String(), "chat": dm.ID, "form": c.Form.ID}); status != 404 {
		t.Errorf("the form again: %d", status)
	}
	if status, _ := post(t, s.web, "/fill", map[string]any{"platform": "telegram", "from": "1", "form": "1"}); status != 404 {
		t.Errorf("a form on Telegram: %d", status)
	}
}
