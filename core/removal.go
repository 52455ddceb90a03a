package core

import (
	"context"
	"time"
)

// A Removal is one transaction's part of forgetting a user. The owners of
// tables are called in order; each removes what its tables keep of the user
// and adds what it removed, for the owners behind it and for the vault.
type Removal struct {
	Person
	By    Actor
	Rows  int              // how many more rows this transaction may remove; Last has no limit
	Last  bool             // the last transaction: it removes all that is left
	Swept map[string]int64 // by table: how far its owner's Sweep has read it

	Runs     []string            // removed runs
	Asks     []string            // removed asks
	Turns    map[string][]string // runs, by session, to be blanked in sessions of other users
	Sessions []string            // removed sessions with files to erase

	Files []string // files of the vault to be erased
}

// Removed counts n rows against Rows; more means that there may be further ones.
func (r *Removal) Removed(n int, more bool) {
	if r.Rows = max(0, r.Rows-n); more {
		r.Rows = 0
	}
}

// A Chore is housekeeping that an owner of tables or files does regularly.
type Chore struct {
	Name  string        // a label of metrics
	Every time.Duration // a multiple of a minute
	Run   func(context.Context) (rows int, err error)
}
