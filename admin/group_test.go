package admin_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

// club makes a group's conversation of two people.
func (w *world) club() (id string) {
	from := func(name string, level core.Trust, block, words string, quote *core.Quote) transcript.Message {
		a := &transcript.Author{Name: name, Platform: "telegram", Trust: level, Place: "Allotment club"}
		a.Add(block, words, quote)
		return transcript.Message{Role: "user", Blocks: []core.Block{text(block)}, Author: a}
	}
	return w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "-100188", Place: "-100188"}, User: 2, Trust: core.Vault, Source: "telegram", PlaceName: "Allotment club"}, "Who waters", "rg",
		from("Ines Carvalho", core.Vault, "From \"Ines Carvalho\" (vault):\n> Who waters on Sunday?\n", "Who waters on Sunday?", nil),
		transcript.Message{Role: "assistant", Model: "anthropic/claude-sonnet-4-5", Blocks: []core.Block{text("Nobody is in the plan for **Sunday** yet.")}},
		from("Ada Okafor", core.Sandboxed, "In answer to this:\nFrom \"Ines Carvalho\" (earlier):\n> Who waters on Sunday?\n\nFrom \"Ada Okafor\" (sandboxed):\n> I can, after ten.\n", "I can, after ten.", &core.Quote{Name: "Ines Carvalho", Text: "Who waters on Sunday?"}),
		transcript.Message{Role: "assistant", Model: "anthropic/claude-sonnet-4-5", Blocks: []core.Block{text("Thank you, Ada.")}})
}

func TestAGroupsConversationNamesTheGroupAndEachAuthor(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	id := s.world.club()
	s.get("/admin/chats").has(t, "<bdi>Allotment club</bdi> <small>Group · vault</small>", "<bdi>Ines Carvalho</bdi> <small>vault</small>")
	a := s.get("/admin/chats/" + id)
	a.has(t, "<title>Who waters · Allotment club · Gatehouse</title>", "<p>Group <bdi>Allotment club</bdi>", `<b dir="auto">Ines Carvalho</b> <span>Telegram · vault</span>`,
		`<b dir="auto">Ada Okafor</b> <span>Telegram · sandboxed</span>`, "In answer to Ines Carvalho", ">I can, after ten.</div>")
	a.lacks(t, "From &#34;", "In answer to this:", "Matteo</b>")
	s.get("/admin/chats?q=after").has(t, "I can, after ten.</small>")
}
