package memory_test

import (
	"testing"

	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
)

// What a model has decided about a text is said with it; what rules found needs no such word.
func TestACardSaysWhatAModelTakesATextFor(t *testing.T) {
	for _, c := range []struct {
		outcome memory.Outcome
		via     string
		kind    detect.Type
		scope   detect.Scope
		want    string
	}{
		{memory.Asked, memory.ViaSemantic, detect.Preference, detect.Global, "Should I remember this as a preference? “Tables are hard.”"},
		{memory.Asked, memory.ViaSemantic, detect.Decision, detect.Project, "Should I remember this as a decision, for its project only? “Tables are hard.”"},
		{memory.Asked, memory.ViaSemantic, detect.Factual, detect.Conversation, "Should I remember this as a correction of a fact, for its conversation only? “Tables are hard.”"},
		{memory.Stored, memory.ViaSemantic, detect.Instruction, detect.Project, "Remembered as #4, an instruction, for its project only: “Tables are hard.”"},
		{memory.Asked, memory.ViaRules, detect.Factual, detect.Global, "Should I remember this? “Tables are hard.”"},
		{memory.Stored, memory.ViaExplicit, detect.Instruction, detect.Project, "Remembered as #4: “Tables are hard.”"},
	} {
		l := memory.Learnt{Outcome: c.outcome, Correction: memory.Correction{Number: 4, Text: "Tables are hard.", Via: c.via, Type: c.kind, Scope: c.scope, Card: memory.CardReview}}
		if got := chatmemory.Say(l, core.Address{}).Text; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
