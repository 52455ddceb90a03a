package pairing

import (
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// changes reports what was decided, once the transaction is committed: to the
// metrics, to the panel, and to what runs.
type changes struct {
	bots    bots.Bots
	metrics *Metrics
	ring    func(topics ...core.Topic)
	runs    Runs // may be nil
}

// Decided rings the topics after the commit and counts the decision, if it is not "".
func (c changes) Decided(tx *store.Tx, bot, decision string, topics ...core.Topic) {
	tx.OnCommit(func() {
		if decision != "" && c.bots.Configured(bot) { // other names would be labels without bound
			c.metrics.decisions.WithLabelValues(bot, decision).Inc()
		}
		c.ring(topics...)
	})
}

// Denied counts a refusal by the rule that decided, after the commit.
func (c changes) Denied(tx *store.Tx, rule string) {
	tx.OnCommit(func() { c.metrics.denied.WithLabelValues(rule).Inc() })
}

// Abort stops what a user has running with a bot, after the commit.
func (c changes) Abort(tx *store.Tx, bot string, user int64) {
	if c.runs != nil && user != 0 {
		tx.OnCommit(func() { c.runs.AbortUser(bot, user) })
	}
}
