package remembering

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
)

// In a group one writes the bot's name first, and means what comes behind it. What begins with the name of
// another member is for that member.
func TestTheNameOfTheBotBeforeAMessageOfAGroupIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		"@gatehouse_bot No, it is red.":      "No, it is red.",
		"@gatehouse_bot, no, it is red.":     "no, it is red.",
		"@bea No, that is wrong.":            "@bea No, that is wrong.",
		"It was changed: @gatehouse_bot No.": "It was changed: @gatehouse_bot No.",
	} {
		turn := &orchestrator.Turn{Rows: []core.Inbound{{Address: core.Address{Place: "-1"}, Text: text, Called: "@gatehouse_bot"}}}
		if got := written(turn, ""); got != want {
			t.Errorf("of %q it reads %q", text, got)
		}
	}
	turn := &orchestrator.Turn{Rows: []core.Inbound{{Text: "@noon remind me"}}}
	if got := written(turn, "And now."); got != "@noon remind me\n\nAnd now." {
		t.Errorf("in a direct message it reads %q", got)
	}
}
