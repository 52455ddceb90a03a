package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

type forgetCmd struct {
	Person string `arg:"" help:"Their number (the panel's page People shows it), or platform and id, such as telegram:12345678."`
	Yes    bool   `help:"Do not ask."`
	JSON   bool   `help:"As JSON; needs --yes."`
}

func (c *forgetCmd) Help() string {
	return "Erases a person: who they are, their access, keys and blocks, their conversations, their folder and their files, for good. What they run is stopped. In groups their turns are blanked. The audit log keeps numbers only, the usage figures stay without the person. Afterwards they are a stranger. Backups that were made before still hold them."
}

func (c *forgetCmd) Run(p *process) error {
	q, err := newOffice(p)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	if !c.Yes {
		if c.JSON {
			return core.Errorf(core.Invalid, "--json needs --yes")
		}
		if err := c.confirm(p, q); err != nil {
			return err
		}
	}
	res, err := q.long("forget", order{Ref: c.Person})
	if err != nil {
		return err
	}
	f := res.Forgotten
	if c.JSON {
		return printJSON(p.stdout, f)
	}
	fmt.Fprintf(p.stdout, "Forgotten: %s, %s that came with messages, and %s in groups.\n",
		counted(f.Sessions, "conversation"), counted(f.Files, "file"), counted(f.Turns, "turn"))
	for _, left := range f.Left {
		fmt.Fprintln(p.stdout, left)
	}
	return nil
}

// confirm shows who it is and wants a yes.
func (c *forgetCmd) confirm(p *process, q *office) error {
	res, err := q.ask("forget/look", order{Ref: c.Person})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "%s\nThis cannot be undone. Type yes to forget this person: ", res.Text)
	if p.stdin == nil {
		return core.Errorf(core.Invalid, "nobody is there to ask: give --yes")
	}
	line, _ := bufio.NewReader(p.stdin).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return core.Errorf(core.Invalid, "nothing was done: the answer was not yes (--yes does not ask)")
	}
	return nil
}

// A forgotten says what was erased.
type forgotten struct {
	User      int64    `json:"user_id"`
	Sessions  int      `json:"sessions"`
	Turns     int      `json:"turns"`     // in groups, blanked
	Files     int      `json:"files"`     // that came with messages
	Compacted bool     `json:"compacted"` // the database's file was written anew
	Left      []string `json:"left"`      // what is still to do or to know
}

// An erasure is what is left to do in the vault once the database has forgotten
// a person, or some of what it knew. It stands in the database's metadata until
// it is done.
type erasure struct {
	User     int64               `json:"user"`
	Sessions []string            `json:"sessions"` // to be erased
	Turns    map[string][]string `json:"turns"`    // runs to be blanked, by session
	Files    []string            `json:"files"`
}

const (
	erasureKey = "forget:"
	begunKey   = "forgetting:"
	// forgetStep is how many rows one transaction of forgetting changes of a
	// table: others' commits wait for no more than that.
	forgetStep = 500
	// forgetPatience is how long a run may take to end.
	forgetPatience = time.Minute
	// maxCompact is the largest database that is written anew while a gateway serves.
	maxCompact = 1 << 30
)

func (a *app) forgetOrders() map[string]func(context.Context, order) (result, error) {
	return map[string]func(context.Context, order) (result, error){
		"forget": func(ctx context.Context, o order) (result, error) {
			return a.jobs.do(ctx, "forget "+o.Ref, func(ctx context.Context, tell func(string)) (result, error) {
				f, err := a.forget(ctx, o.Ref, cli, tell)
				return result{Forgotten: &f}, err
			})
		},
		"forget/look": func(ctx context.Context, o order) (result, error) {
			p, err := a.person(ctx, a.db, o.Ref)
			if err != nil {
				return result{}, err
			}
			var names []string
			for _, n := range p.Names {
				names = append(names, core.CleanName(n))
			}
			for _, id := range p.Identities {
				names = append(names, id.Platform+" "+core.CleanName(id.ID))
			}
			return result{Text: fmt.Sprintf("%s: %s.", strings.Join(names, ", "), counted(len(p.Sessions), "conversation"))}, nil
		},
	}
}

