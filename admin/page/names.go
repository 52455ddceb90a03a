package page

import (
	"fmt"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// Names are what users call themselves, by their number.
type Names map[int64]string

// Of returns the name of a user, or a description of those without one.
func (n Names) Of(user int64) string {
	switch name := n[user]; {
	case name != "":
		return name
	case user == core.Operator:
		return "Operator"
	case user == auth.LocalUser: // no row of users: LOCALHOST_ACCESS lets them in
		return "Programs on this machine, without a key"
	}
	return fmt.Sprintf("User %d", user)
}
