package remembering

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
)

// In a group one writes the bot's name first, and means what comes behind it.
func TestTheNameOfTheBotBeforeAMessageOfAGroupIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		"@gatehouse_bot No, it is red.": "No, it is red.",
		"<@123456>, no, it is red.":     "no, it is red.",
		"No, ask @ada about it.":        "No, ask @ada about it.",
		"@gatehouse_bot":                "@gatehouse_bot",
	} {
		turn := &orchestrator.Turn{Rows: []core.Inbound{{Address: core.Address{Place: "-1"}, Text: text}}}
		if got := written(turn, ""); got != want {
			t.Errorf("of %q it reads %q", text, got)
		}
	}
	turn := &orchestrator.Turn{Rows: []core.Inbound{{Text: "@noon remind me"}}}
	if got := written(turn, "And now."); got != "@noon remind me\n\nAnd now." {
		t.Errorf("in a direct message it reads %q", got)
	}
}
