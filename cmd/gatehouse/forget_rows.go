package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// forgetRows takes a person whose forgetting has begun out of every table: first
// what may be a lot, in short transactions between which others' commits come
// in, and at last, in one, who they are with what is left. What is in the vault
// is noted for finishForgetting.
func (a *app) forgetRows(ctx context.Context, ref string, tell func(string)) error {
	note, there, err := store.Metadata(ctx, a.db, begunKey+ref)
	if err != nil || !there {
		return err
	}
	var b begun
	if err := json.Unmarshal([]byte(note), &b); err != nil {
		return fmt.Errorf("what is left of a forgetting: %w", err)
	}
	p, err := a.begunPerson(ctx, a.db, b)
	if core.KindOf(err) == core.NotFound { // there is nothing left but the note
		return a.db.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, begunKey+ref) })
	}
	if err != nil {
		return err
	}
	tell("erasing messages")
	swept, err := a.queue.Sweep(ctx, p, func(tx *store.Tx, files []string) error { return noteErasure(ctx, tx, erasure{Files: files}) })
	if err != nil {
		return err
	}
	for more, steps := p.User != 0, 0; more; steps++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		tell(fmt.Sprintf("erasing rows: some %d so far", steps*forgetStep))
		err := a.db.Tx(ctx, func(tx *store.Tx) (err error) {
			more, err = a.forgetSome(ctx, tx, p.User)
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.db.Tx(ctx, func(tx *store.Tx) error { return a.forgetRest(ctx, tx, b, swept) })
}

// begunPerson is the person of a forgetting that has begun.
func (a *app) begunPerson(ctx context.Context, q store.Queryer, b begun) (core.Person, error) {
	p, err := a.person(ctx, q, b.Ref)
	for _, c := range b.Chats {
		if !slices.Contains(p.Chats, c) {
			p.Chats = append(p.Chats, c)
		}
	}
	return p, err
}

// forgetSome takes some of what a person has a lot of out of the tables; more
// while there may be further rows.
func (a *app) forgetSome(ctx context.Context, tx *store.Tx, user int64) (more bool, err error) {
	asks, err := a.desk.ForgetSome(ctx, tx, user, forgetStep)
	if err != nil || len(asks) > 0 {
		return true, errors.Join(err, a.queue.ForgetRuns(ctx, tx, nil, asks))
	}
	gone, more, err := a.events.ForgetSome(ctx, tx, user, forgetStep)
	if err == nil {
		err = a.queue.ForgetRuns(ctx, tx, gone.Runs, nil)
	}
	if err == nil {
		err = a.noteTurns(ctx, tx, user, erasure{Files: gone.Files}, gone.Sessions)
	}
	if err != nil || more {
		return true, err
	}
	// The ledger knows of runs whose rows went after their time.
	runs, more, err := a.usage.ForgetSome(ctx, tx, user, forgetStep)
	if err == nil {
		err = a.noteTurns(ctx, tx, user, erasure{}, runs)
	}
	if err != nil || more {
		return true, err
	}
	sessions, more, err := a.sessions.ForgetSome(ctx, tx, user, forgetStep)
	for _, id := range sessions {
		err = errors.Join(err, a.guard.ForgetSession(ctx, tx, id))
	}
	return more, errors.Join(err, a.queue.ForgetLanes(ctx, tx, sessions), noteErasure(ctx, tx, erasure{Sessions: sessions}))
}

// noteTurns notes in todo what a person's runs have left in sessions that are
// not theirs: turns in groups, and what lies in the trash.
func (a *app) noteTurns(ctx context.Context, tx *store.Tx, user int64, todo erasure, runs map[string][]string) error {
	todo.Turns = map[string][]string{}
	for id, of := range runs {
		s, err := a.sessions.ByID(ctx, tx, id)
		switch {
		case core.KindOf(err) == core.NotFound:
			todo.Sessions = append(todo.Sessions, id) // deleted before: it may lie in the trash
		case err != nil:
			return err
		case s.User == user: // goes as a whole
		default:
			todo.Turns[id] = of
			if err := a.sessions.Untitle(ctx, tx, id); err != nil {
				return err
			}
		}
	}
	return noteErasure(ctx, tx, todo)
}

// forgetRest is the list of those who know a person, in one transaction. There
// is little of it left but who they are.
func (a *app) forgetRest(ctx context.Context, tx *store.Tx, b begun, swept queue.Swept) error {
	p, err := a.begunPerson(ctx, tx, b)
	if core.KindOf(err) == core.NotFound {
		return store.DeleteMetadata(ctx, tx, begunKey+b.Ref)
	}
	if err != nil {
		return err
	}
	todo := erasure{User: p.User}
	gone, err := a.events.Forget(ctx, tx, p.User)
	if err != nil {
		return err
	}
	if todo.Sessions, err = a.sessions.Forget(ctx, tx, p); err != nil {
		return err
	}
	asks, err := a.desk.Forget(ctx, tx, p.User, p.Requests...)
	if err != nil {
		return err
	}
	// Requests close their asks, and that posts: the queue forgets after it.
	if err := a.pairing.Forget(ctx, tx, p, b.By); err != nil {
		return err
	}
	held, err := a.queue.Forget(ctx, tx, p, gone.Runs, asks, swept)
	if err != nil {
		return err
	}
	todo.Files = append(gone.Files, held...)
	return errors.Join(a.forgetMore(ctx, tx, p, todo.Sessions), a.noteTurns(ctx, tx, p.User, todo, gone.Sessions), store.DeleteMetadata(ctx, tx, begunKey+b.Ref))
}

// forgetMore is the rest of the list.
func (a *app) forgetMore(ctx context.Context, tx *store.Tx, p core.Person, sessions []string) error {
	for _, id := range p.Identities {
		if err := store.Forget(ctx, tx, id.Platform, id.ID); err != nil {
			return err
		}
	}
	for _, id := range sessions {
		if err := a.guard.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
	}
	if p.User == 0 {
		return nil
	}
	for _, forget := range []func(context.Context, *store.Tx, int64) error{a.guard.Forget, a.usage.Forget, a.keys.Forget, a.admins.Forget} {
		if err := forget(ctx, tx, p.User); err != nil {
			return err
		}
	}
	return nil
}
