package dispatch

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
)

// Under an answer stands one row of buttons, whatever is in it, and what they
// carry fits every platform.
func TestUnderAnAnswerStandsOneRowOfButtons(t *testing.T) {
	turn := &queue.Turn{Run: "0c5e1f3e-7f0b-5d42-9d3e-6c1f6d1f0a11"}
	choice := []core.Button{{Label: "Go on", Data: "a:go"}, {Label: "Stop", Data: "a:stop"}}
	for _, c := range []struct {
		name  string
		res   orchestrator.Result
		parts int
		want  []string
	}{
		{"an answer", orchestrator.Result{Response: "x"}, 1, []string{"Try again"}},
		{"one of two messages", orchestrator.Result{Response: "x"}, 2, []string{"Try again"}},
		{"a long one", orchestrator.Result{Response: "x"}, 3, []string{"Try again", "As a file"}},
		{"a failure in many words", orchestrator.Result{}, 3, []string{"Try again"}},
		{"a choice", orchestrator.Result{Response: "x", Buttons: choice}, 1, []string{"Go on", "Stop"}},
		{"a long choice", orchestrator.Result{Response: "x", Buttons: choice}, 5, []string{"Go on", "Stop", "As a file"}},
	} {
		rows := under(turn, c.res, c.parts)
		if len(rows) != 1 || len(rows[0]) != len(c.want) {
			t.Errorf("%s: %+v", c.name, rows)
			continue
		}
		for i, b := range rows[0] {
			if b.Label != c.want[i] || len(b.Data) > 64 {
				t.Errorf("%s: button %+v", c.name, b)
			}
			run, again := command.AgainRun(b.Data)
			name, file := command.FileRun(b.Data)
			if again != (b.Label == "Try again") || file != (b.Label == "As a file") || again && run != turn.Run || file && name != turn.Run {
				t.Errorf("%s: %+v is taken for another", c.name, b)
			}
		}
	}
	if len(choice) != 2 {
		t.Error("the choice was changed")
	}
}
