package commands

import (
	"fmt"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
)

// An Audit prints the audit log.
type Audit struct {
	Action  string        `help:"Only these, such as pairing.approve, or 'pairing.*' for all that begin so."`
	User    string        `placeholder:"PERSON" help:"Only this user's actions: a number or name of 'gatehouse people list'; 1 is the owner, 0 the program."`
	Subject string        `help:"Only what was done to this id."`
	Via     string        `enum:",panel,chat,api,cli,upkeep" default:"" help:"Only by this way: panel, chat, api, cli or upkeep."`
	Since   time.Duration `help:"Only events of the last period, such as 24h or 7d."`
	Limit   int           `default:"50" help:"How many events at most, the newest."`
	JSON    bool          `help:"As JSON, one event a line."`
}

func (c *Audit) Run(p *console.Process) error {
	if c.Limit < 1 || c.Limit > 1_000_000 {
		return core.Errorf(core.Invalid, "--limit must be from 1 to 1000000")
	}
	query := url.Values{"action": {c.Action}, "subject": {c.Subject}, "via": {c.Via}}
	if c.User != "" {
		user, err := c.user(p)
		if err != nil {
			return err
		}
		query.Set("user_id", strconv.FormatInt(user, 10))
	}
	if c.Since > 0 {
		query.Set("since", time.Now().Add(-c.Since).Format(time.RFC3339Nano))
	}
	names := accountNames(p)
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "TIME\tBY\tVIA\tACTION\tSUBJECT\tDETAIL")
	}
	for left := c.Limit; left > 0; {
		query.Set("limit", strconv.Itoa(min(left, 500)))
		var page control.AuditLog
		if err := p.Get("/api/audit?"+query.Encode(), &page); err != nil {
			return err
		}
		if len(page.Events) == 0 && left == c.Limit && !c.JSON {
			_, err := fmt.Fprintln(p.Stdout, "The audit log has no matching entry.")
			return err
		}
		left -= len(page.Events)
		for _, e := range page.Events {
			if c.JSON {
				if err := console.PrintLine(p.Stdout, e); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format("2006-01-02 15:04:05"), actorName(names, e.User), e.Via, e.Action, core.CleanName(e.Subject), core.CleanName(string(e.Detail)))
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
	}
	if c.JSON {
		return nil
	}
	return w.Flush()
}

// user returns the number that --user names; one that is given may be of a user who was forgotten.
func (c *Audit) user(p *console.Process) (int64, error) {
	if n, err := strconv.ParseInt(c.User, 10, 64); err == nil {
		return n, nil
	}
	q, err := p.Connect()
	if err != nil {
		return 0, err
	}
	defer func() { _ = q.Close() }()
	r, err := q.User(c.User)
	return r.User, err
}

// accountNames returns the names of the panel's accounts, also of removed ones, by user. Without
// them users are numbers.
func accountNames(p *console.Process) (names map[int64]string) {
	_ = p.Get("/control/names", &names)
	return names
}

func actorName(names map[int64]string, user int64) string {
	if name := names[user]; name != "" {
		return core.CleanName(name)
	}
	switch user {
	case 0:
		return "gateway"
	case core.Operator:
		return "owner"
	}
	return fmt.Sprintf("user %d", user)
}
