// Package access is the chat commands about who may use a bot: /pairing, /approve, /deny,
// /invite, /pair and /link.
package access

import (
	"context"
	"strconv"
	"strings"
	"time"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/texts"
	"gatehouse/pairing/codes"
)

const (
	maxPending = 20 // requests of an answer to /pairing
	maxRevoked = 5  // accesses in it that were revoked
)

// Pairings lists and decides pairing requests. A request is named by its id or
// its code; the errors are NotFound for an unknown one.
type Pairings interface {
	Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error)
	Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
	Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
}

// Codes makes codes that users give to others, or type elsewhere themselves.
type Codes interface {
	NewLink(ctx context.Context, user int64, from core.Address) (code string, expires time.Time, err error)
	Invite(ctx context.Context, inv codes.Invitation, by core.Actor) (code string, made codes.Invitation, err error)
}

// Commands handles these commands. All fields are required.
type Commands struct {
	Clock    core.Clock
	Pairings Pairings
	Codes    Codes
	Link     func(bot, code string) string // that uses an invitation; "" where the platform has none
	Zone     func(ctx context.Context, user int64) (*time.Location, error)
}

// when returns a time for the sender of r.
func (c *Commands) when(ctx context.Context, r command.Request, t time.Time) (string, error) {
	zone, err := c.Zone(ctx, r.User)
	if err != nil {
		return "", err
	}
	return texts.Time(t, c.Clock.Now(), zone), nil
}

// Pair answers /pair without a code. The gate handles codes.
func Pair(context.Context, command.Request) (command.Outcome, error) {
	return command.Respond("pair_how")
}

