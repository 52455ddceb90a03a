// Package schedule starts the runs of daily agents at their times and stores how they end.
//
// A run that is due is a message in the inbox, from core.ScheduleBot, with the id
// "AGENT:DATE": leases, retries and budgets apply to it like to any other message. The row
// of the run is inserted in the transaction that stores the message (Admit), and its
// result in the one that acknowledges it (Finish). So an agent runs once for a date,
// whatever crashes.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Times of the scheduler.
const (
	every   = 30 * time.Second   // the files are read again after at most this
	late    = 2 * time.Minute    // a run that starts later than this was missed
	makeUp  = 7 * 24 * time.Hour // older times are not made up
	pause   = 10 * time.Second   // after a failure
	maxText = 4 << 10            // bytes of the value of {user_context}
)

// Module is the module of the sessions of daily agents.
const Module = "daily"

// An Inbox stores messages.
type Inbox interface {
	Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
}

// Options of New. All but Ring are required.
type Options struct {
	DB      *store.DB
	Vault   *vault.Vault
	Clock   core.Clock
	Log     *slog.Logger
	Metrics *Metrics
	Name    func(ctx context.Context) (string, error) // of the owner, for {user_name}
	// State returns the state of a message in the inbox, and why it is in it; core.NotFound
	// without one.
	State func(ctx context.Context, bot, update string) (state, why string, err error)
	Ring  func(topics ...core.Topic) // receives core.TopicDaily when a run began or ended
}

// A Scheduler starts the runs of daily agents. Its methods may be called concurrently.
type Scheduler struct {
	*daily.Files
	o    Options
	wake chan struct{}

	mu      sync.Mutex
	told    string // the faults that were logged last
	unnoted string // the state files that could not be written, as they were logged last

	gone map[string]time.Time // since when files are missing; Tick's alone
}

// New returns a Scheduler; Run does its work.
func New(o Options) *Scheduler {
	if o.Ring == nil {
		o.Ring = func(...core.Topic) {}
	}
	return &Scheduler{Files: daily.NewFiles(o.Vault), o: o, wake: make(chan struct{}, 1)}
}

// Wake has the files be read soon.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Scheduler) ring() {
	s.o.Ring(core.TopicDaily)
	s.Wake() // for the state file
}

// Run starts runs when they are due, until ctx ends.
func (s *Scheduler) Run(ctx context.Context, inbox Inbox) {
	for ctx.Err() == nil {
		wait := pause
		next, err := s.Tick(ctx, inbox)
		switch {
		case err != nil && ctx.Err() == nil:
			s.o.Log.Error("daily agents could not be started", "err", err)
		case err == nil:
			wait = every
			if left := next.Sub(s.o.Clock.Now()); !next.IsZero() && left < wait {
				wait = max(left, 0)
			}
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-s.o.Clock.After(wait):
		}
	}
}

// Tick reads the files, starts the runs that are due, ends those that were given up, and
// writes state files. It returns when the next run is due, the zero time for none.
func (s *Scheduler) Tick(ctx context.Context, inbox Inbox) (next time.Time, err error) {
	var errs []error
	set, err := s.Read()
	if err != nil { // runs end all the same
		errs = append(errs, fmt.Errorf("read the files of daily agents: %w", err))
	}
	now := s.o.Clock.Now()
	if err == nil {
		s.tell(set.Faults)
		s.o.Metrics.know(set.Agents)
		errs = append(errs, s.forgetGone(ctx, set, now))
	}
	if err := s.settle(ctx); err != nil {
		return next, err
	}
	for i := range set.Agents {
		a := &set.Agents[i]
		due, found, err := s.due(ctx, a, now)
		if err == nil && found {
			err = s.start(ctx, inbox, a, due, now)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("daily agent %s: %w", a.Name, err))
		}
		if coming := a.Rule.Next(now); a.Enabled && !coming.IsZero() && (next.IsZero() || coming.Before(next)) {
			next = coming
		}
	}
	return next, errors.Join(append(errs, s.note(ctx))...)
}

