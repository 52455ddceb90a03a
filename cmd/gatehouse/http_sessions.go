package main

import (
	"context"
	"slices"
	"time"

	"gatehouse/cmd/gatehouse/views"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/activity"
	"gatehouse/core/agent"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/council/ledger"
	"gatehouse/core/llm/registry"
	"gatehouse/core/permission/guard"
	"gatehouse/core/project"
	"gatehouse/core/response"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// conversations changes and deletes sessions, with what other packages keep of
// them.
type conversations struct {
	db        *store.DB
	sessions  *session.Store
	bus       *bus.Bus
	guard     *guard.Guard
	activity  *activity.Worker
	responses *response.Store
	council   *ledger.Store
	files     *attach.Ledger
	projects  *project.Store
	people    *people.Store
	cfg       *configs.Config
	models    *registry.Registry
	agents    *agent.Agents
}

// Update is core.Invalid, or core.Denied, for a model that cannot answer in the
// session, and for a workspace that is not there.
func (c *conversations) Update(ctx context.Context, id string, change session.Change, by core.Actor) (d session.Detail, err error) {
	if w := change.Workspace; w != nil && *w != "" && !slices.ContainsFunc(c.agents.Workspaces(), func(x agent.Workspace) bool { return x.Slug == *w }) {
		return d, core.Errorf(core.Invalid, "there is no workspace %q, or its file cannot be used", core.CutRunes(*w, 60))
	}
	err = c.db.Tx(ctx, func(tx *store.Tx) (err error) {
		if m := change.Model; m != nil && *m != "" {
			was, err := c.sessions.ByID(ctx, tx, id)
			if err != nil {
				return err
			}
			if a := change.AgentType; a != nil {
				was.AgentType = *a
			}
			if w := change.Workspace; w != nil {
				was.Workspace = *w
			}
			guest, err := views.Guest(ctx, tx, was, c.sessions, c.people, c.agents)
			if err != nil {
				return err
			}
			if _, err := c.models.Find(core.CutRunes(*m, 60), guest); err != nil {
				return err
			}
		}
		if p := change.Project; p != nil && *p != "" {
			was, err := c.sessions.ByID(ctx, tx, id)
			if err != nil {
				return err
			}
			if _, err := c.projects.Find(ctx, tx, was.User, *p); core.KindOf(err) == core.NotFound {
				return core.Errorf(core.Invalid, "project_id: the session's user has no such project (GET /api/projects lists them)")
			} else if err != nil {
				return err
			}
		}
		d, err = c.sessions.Update(ctx, tx, id, change, by)
		return err
	})
	return d, err
}

// endPatience is how long a deletion waits for a run whose answer was sent, and whose end is not
// committed or published yet.
const endPatience = 2 * time.Second

// Delete also takes back what was granted in the session. With versions it is
// for one of these alone, else session.ErrChanged. It waits for the end of a run that has
// answered, and refuses while one is in progress.
func (c *conversations) Delete(ctx context.Context, id string, versions []string, by core.Actor) error {
	c.bus.AwaitEnd(ctx, id, endPatience)
	if err := c.lighten(ctx, id); err != nil {
		return err
	}
	return c.db.Tx(ctx, func(tx *store.Tx) error {
		if err := c.sessions.Match(ctx, tx, id, versions); err != nil {
			return err
		}
		if err := c.end(ctx, tx, id); err != nil {
			return err
		}
		return c.sessions.Delete(ctx, tx, id, by)
	})
}

// lighten makes ready for its deletion a session of which the full-text index
// has a lot, so that the deletion itself is short. One that is being answered
// stays as it is.
func (c *conversations) lighten(ctx context.Context, id string) error {
	heavy, err := c.sessions.Heavy(ctx, id)
	if err != nil || !heavy || c.answering(id) {
		return err
	}
	return c.sessions.Shed(ctx, id)
}

// answering reports whether a run of the session is going on. In a transaction
// none can be claimed in the meantime.
func (c *conversations) answering(id string) bool {
	return slices.ContainsFunc(c.bus.Active(), func(run bus.Info) bool { return run.Session == id })
}

// end removes what other packages keep of a session; core.Conflict while
// it runs. The transaction is where it looks for runs: none can be claimed at
// the same time.
func (c *conversations) end(ctx context.Context, tx *store.Tx, id string) error {
	if c.answering(id) {
		return core.Errorf(core.Conflict, "a run of this session is going on; stop it first")
	}
	tx.OnCommit(c.activity.Ring) // which finds that it is gone
	if err := c.responses.ForgetSession(ctx, tx, id); err != nil {
		return err
	}
	if err := c.council.ForgetSession(ctx, tx, id); err != nil {
		return err
	}
	if err := c.files.ForgetSession(ctx, tx, id); err != nil {
		return err
	}
	return c.guard.ForgetSession(ctx, tx, id)
}

// cleanAtOnce is how many sessions one transaction of clean deletes.
const cleanAtOnce = 10

// clean deletes archived sessions that are due, a few in each transaction,
// so that messages come in between, and at most 5,000 an hour.
func (c *conversations) clean(ctx context.Context) (total int, err error) {
	days := c.cfg.RetentionDays
	if days == 0 {
		return 0, nil
	}
	due, err := c.sessions.Due(ctx, days)
	for ids := range slices.Chunk(due, cleanAtOnce) {
		for _, id := range ids {
			if err == nil {
				err = c.lighten(ctx, id)
			}
		}
		if err != nil {
			return total, err
		}
		n := 0
		err = c.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = c.sessions.Cleanup(ctx, tx, ids, days, core.Actor{Via: "upkeep"}, c.end)
			return err
		})
		total += n
	}
	return total, err
}
