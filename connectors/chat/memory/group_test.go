package memory_test

import (
	"strings"
	"testing"

	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
)

// What a user has said in a direct chat is shown in a group by its number alone.
func TestAGroupIsShownNoTextOfAnOlderCorrection(t *testing.T) {
	w := newWorld(t)
	l, err := w.store.Add(t.Context(), ann, memory.Draft{Text: "always answer in German, Petra insists"}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	old := l.Correction
	w.at = core.Address{Bot: "b", Chat: "g", Place: "g"}
	says := func(name, text string, want ...string) {
		t.Helper()
		if strings.Contains(text, "Petra") {
			t.Errorf("%s: the group reads %q", name, text)
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q, want %q", name, text, part)
			}
		}
	}
	if l, err = w.store.Hear(t.Context(), memory.Message{User: ann, Source: "run:g", Session: "s2", Text: "From now on always answer in English.", Answer: "Ja.", Model: "m"}); err != nil || l.Old == nil {
		t.Fatal(l, err)
	}
	says("a conflict", chatmemory.Say(l, w.at).Text, "Remembered as #2: “From now on always answer in English.”", "contradicts #1. Which one")
	l.Outcome = memory.Asked
	says("a card", chatmemory.Say(l, w.at).Text, "contradicts #1.")
	says("remember", w.remember("always answer in French").Text, "Remembered as #3: “always answer in French”", "contradicts #2.")
	w.here = memory.Place{Session: "s2"}
	says("remember here", w.remember("in this conversation use metric units").Text, "Remembered as #4")
	if c, err := w.store.Get(t.Context(), ann, "4"); err != nil || c.Scope != detect.Conversation || c.ScopeRef != "s2" {
		t.Errorf("what is for this conversation: %+v, %v", c, err)
	}
	says("forget", w.forget("1").Text, "Forgotten: #1.")
	says("restore", w.run("restore "+old.ID).Text, "Remembered as #1.", "contradicts #3. Which one applies?")
	says("undo", w.run("undo "+old.ID).Text, "Forgotten: #1.")
	says("list", w.run("").Text, "for you alone")
	card := w.card()
	text := "It is Canberra, Petra insists."
	if _, err := w.store.Update(t.Context(), ann, card.ID, memory.Change{Text: &text}, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	says("edit", w.run("edit "+card.ID).Text, "Others would read it here")
	says("save", w.run("save "+card.ID).Text, "Remembered as #5.")
	w.at = core.Address{Bot: "b", Chat: "1"}
	if got := w.forget("1").Text; got != "There is no correction 1 of yours. `/memory` shows them." {
		t.Errorf("%q", got)
	}
	if got := w.run("restore " + old.ID).Text; !strings.Contains(got, "“always answer in German, Petra insists”") {
		t.Errorf("a direct chat is shown %q", got)
	}
}
