// Package remind is the chat commands /remind and /reminders.
package remind

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	maxLine = 100 // bytes of a reminder's text in a list
	cancel  = "cancel:"
)

type (
	// Reminders are what users are reminded of (remind.Store).
	Reminders interface {
		// Check returns an error for the user where a reminder cannot be added.
		Check(ctx context.Context, q store.Queryer, r remind.Reminder) error
		Add(ctx context.Context, tx *store.Tx, r remind.Reminder) error
		List(ctx context.Context, q store.Queryer, user int64) ([]remind.Reminder, error)
		Cancel(ctx context.Context, tx *store.Tx, user, id int64) (bool, error)
	}
	// Zones know the time zones of users.
	Zones interface {
		Timezone(ctx context.Context, q store.Queryer, user int64) (*time.Location, error)
	}
)

// Options of New; all are required.
type Options struct {
	DB        *store.DB
	Clock     core.Clock
	Reminders Reminders
	Zones     Zones
	Asks      *ask.Buttons
}

// Commands handles /remind and /reminders.
type Commands struct{ o Options }

// New returns Commands over these parts.
func New(o Options) *Commands { return &Commands{o} }

// Commands returns /remind and /reminders.
func (c *Commands) Commands() []command.Command {
	return []command.Command{
		{Name: "remind", About: texts.Text("about_remind"), How: texts.Text("remind_examples"), Args: texts.Text("args_remind"), Run: c.Set},
		{Name: "reminders", About: texts.Text("about_reminders"), Shows: true, Private: true, Run: c.List},
	}
}

// Set sets a reminder for the sender, in this chat.
func (c *Commands) Set(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	zone, err := c.o.Zones.Timezone(ctx, c.o.DB, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	now := c.o.Clock.Now()
	t, text, ok, err := remind.Parse(r.Args(), now, zone)
	if err != nil {
		return command.Outcome{}, err
	}
	if !ok {
		return command.Respond("remind_how", texts.With{"Said": texts.Excerpt(r.Args()), "Examples": texts.Text("remind_examples"), "Zone": texts.Zone(now.In(zone))})
	}
	one := remind.Reminder{User: r.User, Made: "command:" + r.In.Bot + ":" + r.In.UpdateID, To: r.In.Address, From: r.In.From, Text: text, Time: t}
	if err := c.o.Reminders.Check(ctx, c.o.DB, one); err != nil {
		return command.Outcome{}, err
	}
	said := texts.Text("remind_set", texts.With{"Every": t.Rule != "", "When": texts.Time(t.Due, now, zone)})
	return command.Outcome{Text: said, Write: func(ctx context.Context, tx *store.Tx) error { return c.o.Reminders.Add(ctx, tx, one) }}, nil
}

func day(t time.Time) string { return t.Format("Monday, 2 January") }

// List lists the sender's reminders with buttons that cancel them, in a group those of that
// group alone, and cancels the one of a button.
func (c *Commands) List(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	if id, ok := strings.CutPrefix(r.Args(), cancel); ok {
		return c.cancel(ctx, r, id)
	}
	list, err := c.o.Reminders.List(ctx, c.o.DB, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	if r.In.Group() { // the others read along
		list = slices.DeleteFunc(list, func(one remind.Reminder) bool { return one.To.Bot != r.In.Bot || one.To.Place != r.In.Place })
	}
	if len(list) == 0 {
		return command.Respond("reminders_none")
	}
	zone, err := c.o.Zones.Timezone(ctx, c.o.DB, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	var b strings.Builder
	b.WriteString(texts.Text("reminders", texts.With{"Zone": texts.Zone(c.o.Clock.Now().In(zone))}) + "\n\n")
	o := ask.Offer{Command: "reminders"}
	for i, one := range list {
		at, text := one.Due.In(zone), core.CleanName(one.Text)
		b.WriteString(texts.Text("reminder_line", texts.With{"N": i + 1, "Day": day(at), "Time": at.Format("15:04"), "Every": one.Rule != "",
			"Text": texts.Escape(core.CutRunes(text, maxLine))}) + "\n")
		o.Add(texts.Text("button_cancel_reminder", texts.With{"N": i + 1}), cancel+one.Mark())
	}
	return c.o.Asks.Offer(r, strings.TrimSpace(b.String()), o)
}

func (c *Commands) cancel(ctx context.Context, r command.Request, mark string) (command.Outcome, error) {
	list, err := c.o.Reminders.List(ctx, c.o.DB, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	for _, one := range list {
		if one.Mark() == mark {
			return command.Outcome{Text: texts.Text("reminder_cancelled"), Write: func(ctx context.Context, tx *store.Tx) error {
				_, err := c.o.Reminders.Cancel(ctx, tx, r.User, one.ID)
				return err
			}}, nil
		}
	}
	return command.Outcome{}, texts.Error(core.NotFound, "reminder_gone")
}
