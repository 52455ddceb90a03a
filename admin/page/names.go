package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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

// MaxChoice limits the users, or other rows, that a list offers to choose from.
const MaxChoice = 200

// Choices returns up to MaxChoice users to choose from by name, and the chosen one among
// them; 0 is none.
func (n Names) Choices(chosen int64) (list []Choice) {
	for user, name := range n {
		if strings.TrimSpace(name) != "" && user != chosen {
			list = append(list, Choice{Value: strconv.FormatInt(user, 10), Label: name})
		}
	}
	ByLabel(list)
	list = Head(list, MaxChoice)
	if chosen != 0 {
		list = append(list, Choice{Value: strconv.FormatInt(chosen, 10), Label: n.Of(chosen)})
		ByLabel(list)
	}
	return list
}

// ByLabel sorts choices by their labels, in any case.
func ByLabel(list []Choice) {
	core.Sort(list, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Label), strings.ToLower(b.Label)), cmp.Compare(a.Value, b.Value))
	})
}