// person is somebody in all the names that tables know them by.
func (a *app) person(ctx context.Context, q store.Queryer, ref string) (core.Person, error) {
	p, err := a.pairing.Person(ctx, q, ref)
	if err != nil {
		return p, err
	}
	var chats []core.Address
	p.Sessions, chats, err = a.sessions.Owned(ctx, q, p.User)
	for _, c := range chats {
		if !slices.Contains(p.Chats, c) {
			p.Chats = append(p.Chats, c)
		}
	}
	return p, err
}

// A begun forgetting stands in the database's metadata from the person's last
// access to their last row, so that one that is cut short can be gone on with.
type begun struct {
	Ref   string         `json:"ref"`
	By    core.Actor     `json:"by"`
	Chats []core.Address `json:"chats"` // which nothing else may tell of any more
}

// forget erases the person that ref names ("7", "telegram:123"), and may be
// called again when it was cut short: it finishes what is left, of anybody.
// tell, when given, hears how far it is.
func (a *app) forget(ctx context.Context, ref string, by core.Actor, tell func(string)) (f forgotten, err error) {
	a.forgettings.Lock()
	defer a.forgettings.Unlock()
	if tell == nil {
		tell = func(string) {}
	}
	f.Left = []string{}
	finished, err := a.finishForgetting(ctx, &f)
	if err != nil {
		return f, err
	}
	p, err := a.person(ctx, a.db, ref)
	if core.KindOf(err) == core.NotFound && finished > 0 {
		return f, a.forgetPages(ctx, &f)
	}
	if err != nil {
		return f, err
	}
	if p.User == core.Operator {
		return f, core.Errorf(core.Invalid, "the operator can't be forgotten")
	}
	f.User = p.User
	tell("stopping what runs")
	if err := a.silence(ctx, p, ref, by); err != nil {
		return f, err
	}
	if err := a.forgetRows(ctx, ref, tell); err != nil {
		return f, err
	}
	a.overheard.Clear()
	tell("erasing files")
	if _, err := a.finishForgetting(ctx, &f); err != nil {
		return f, err
	}
	tell("writing the database anew")
	return f, a.forgetPages(ctx, &f)
}

// upkeepForgetting finishes what a crash has cut short, unless somebody is at it.
func (a *app) upkeepForgetting(ctx context.Context) (int, error) {
	if !a.forgettings.TryLock() {
		return 0, nil
	}
	defer a.forgettings.Unlock()
	n, err := a.finishForgetting(ctx, &forgotten{})
	if n > 0 && err == nil {
		err = a.forgetPages(ctx, &forgotten{})
	}
	return n, err
}

// silence takes a person's access and keys, and waits until nothing of theirs
// runs. From then on the forgetting has begun.
func (a *app) silence(ctx context.Context, p core.Person, ref string, by core.Actor) error {
	note, err := json.Marshal(begun{Ref: ref, By: by, Chats: p.Chats})
	if err != nil {
		return err
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		_, there, err := store.Metadata(ctx, tx, begunKey+ref)
		if err == nil && !there { // what was noted first knows more
			err = store.SetMetadata(ctx, tx, begunKey+ref, string(note))
		}
		if err != nil || p.User == 0 {
			return err
		}
		return errors.Join(a.pairing.People.ShutOut(ctx, tx, p.User), a.keys.Forget(ctx, tx, p.User), a.admins.Forget(ctx, tx, p.User))
	})
	if err != nil || p.User == 0 {
		return err
	}
	return a.quiet(ctx, p)
}

// quiet stops what runs for a person and waits for it.
func (a *app) quiet(ctx context.Context, p core.Person) error {
	bots := []string{core.APIBot}
	for _, c := range p.Chats {
		bots = append(bots, c.Bot)
	}
	for _, id := range p.Identities {
		bots = append(bots, id.Bots...)
	}
	slices.Sort(bots)
	until := a.clock.Now().Add(forgetPatience)
	for {
		for _, bot := range slices.Compact(slices.Clone(bots)) {
			a.running.AbortUser(bot, p.User)
		}
		if !a.running.Busy(p.User) {
			return nil
		}
		if a.clock.Now().After(until) {
			return core.Errorf(core.Busy, "something of this person still runs and does not end; they have no access any more: try again")
		}
		if !core.Sleep(ctx, a.clock, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}
