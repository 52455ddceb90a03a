package orchestrator_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
)

func TestARuntimeTakesNoConversationThatAClientKeeps(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	turn := h.owners("r1", uuid.NewString(), "other/x", "And now?")
	turn.Rows[0].Turn.Before = []core.Said{{Role: "user", Text: "First."}, {Role: "assistant", Text: "Yes."}}
	res, _ := h.ended(turn)
	if f, ok := res.Terminal.(core.Failed); !ok || !strings.Contains(f.Message, "keeps the conversation itself") || len(o.works) != 0 {
		t.Errorf("%+v", res.Terminal)
	}
}
