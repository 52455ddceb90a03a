package main

import (
	"context"

	"gatehouse/cmd/gatehouse/adoption"
	"gatehouse/pairing/adopt"
)

// adoptFiles takes over what a vault of the original system has next to its database.
func (a *app) adoptFiles(ctx context.Context) error {
	take := adoption.Adopter{Config: a.cfg, Settings: a.settings, DB: a.db, People: adopt.Users{People: a.pairing.People}, Log: a.log}
	if err := take.Run(ctx); err != nil {
		return err
	}
	return a.bots.Refresh(a.settings.Now())
}
