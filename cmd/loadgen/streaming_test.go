package main

import (
	"testing"
	"time"

	"gatehouse/cmd/loadgen/crowd"
)

func TestAnAudienceSeesFinalsAndHowCloseThePreviewsAre(t *testing.T) {
	a := &audience{finals: map[int]time.Time{}, previews: map[string]time.Time{}, closest: time.Hour, done: make(chan string, 10), counting: true}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(chat, text string, after time.Duration) {
		a.see(chat, crowd.Message{Chat: chat, Text: text, Bot: true, At: at.Add(after)})
	}
	a.see("a", crowd.Message{Chat: "a", Text: "a question: End 3.", At: at})
	say("a", "and then", time.Second)
	say("b", "and then", 1100*time.Millisecond) // another chat is no neighbour
	say("a", "and then there", 2500*time.Millisecond)
	say("a", "and then there End 7.", 2600*time.Millisecond)
	say("a", "and then there End 7.", 2700*time.Millisecond) // shown once more
	say("a", "the next answer", 2800*time.Millisecond)
	if a.closest != 1500*time.Millisecond || a.shown != 4 {
		t.Errorf("closest %v, shown %d", a.closest, a.shown)
	}
	if len(a.finals) != 1 || !a.finals[7].Equal(at.Add(2700*time.Millisecond)) || len(a.done) != 1 || <-a.done != "a" {
		t.Errorf("finals %v", a.finals)
	}
}
