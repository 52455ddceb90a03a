package session_test

import (
	"testing"

	"gatehouse/core"
)

// A group's conversation holds many people's words: it belongs to none of
// them, so whoever spoke first does not read it over the API.
func TestAGroupsConversationIsNoOnesOwn(t *testing.T) {
	h := open(t)
	ref := chat(7, "-100")
	ref.Place = "-100"
	first := h.resolve(ref)
	if first.err != nil || first.User != core.Operator {
		t.Fatalf("owner %d, %v", first.User, first.err)
	}
	ref.User = 8
	if second := h.resolve(ref); second.err != nil || second.ID != first.ID {
		t.Errorf("another member got %v, %v", second.ID, second.err)
	}
	if own := h.resolve(api(7, first.ID)); core.KindOf(own.err) != core.NotFound {
		t.Errorf("a member over the API: %v", own.err)
	}
	panel := api(7, "11111111-1111-4111-8111-111111111111")
	panel.Options.Source = core.PanelSource
	if begun := h.resolve(panel); begun.err != nil || begun.Source != core.PanelSource {
		t.Errorf("a conversation that the panel began is of %q, %v", begun.Source, begun.err)
	}
	if begun := h.resolve(api(7, "21111111-1111-4111-8111-111111111111")); begun.err != nil || begun.Source != core.APIBot {
		t.Errorf("a conversation of the API's is of %q, %v", begun.Source, begun.err)
	}
	if direct := h.resolve(chat(7, "7")); direct.User != 7 {
		t.Errorf("a direct conversation belongs to %d", direct.User)
	}
}
