package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/agent"
)

func TestOfAGroupsTalkTheNewestLinesAreKeptAndNoMore(t *testing.T) {
	var o agent.Overheard
	at := func(n int) core.Address {
		return core.Address{Bot: "b", Chat: fmt.Sprint(n), Place: fmt.Sprint(n % 2)}
	}
	for i := range 120 {
		o.Add(at(0), agent.Quoted{Name: "N", Text: fmt.Sprintf("line %d %s", i, strings.Repeat("ä", 2000))})
	}
	if lines, chats := o.Held(); lines != 50 || chats != 1 {
		t.Errorf("%d lines of %d chats are held", lines, chats)
	}
	got := o.Last(at(0))
	if len(got) != 20 || !strings.HasPrefix(got[0].Text, "line 100 ") || !strings.HasPrefix(got[19].Text, "line 119 ") {
		t.Fatalf("%d lines, from %.10q to %.10q", len(got), got[0].Text, got[len(got)-1].Text)
	}
	if n := len([]rune(got[0].Text)); n != 501 { // 500 and the sign that it goes on
		t.Errorf("a line of %d characters", n)
	}
	for i := 1; i <= 499; i++ {
		o.Add(at(i), agent.Quoted{Text: "x"})
	}
	o.Add(at(0), agent.Quoted{Text: "again"}) // used lately
	o.Add(at(500), agent.Quoted{Text: "x"})   // one too many
	if _, chats := o.Held(); chats != 500 {
		t.Errorf("%d chats are held", chats)
	}
	if len(o.Last(at(1))) != 0 || len(o.Last(at(0))) == 0 || len(o.Last(at(500))) != 1 {
		t.Error("not the chat that was used longest ago gave way")
	}
	o.Forget(at(500), false)
	if len(o.Last(at(500))) != 0 || len(o.Last(at(498))) != 1 {
		t.Error("forgetting a chat took another's, or left its own")
	}
	o.Forget(at(3), true)
	if len(o.Last(at(499))) != 0 || len(o.Last(at(498))) != 1 {
		t.Error("forgetting a group took another's, or left its own")
	}
}
