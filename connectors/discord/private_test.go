package discord

import (
	"net/http"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
	"gatehouse/core/texts"
)

func TestCommandsAreOfferedOnServersAndInTheBotsDirectMessagesOnly(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada, ben := s.NewUser("Ada"), s.NewUser("Ben")
	talk := s.NewGuild("Club", ada).NewChannel("talk")
	group := s.NewGroupDM(ada, ben)
	s.Bot().Install(ada)
	store := &connectorstest.Store{}
	slashed(t, s, store, nil)
	for _, in := range []discordtest.ID{talk, ada.DM()} {
		if _, err := ada.Slash(in, "ask", map[string]any{"question": "why?"}); err != nil {
			t.Errorf("in %s: %v", in, err)
		}
	}
	if _, err := ada.Slash(group, "ask", map[string]any{"question": "why?"}); core.KindOf(err) != core.NotFound {
		t.Errorf("in a group of users it is offered: %v", err)
	}
}

// A registration of an earlier version has no contexts, and a user can have installed
// the application for themselves: then Discord sends what they use among others.
func TestAnInteractionAmongUsersIsRefusedToItsUserAloneAndNotStored(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada, ben := s.NewUser("Ada"), s.NewUser("Ben")
	group := s.NewGroupDM(ada, ben)
	s.Bot().Install(ada)
	store := &connectorstest.Store{}
	b := slashed(t, s, store, nil)
	old := []map[string]any{{"name": "ask", "description": "ask", "type": 1, "options": []map[string]any{
		{"type": 3, "name": "question", "description": "what", "required": true, "autocomplete": true}}}}
	if f := b.api.Call(t.Context(), http.MethodPut, "/applications/"+s.Bot().ID().String()+"/commands", old, nil); f != nil {
		t.Fatal(f)
	}
	id, err := ada.Slash(group, "ask", map[string]any{"question": "what is my diagnosis?"})
	if err != nil {
		t.Fatal(err)
	}
	half, err := ada.HalfType(group, "ask", "question", "w")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []discordtest.ID{id, half} {
		eventually(t, "it is answered", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateAnswered })
	}
	all := s.History(group)
	if len(all) != 1 || all[0].OnlyFor != ada.ID() || all[0].Text != texts.Text("not_here") {
		t.Errorf("the group shows %+v", all)
	}
	if i, _ := s.Interaction(half); len(i.Choices) != 0 {
		t.Errorf("completed to %v", i.Choices)
	}
	ada.Send("after it")
	if rows := store.Await(t, 1); len(rows) != 1 || rows[0].Text != "after it" {
		t.Errorf("stored %+v", rows)
	}
}
