package core

import "strings"

// Person reports whether p is one user, who may ask for access and be given
// it: no bot, no account that represents many or for the platform itself (the
// connector marks both as Shared), and no id that is no person's (zero, negative,
// empty).
func (p Peer) Person() bool {
	return p.Platform != "" && !p.Shared && !p.Bot && personalID(p.ID)
}

// personalID reports whether id can be a user's. Platforms give negative
// numbers to groups and channels.
func personalID(id string) bool {
	id = strings.TrimSpace(id)
	return strings.Trim(id, "0") != "" && !strings.HasPrefix(id, "-") && !strings.HasPrefix(id, "+")
}
