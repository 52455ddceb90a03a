package session

import "encoding/json"

// ActivityChange returns the Change that has a session entered in the owner's log of
// conversations, or not (Session.ActivityOff).
func ActivityChange(on bool) Change {
	value := json.RawMessage("false")
	if on {
		value = json.RawMessage("null") // removes the mark
	}
	return Change{Metadata: map[string]json.RawMessage{"activity": value}, Owner: true}
}
