package main

import "gatehouse/core/council/ledger"

// councils are the parts of the app that councils of several models need.
type councils struct {
	council *ledger.Store // questions, answers, outcomes and domains
}