// tell logs faults once.
func (s *Scheduler) tell(faults []daily.Fault) {
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f.String() + "\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == b.String() {
		return
	}
	s.told = b.String()
	for _, f := range faults {
		s.o.Log.Warn("the file of a daily agent cannot be used", "file", f.File, "line", f.Line, "reason", f.Text)
	}
}

// start starts the run of a time that has come, unless there was one of its date.
func (s *Scheduler) start(ctx context.Context, inbox Inbox, a *daily.Agent, due, now time.Time) error {
	r := Run{Agent: a.Name, Date: due.In(a.Rule.Zone()).Format(time.DateOnly), N: 1, Cause: daily.ByTime, Due: due}
	if now.Sub(due) > late {
		r.Cause = daily.Missed
	}
	before, err := ofDate(ctx, s.o.DB, a.Name, r.Date)
	r.N = before.last + 1
	switch {
	case err != nil:
		return err
	case before.byTime: // this time is handled; only noting it failed, or another of the date was
	case before.exists && before.run.Result == daily.Failed: // by hand: the agent has its own try
		err = s.put(ctx, inbox, a, r)
	case before.exists && before.skipped: // one row is enough for the date
	case before.exists:
		r.Result, r.Error, r.Ended = daily.Skipped, "the date had been run before", now
		err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			isNew, err := insert(ctx, tx, r)
			if isNew {
				tx.OnCommit(func() { s.o.Metrics.ended(r.Agent, r.Result, now) })
			}
			return err
		})
	default:
		err = s.put(ctx, inbox, a, r)
	}
	if err != nil {
		return err
	}
	return s.handled(ctx, a.Name, a.Rule.String()+" "+a.Rule.Zone().String(), due)
}

// put stores the message that starts a run.
func (s *Scheduler) put(ctx context.Context, inbox Inbox, a *daily.Agent, r Run) error {
	name, err := s.o.Name(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		name = "the owner"
	}
	session, run := uuid.NewString(), uuid.Must(uuid.NewV7()).String()
	in := core.Inbound{
		UpdateID: updateID(r), Address: core.Address{Bot: core.ScheduleBot, Chat: session}, Kind: core.KindMessage, Addressed: true,
		From: core.Peer{Platform: core.ScheduleBot, ID: r.Cause}, At: r.Due.UTC(), Text: a.PromptOf(r.Date, name, s.about()),
		Turn: &core.Options{Session: session, Run: run, User: core.Operator, Respond: true, Module: Module, Model: a.Model},
	}
	if err := inbox.Put(ctx, []core.Inbound{in}, nil); err != nil {
		return err
	}
	s.o.Ring(core.TopicDaily)
	return nil
}

// updateID returns the id of the message that starts r: names have no colon.
func updateID(r Run) string {
	if r.N == 1 {
		return r.Agent + ":" + r.Date
	}
	return r.Agent + ":" + r.Date + ":" + strconv.Itoa(r.N)
}

// Of returns the agent and the date that a message of core.ScheduleBot is about.
func Of(in *core.Inbound) (agent, date string, n int, ok bool) {
	parts := strings.Split(in.UpdateID, ":")
	if in.Bot != core.ScheduleBot || in.Turn == nil || len(parts) < 2 || len(parts) > 3 {
		return "", "", 0, false
	}
	n = 1
	if len(parts) == 3 {
		n, _ = strconv.Atoi(parts[2])
	}
	return parts[0], parts[1], n, n > 0
}