// MakeLink returns a code with which the sender links an account on another
// platform. The gate handles the code when it is used.
func (c *Commands) MakeLink(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	code, expires, err := c.Codes.NewLink(ctx, r.User, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	until, err := c.when(ctx, r, expires)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("link", texts.With{"Until": until, "Code": code})
}

// Pending lists the pairing requests that wait, and the latest accesses that were revoked.
func (c *Commands) Pending(ctx context.Context, r command.Request) (command.Outcome, error) {
	waiting, err := c.Pairings.Requests(ctx, "pending", maxPending+1)
	if err != nil {
		return command.Outcome{}, err
	}
	denied, err := c.Pairings.Requests(ctx, "denied", 0)
	if err != nil {
		return command.Outcome{}, err
	}
	var b strings.Builder
	if len(waiting) == 0 {
		b.WriteString(texts.Text("pending_nobody") + "\n")
	} else {
		b.WriteString(texts.Text("pending") + "\n\n")
		for _, q := range waiting[:min(len(waiting), maxPending)] {
			ref, code := q.Ref(c.Clock.Now()), q.Code
			if ref != code {
				code = ""
			}
			b.WriteString(texts.Text("pending_line", texts.With{"Who": texts.Plain(q.Display), "ID": q.PlatformUserID, "Bot": q.Bot, "Code": code, "Ref": ref}) + "\n")
		}
		if len(waiting) > maxPending {
			b.WriteString("\n" + texts.Text("pending_more") + "\n")
		}
		b.WriteString("\n" + texts.Text("pending_end") + "\n")
	}
	n := 0
	for _, q := range denied {
		if !q.Revoked || n == maxRevoked {
			continue
		}
		if n++; n == 1 {
			b.WriteString("\n" + texts.Text("revoked_head") + "\n\n")
		}
		at, err := c.when(ctx, r, q.ResolvedAt)
		if err != nil {
			return command.Outcome{}, err
		}
		b.WriteString(texts.Text("revoked_line", texts.With{"Who": texts.Plain(q.Display), "ID": q.PlatformUserID, "Bot": q.Bot, "Group": q.Scope == core.ScopeGroup, "At": at, "Ref": q.ID}) + "\n")
	}
	return command.Outcome{Text: strings.TrimSpace(b.String())}, nil
}

// Approve approves the request of a code, or of an id, with a level and a time if given.
func (c *Commands) Approve(ctx context.Context, r command.Request) (command.Outcome, error) {
	words := strings.Fields(r.In.Text)
	if len(words) == 0 {
		return command.Respond("approve_how")
	}
	a, wrong := approval(words[1:], c.Clock.Now())
	if wrong != "" {
		return arguments.Wrong(wrong, texts.Text("approve_how"))
	}
	q, err := c.Pairings.Approve(ctx, words[0], a, r.By())
	if core.KindOf(err) == core.NotFound {
		return command.Respond("no_request", texts.With{"Code": texts.Plain(words[0])})
	}
	if err != nil {
		return command.Outcome{}, err
	}
	until := ""
	if !a.ExpiresAt.IsZero() {
		if until, err = c.when(ctx, r, a.ExpiresAt); err != nil {
			return command.Outcome{}, err
		}
	}
	return command.Respond("approve_done", texts.With{"Who": texts.Plain(q.Display), "Trust": q.ApprovedTrustLevel, "Until": until})
}

// approval parses what follows a code: a level, a time. wrong is the word that is neither, or
// a second one of its kind.
func approval(words []string, now time.Time) (a core.Approval, wrong string) {
	for _, word := range words {
		d, timed := parsePeriod(word)
		trust, terr := core.ParseTrust(strings.ToLower(word))
		switch {
		case timed && a.ExpiresAt.IsZero():
			a.ExpiresAt = now.Add(d)
		case terr == nil && a.Trust == core.Stranger:
			a.Trust = trust
		default:
			return a, word
		}
	}
	return a, ""
}

// Deny denies the request of a code.
func (c *Commands) Deny(ctx context.Context, r command.Request) (command.Outcome, error) {
	words := strings.Fields(r.In.Text)
	switch {
	case len(words) == 0:
		return command.Respond("deny_how")
	case len(words) > 1:
		return arguments.Wrong(words[1], texts.Text("deny_how"))
	}
	q, err := c.Pairings.Deny(ctx, words[0], r.By())
	if core.KindOf(err) == core.NotFound {
		return command.Respond("no_request", texts.With{"Code": texts.Plain(words[0])})
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("deny_done", texts.With{"Who": texts.Plain(q.Display)})
}

// Invite makes an invitation to this bot.
func (c *Commands) Invite(ctx context.Context, r command.Request) (command.Outcome, error) {
	inv := codes.Invitation{Bot: r.In.Bot}
	for _, word := range strings.Fields(r.In.Text) {
		n, nerr := strconv.Atoi(word)
		d, timed := parsePeriod(word)
		trust, terr := core.ParseTrust(strings.ToLower(word))
		switch {
		case terr == nil && inv.Trust == core.Stranger:
			inv.Trust = trust
		case nerr == nil && n > 0 && inv.UsesLeft == 0:
			inv.UsesLeft = n
		case timed && inv.Lasts == 0:
			inv.Lasts = d
		default:
			return arguments.Wrong(word, texts.Text("invite_how"))
		}
	}
	code, inv, err := c.Codes.Invite(ctx, inv, r.By())
	if err != nil {
		return command.Outcome{}, err
	}
	until, err := c.when(ctx, r, inv.ExpiresAt)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: InvitationText(c.Link(inv.Bot, code), code, until, inv)}, nil
}

// InvitationText returns what an invitation gives, until when, and how to use it. The link
// may be "".
func InvitationText(link, code, until string, inv codes.Invitation) string {
	lasts := ""
	if inv.Lasts > 0 {
		lasts = formatDays(inv.Lasts)
	}
	return texts.Text("invitation", texts.With{"People": inv.UsesLeft, "Trust": inv.Trust, "Lasts": lasts, "Until": until, "Link": link, "Code": code})
}

// parsePeriod returns a period of a minute or more, such as 30m, 24h or 7d.
func parsePeriod(text string) (d time.Duration, ok bool) {
	d, err := core.Period(text, 3650)
	return d, err == nil && d >= time.Minute
}

// formatDays returns a duration in days or hours, where it is whole ones.
func formatDays(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return texts.Text("days", texts.With{"N": int(d / (24 * time.Hour))})
	case d%time.Hour == 0:
		return texts.Text("hours", texts.With{"N": int(d / time.Hour)})
	}
	return d.String()
}
