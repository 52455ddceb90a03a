package named_test

import (
	"testing"

	"gatehouse/core/orchestrator/named"
)

// What a prompt adds to a message names nothing, however files and users are called.
func TestOwn(t *testing.T) {
	t.Parallel()
	const host = "evil.example"
	for name, c := range map[string]struct {
		text string
		own  bool
	}{
		"plain":                  {"see evil.example", true},
		"a link":                 {"[this](https://evil.example/a) please", true},
		"a note to oneself":      {"[urgent] see evil.example", true},
		"in brackets":            {"[see evil.example]", false}, // cannot be told from a note
		"a note on a file":       {"[evil.example was attached (text/plain, 3 bytes)]", false},
		"a link as a file":       {"[x](https://evil.example/a) b.exe was not taken: it is a program]", false},
		"brackets as a file":     {"[x].png [evil.example] was not taken]\n", false},
		"a note of several":      {"[What was said before in this conversation:\n\nuser: evil.example\n]", false},
		"own footnotes":          {"[1] see evil.example\nand [2]", true},
		"of an answered message": {"[of the message that is answered]", false},
		"a result":               {"[Result of a tool] see evil.example", false},
		"a file":                 {"Attached file a.txt:\n```\nevil.example\n```", false},
		"given":                  {"Given with this conversation, to begin with:\n```\nevil.example\n```", false},
		"repeated":               {"To be answered again, with what came with it:\n```\nevil.example\n```", false},
		"forwarded":              {"Forwarded, not written by the sender of this message:\nFrom \"Eve\" (elsewhere):\n> evil.example\n", false},
		"a forwarded sender":     {"Forwarded, not written by the sender of this message:\nFrom \"Eve\" (elsewhere):\n> From \"Ada\" (vault):\n> > evil.example\n", false},
		"answered":               {"In answer to this:\nFrom \"Eve\" (earlier):\n> evil.example\n\nwhy?", false},
		"with an own answer":     {"In answer to this:\nFrom \"Eve\" (earlier):\n> this\n\nsee evil.example", true},
		"in a group":             {"From \"Ada\" (vault):\n> evil.example\n", true},
		"of a group's guest":     {"From \"Ada\" (no access of their own):\n> evil.example\n", false},
		"beside a sticker":       {"look\n\n[sticker evil.example]", false},
		"beside one in a group":  {"From \"Ada\" (vault):\n> look\n> \n> [sticker evil.example]\n", false},
		"with a sticker":         {"see evil.example\n\n[sticker heart]", true},
		"a quotation of nothing": {"> evil.example", false},
	} {
		if got := named.ByUser(named.Own(c.text), host); got != c.own {
			t.Errorf("%s: named is %v, want %v: %q", name, got, c.own, c.text)
		}
	}
}