// Admit inserts the run that a new message starts, in the transaction that stores the
// message, and returns its trust; Stranger where the agent ran for the date before, or has
// no file any more. A file that cannot be used is an error, so that the message is not
// stored and the next Tick tries again: it may be being saved.
func (s *Scheduler) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Trust, error) {
	agent, date, n, ok := Of(in)
	if !ok {
		return core.Stranger, nil
	}
	a, err := s.One(agent)
	if core.KindOf(err) == core.NotFound {
		return core.Stranger, nil
	}
	if err != nil {
		return core.Stranger, err
	}
	trust := a.Trust
	isNew, err := insert(ctx, tx, Run{Agent: agent, Date: date, N: n, Run: in.Turn.Run, Session: in.Turn.Session, Cause: in.From.ID, Due: in.At})
	if err != nil || !isNew {
		return core.Stranger, err
	}
	return trust, nil
}

// Trust returns the trust that the message's agent has now: that of its file, Stranger
// where the file is gone. A file that cannot be used is an error, as it may be being saved.
func (s *Scheduler) Trust(in *core.Inbound) (core.Trust, error) {
	a, err := s.AgentOf(in)
	if core.KindOf(err) == core.NotFound {
		return core.Stranger, nil
	}
	return a.Trust, err
}

// AgentOf returns the agent that a message of core.ScheduleBot starts, as its file is now;
// core.NotFound without a file. An error of no kind may pass.
func (s *Scheduler) AgentOf(in *core.Inbound) (daily.Agent, error) {
	name, _, _, ok := Of(in)
	if !ok {
		return daily.Agent{}, core.Errorf(core.NotFound, "the message names no daily agent")
	}
	a, err := s.One(name)
	if err != nil && core.KindOf(err) != core.NotFound {
		err = fmt.Errorf("the daily agent %s cannot be used now: %v", name, err)
	}
	return a, err
}

// One returns the agent of that name; core.NotFound without a file, and core.Conflict where
// it cannot be used.
func (s *Scheduler) One(name string) (daily.Agent, error) {
	text, err := s.Text(name)
	if err != nil {
		return daily.Agent{}, err
	}
	a, fault := daily.Parse(name, text)
	if fault != nil {
		return daily.Agent{}, core.Errorf(core.Conflict, "%s", fault)
	}
	all, err := s.Read()
	if err != nil {
		return daily.Agent{}, err
	}
	if fault, ok := all.Fault(name); ok { // it is about another agent, too
		return daily.Agent{}, core.Errorf(core.Conflict, "%s", fault)
	}
	return a, nil
}

// Start runs an agent for a date, "" for today. A date that has been run well is skipped,
// unless it is forced; one that is running is core.Conflict.
func (s *Scheduler) Start(ctx context.Context, inbox Inbox, name, date string, force bool, by core.Actor) (Run, error) {
	a, err := s.One(name)
	if err != nil {
		return Run{}, err
	}
	now := s.o.Clock.Now()
	today := now.In(a.Rule.Zone()).Format(time.DateOnly)
	if date == "" {
		date = today
	} else if date, err = daily.CheckDate(date); err != nil {
		return Run{}, err
	} else if date > today {
		return Run{}, core.Errorf(core.Invalid, "%s has not begun yet", date)
	}
	r := Run{Agent: a.Name, Date: date, N: 1, Cause: by.String(), Due: now}
	before, err := ofDate(ctx, s.o.DB, name, date)
	switch {
	case err != nil:
		return Run{}, err
	case before.exists && before.run.Result == "":
		return Run{}, core.Errorf(core.Conflict, "%s is running for %s already", name, date)
	case before.exists && before.run.Result != daily.Failed && !force:
		before.run.Result = daily.Skipped
		return before.run, nil
	}
	r.N = before.last + 1
	if err := s.put(ctx, inbox, &a, r); err != nil {
		return Run{}, err
	}
	if err := s.o.DB.Audit(ctx, by, "daily.run", name, map[string]any{"date": date}); err != nil {
		return Run{}, err
	}
	after, err := ofDate(ctx, s.o.DB, name, date)
	if err == nil && after.run.N != r.N {
		err = core.Errorf(core.Conflict, "%s could not be started", name)
	}
	return after.run, err
}
