package views

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"gatehouse/admin/chats"
	"gatehouse/admin/find"
	"gatehouse/cmd/gatehouse/library"
	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// panelActs is what the panel does with a conversation.
type panelActs struct{ c *Core }

func (v panelActs) Update(ctx context.Context, id string, c session.Change, by core.Actor) error {
	_, err := v.c.Conversations.Update(ctx, id, c, by)
	return err
}

func (v panelActs) Delete(ctx context.Context, id string, by core.Actor) error {
	return v.c.Conversations.Delete(ctx, id, nil, by)
}

func (v panelActs) Bound(ctx context.Context, id string) (core.Address, bool, error) {
	return v.c.SessionStore.Bound(ctx, v.c.DB, id)
}

func (v panelActs) Lower(ctx context.Context, id string, level core.Trust, by core.Actor) error {
	return v.c.DB.Tx(ctx, func(tx *store.Tx) error { return v.c.SessionStore.Lower(ctx, tx, id, level, by) })
}

func (v panelActs) Stop(ctx context.Context, id string, by core.Actor) error {
	waited := false
	err := v.c.DB.Tx(ctx, func(tx *store.Tx) error {
		waiting, err := v.waiting(ctx, tx, id)
		if waited = len(waiting) > 0; err != nil || !waited {
			return err
		}
		return v.c.Queue.Stop(ctx, tx, id, waiting)
	})
	if err != nil {
		return err
	}
	if stopped := v.c.Running.Abort(id); !stopped && !waited {
		return core.Errorf(core.Conflict, "nothing is running in this conversation")
	}
	return v.c.DB.Audit(ctx, by, "session.stop", id, nil)
}

// Waits reports whether a message waits in a conversation, or is being answered.
func (v panelActs) Waits(ctx context.Context, id string) (bool, error) {
	waiting, err := v.waiting(ctx, v.c.DB, id)
	return len(waiting) > 0, err
}

func (v panelActs) waiting(ctx context.Context, q store.Queryer, id string) ([]int64, error) {
	at, _, err := v.c.SessionStore.Bound(ctx, q, id)
	if err != nil {
		return nil, err
	}
	return inspect.Waiting(ctx, q, id, at, func(command string) bool { return command == "new" || command == "resume" })
}

// Next returns the model of a conversation's next turn, and who chose it.
func (v panelActs) Next(ctx context.Context, s session.Session) (model, by string, err error) {
	chosen := ""
	switch chat, bound, err := v.Bound(ctx, s.ID); {
	case err != nil:
		return "", "", err
	case bound && chat.Group():
		place, err := v.c.Pairing.Places.Place(ctx, v.c.DB, chat.Bot, chat.Place)
		if err != nil && core.KindOf(err) != core.NotFound {
			return "", "", err
		}
		chosen = place.Model
	case bound:
		set, err := v.c.SessionStore.Settings(ctx, v.c.DB, chat)
		if err != nil {
			return "", "", err
		}
		chosen = set.Model
	}
	guest, err := v.guest(ctx, s)
	if err != nil {
		return "", "", err
	}
	c, err := v.c.Orchestrator.Next(s, chosen, v.c.AgentList.Role(s.AgentType, s.Workspace), guest)
	return c.Model, c.By, err
}

// Models returns the models that a conversation may be given: none where one answers all
// guests, and where guests may have only one.
func (v panelActs) Models(ctx context.Context, s session.Session) ([]string, error) {
	guest, err := v.guest(ctx, s)
	if err != nil {
		return nil, err
	}
	names := v.c.Models(guest)
	if guest && len(names) == 1 {
		return nil, nil
	}
	return names, nil
}

// guest reports whether a guest writes in a conversation.
func (v panelActs) guest(ctx context.Context, s session.Session) (bool, error) {
	return Guest(ctx, v.c.DB, s, v.c.SessionStore, v.c.Pairing.People, v.c.AgentList)
}

// Say stores a message of the account's, written in the panel. Its
// answer goes to the conversation.
func (v panelActs) Say(ctx context.Context, s chats.Saying, by core.Actor) (string, error) {
	id := s.Session
	if id == "" {
		id = uuid.NewString()
	}
	id, _, err := v.c.SessionStore.Locate(ctx, by.User, id)
	if err != nil {
		return "", err
	}
	run := uuid.NewString()
	err = v.c.Queue.Put(ctx, []core.Inbound{{
		UpdateID: "panel:" + run, Address: core.Address{Bot: core.APIBot, Chat: id}, Kind: core.KindMessage, At: v.c.Clock.Now().UTC(),
		From: core.Peer{Platform: core.APIBot, ID: "user:" + strconv.FormatInt(by.User, 10)}, Text: s.Text, Files: s.Files, Addressed: true,
		Turn: &core.Options{Session: id, Run: run, User: by.User, Respond: true, Source: core.PanelSource, Agent: s.Agent, Model: s.Model, Contexts: s.Contexts},
	}}, nil)
	return id, err
}

// panelQuestions is what models ask the operator.
type panelQuestions struct{ answersView }

func (v panelQuestions) Questions(ctx context.Context, session string, user int64) ([]coreask.Question, error) {
	return v.c.Guard.Questions(ctx, session, user)
}

// panelIndex is the index of documents as the panel shows it.
type panelIndex struct{ *library.Library }

func (v panelIndex) Status(ctx context.Context) (find.Status, error) {
	count, err := v.Documents.Count(ctx)
	if err != nil {
		return find.Status{}, err
	}
	files, err := v.Documents.Faults(ctx, "", find.MaxFaults)
	if err != nil {
		return find.Status{}, err
	}
	waiting, err := v.Unindexed(ctx)
	if err != nil {
		return find.Status{}, err
	}
	now := v.Crawler.Status()
	s := find.Status{Conversations: waiting, Documents: count.Documents, Without: count.Faults, Running: now.Running, Last: now.Ended, Err: now.Err}
	if v.Embedder != nil {
		e, err := v.Embedder.Status(ctx)
		if err != nil {
			return find.Status{}, err
		}
		s.Model, s.Embedded, s.All, s.ModelErr = e.Model, e.Done, e.All, e.Err
	}
	for _, f := range files {
		s.Faults = append(s.Faults, find.Fault{Path: f.Path, Reason: f.Fault})
	}
	return s, nil
}
