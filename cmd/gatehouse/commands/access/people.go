package access

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/pairing/people"
)

// A People lists users.
type People struct {
	List peopleListCmd `cmd:"" help:"List users with their numbers, accounts, role, trust and state."`
}

type peopleListCmd struct {
	State string `enum:",access,policy,none,blocked" default:"" help:"Only these: access, policy (no access of their own, but a bot's policy lets them in), none or blocked."`
	JSON  bool   `help:"As JSON, with each access."`
}

func (c *peopleListCmd) Help() string {
	return "The number is what --user of other commands takes. An enabled group answers users in state none, too. Who has asked for access and was not approved has none: 'gatehouse pairing list'. 'gatehouse admins list' shows the accounts of the panel."
}

func (c *peopleListCmd) Run(p *console.Process) error {
	var res control.People
	if err := p.Get("/control/people", &res); err != nil {
		return err
	}
	list := slices.DeleteFunc(res.People, func(l people.Listed) bool { return c.State != "" && l.State != c.State })
	const header = "USER\tNAME\tROLE\tSTATE\tTRUST\tACCOUNTS\tBOTS"
	if err := console.PrintList(p.Stdout, c.JSON, list, "No one.", header, personRow); err != nil {
		return err
	}
	if res.More {
		fmt.Fprintf(p.Stderr, "These are the newest %d; the panel's page People finds the others by name.\n", len(res.People))
	}
	if len(list) == 1 && list[0].User == core.Operator && len(list[0].Accounts) == 0 && !c.JSON {
		fmt.Fprintln(p.Stderr, "The owner has no account on a platform yet: 'gatehouse claim' prints a code for the bot.")
	}
	return nil
}

func personRow(l people.Listed) string {
	var accounts, bots []string
	for _, a := range l.Accounts {
		accounts = append(accounts, core.CleanName(a.Platform)+":"+core.CleanName(a.ID))
	}
	for _, a := range l.Access {
		bot := core.CleanName(a.Bot)
		if a.Scope == core.ScopeGroup {
			bot += " (group)"
		}
		if !slices.Contains(bots, bot) {
			bots = append(bots, bot)
		}
	}
	return console.Cells(l.User, cmp.Or(l.Name, "-"), l.Role, l.State, cmp.Or(l.Trust, "-"),
		cmp.Or(strings.Join(accounts, ", "), "-"), cmp.Or(strings.Join(bots, ", "), "-"))
}

// called returns a user as results name them.
func called(r control.Reference) string {
	if r.User == core.Operator {
		return "the owner"
	}
	if r.Name == "" {
		return "user " + strconv.FormatInt(r.User, 10)
	}
	return fmt.Sprintf("%s (user %d)", r.Name, r.User)
}
