package main

import (
	"gatehouse/core"
	"gatehouse/core/session/discover"
)

// discoverer takes in what Claude Code's command line begins in the vault. Only the
// operator, and what runs at full trust, writes transcripts there, so the sessions
// are the operator's.
func (a *app) discoverer() *discover.Discoverer {
	return discover.New(discover.Options{DB: a.db, Vault: a.vault, Sessions: a.sessions, Owner: core.Operator, Trust: core.Full, Clock: a.clock, Log: a.log})
}
