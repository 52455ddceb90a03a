package main

import (
	"fmt"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core"
)

// greet prints on the terminal what the operator needs after a first start: oneTime, the password
// of the panel, and a code to claim the bots while they have no owner. Without a terminal no one
// reads either: the log names another way to sign in.
func (a *app) greet(p *process, oneTime string) {
	if oneTime != "" {
		fmt.Fprintf(p.Stderr, "\n  The panel: http://%s/admin\n  Sign in as admin with the one-time password: %s\n\n", a.cfg.Addr, oneTime)
	} else if has, err := a.admins.HasPassword(p.Context); err == nil && !has {
		a.log.Warn("no one can sign in to the panel yet: set GATEHOUSE_ADMIN_PASSWORD_FILE, or start once in a terminal, which prints a one-time password")
	}
	if !p.Terminal || len(a.bots.Names()) == 0 {
		return
	}
	code, expires, err := a.pairing.Codes.FirstClaim(p.Context)
	until := expires.Local().Format(console.Minute)
	switch {
	case core.KindOf(err) == core.Conflict: // they have an owner
	case err != nil:
		a.log.Warn("no claim code was made; 'gatehouse claim' makes one", "err", err)
	case code == "":
		fmt.Fprintf(p.Stderr, "\n  The bots have no owner yet. The code that was printed before is valid until %s; 'gatehouse claim' prints another one.\n\n", until)
	default:
		fmt.Fprintf(p.Stderr, "\n  The bots have no owner yet. To become it, send this to a bot in a direct message, before %s:\n\n    /claim %s\n\n  'gatehouse claim' prints another one.\n\n", until, code)
	}
}
