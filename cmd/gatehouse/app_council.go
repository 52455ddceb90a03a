package main

import (
	"context"

	"gatehouse/connectors/chat/why"
	chatcommand "gatehouse/core/command"
	"gatehouse/core/council"
	"gatehouse/core/council/domains"
	"gatehouse/core/council/ledger"
	"gatehouse/core/index/meaning"
)

// councils are the parts of the app that councils of several models need.
type councils struct {
	council *ledger.Store // questions, answers, outcomes and domains
}

// domainOf returns the root domain of a text, general where none is likely.
func domainOf(text string) string {
	if likely := domains.Classify(text)[0]; likely.Weight >= likelyDomain {
		return likely.Domain
	}
	return domains.General
}

// likelyDomain is how likely a domain must be for a correction to be of it.
const likelyDomain = 0.7

// picks returns the council's questions for those who pick.
func (a *app) picks() why.Picks {
	return why.Picks{Store: a.council, DB: a.db, Outbox: a.outbox}
}

// openCouncil returns what answers turns for models named council.
func (a *app) openCouncil() *council.Council {
	o := council.Options{
		Members: func() council.Members { return membersOf(a) }, Ledger: a.council, Evidence: a.council,
		Clock: a.clock, Log: a.log, Metrics: council.NewMetrics(a.reg), Pick: chatcommand.PickData,
	}
	if m := a.library.Meaning; m != nil {
		o.Near = func(ctx context.Context, user int64, name string, labels []string) []float64 {
			return m.Near(ctx, meaning.Common, user, name, labels)
		}
	}
	return council.New(o)
}

// councilSeats returns the names of the council's members and of its judge as they are now; "":
// a member judges.
func (a *app) councilSeats() (members []string, judge string) {
	now := a.models.Now()
	for _, m := range now.Members {
		members = append(members, m.About().Name)
	}
	if now.Judge != nil {
		judge = now.Judge.About().Name
	}
	return members, judge
}

// membersOf returns the council's models as they are now.
func membersOf(a *app) council.Members {
	now, settings := a.models.Now(), a.settings.Now()
	return council.Members{Models: now.Members, Judge: now.Judge, Cheap: cheapOf(now), Wait: settings.CouncilWait, Most: settings.CouncilMaxCost.MicroUSD}
}
