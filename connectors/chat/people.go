package chat

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/texts"
	"gatehouse/pairing/codes"
)

// Pairings lists and decides pairing requests. A request is named by its id or
// its code; the errors are NotFound for an unknown one.
type Pairings interface {
	Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error)
	Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
	Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
	Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
}

// Codes makes codes that users give to others, or type elsewhere themselves.
type Codes interface {
	NewLink(ctx context.Context, user int64, from core.Address) (code string, expires time.Time, err error)
	Invite(ctx context.Context, inv codes.Invitation, by core.Actor) (code string, made codes.Invitation, err error)
}

// people handles the commands about access.
type people struct {
	clock     core.Clock
	pairings  Pairings
	codes     Codes
	inviteURL func(bot, code string) string
}

// whoami returns how this gateway knows the sender.
func whoami(_ context.Context, r command.Request) (command.Outcome, error) {
	if r.User == 0 {
		return respond("whoami_group", texts.With{"Who": plain(r.In.From.Name), "ID": r.In.From.ID, "Trust": r.Trust})
	}
	return respond("whoami", texts.With{"Who": plain(r.In.From.Name), "ID": r.In.From.ID, "User": r.User, "Role": r.Role, "Trust": r.Trust})
}

// claimed answers nothing: the gate has handled the code and has answered.
func claimed(context.Context, command.Request) (command.Outcome, error) {
	return command.Outcome{}, nil
}

// pairWithoutCode answers /pair without a code. The gate handles codes.
func pairWithoutCode(context.Context, command.Request) (command.Outcome, error) {
	return respond("pair_how")
}

// link returns a code with which the sender links an account on another
// platform. The gate handles the code when it is used.
func (p *people) link(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := known(r); err != nil {
		return command.Outcome{}, err
	}
	code, expires, err := p.codes.NewLink(ctx, r.User, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	return respond("link", texts.With{"Until": expires.UTC().Format("15:04"), "Code": code})
}

// pending lists the pairing requests that wait.
func (p *people) pending(ctx context.Context, _ command.Request) (command.Outcome, error) {
	rs, err := p.pairings.Requests(ctx, "pending", 20)
	if err != nil {
		return command.Outcome{}, err
	}
	if len(rs) == 0 {
		return respond("pending_nobody")
	}
	var b strings.Builder
	b.WriteString(texts.Text("pending") + "\n\n")
	for _, r := range rs {
		b.WriteString(texts.Text("pending_line", texts.With{"Who": plain(r.Display), "ID": r.PlatformUserID, "Bot": r.Bot, "Code": r.Code}) + "\n")
	}
	b.WriteString("\n" + texts.Text("pending_end"))
	return command.Outcome{Text: b.String()}, nil
}

// approve approves the request of a code, with a level and a time if given.
func (p *people) approve(ctx context.Context, r command.Request) (command.Outcome, error) {
	words := strings.Fields(r.In.Text)
	a, err := approval(words[min(1, len(words)):], p.clock.Now())
	if len(words) == 0 || len(words) > 3 || err != nil {
		return respond("approve_how")
	}
	req, err := p.pairings.Approve(ctx, words[0], a, r.By())
	if core.KindOf(err) == core.NotFound {
		return respond("no_request")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	until := ""
	if !a.ExpiresAt.IsZero() {
		until = a.ExpiresAt.UTC().Format("2 January 15:04")
	}
	return respond("approve_done", texts.With{"Who": plain(req.Display), "Trust": req.ApprovedTrustLevel, "Until": until})
}

// approval parses what follows a code: a level, a time.
func approval(words []string, now time.Time) (a core.Approval, err error) {
	for _, word := range words {
		if d, err := parsePeriod(word); err == nil {
			a.ExpiresAt = now.Add(d)
		} else if a.Trust, err = core.ParseTrust(word); err != nil {
			return a, err
		}
	}
	return a, nil
}

// deny denies the request of a code.
func (p *people) deny(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.Args() == "" {
		return respond("deny_how")
	}
	req, err := p.pairings.Deny(ctx, r.Args(), r.By())
	if core.KindOf(err) == core.NotFound {
		return respond("no_request")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return respond("deny_done", texts.With{"Who": plain(req.Display)})
}

// invite makes an invitation to this bot.
func (p *people) invite(ctx context.Context, r command.Request) (command.Outcome, error) {
	inv := codes.Invitation{Bot: r.In.Bot}
	for _, word := range strings.Fields(r.In.Text) {
		trust, err := core.ParseTrust(word)
		if n, nerr := strconv.Atoi(word); err != nil && nerr == nil && n > 0 {
			inv.UsesLeft = n
		} else if d, derr := parsePeriod(word); err != nil && derr == nil {
			inv.Lasts = d
		} else if err != nil {
			return respond("invite_how")
		} else {
			inv.Trust = trust
		}
	}
	code, inv, err := p.codes.Invite(ctx, inv, r.By())
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: InvitationText(p.inviteURL(inv.Bot, code), code, inv)}, nil
}

// InvitationText returns what an invitation gives and how to use it. The link
// may be "".
func InvitationText(link, code string, inv codes.Invitation) string {
	lasts := ""
	if inv.Lasts > 0 {
		lasts = formatDays(inv.Lasts)
	}
	return texts.Text("invitation", texts.With{"People": inv.UsesLeft, "Trust": inv.Trust, "Lasts": lasts,
		"Until": inv.ExpiresAt.UTC().Format("2 January 15:04"), "Link": link, "Code": code})
}

var errDuration = errors.New("a time is written as 30m, 24h or 7d")

// parsePeriod returns a period of a minute or more, such as 30m, 24h or 7d.
func parsePeriod(text string) (time.Duration, error) {
	d, err := core.Period(text, 3650)
	if err != nil || d < time.Minute {
		return 0, errDuration
	}
	return d, nil
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
