// Package remind holds the tool by which a model sets a reminder for the user it talks to.
package remind

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/tool"
)

// Options of New; all are required.
type Options struct {
	To   core.Address // the chat of the turn
	From core.Peer    // its sender
	Now  func() time.Time
	// Zone returns the time zone of the sender.
	Zone func(ctx context.Context) (*time.Location, error)
	// Add stores a reminder, or returns an error for the model.
	Add func(ctx context.Context, r remind.Reminder) error
}

const schema = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{
"text":{"type":"string","description":"what the person is reminded of, in their language"},
"in":{"type":"string","description":"after how long, such as 20m, 2h30m or 3d"},
"at":{"type":"string","description":"when, in the person's time zone: 18:30, tomorrow 9:00, friday 9:00 or 2026-12-24 18:00"},
"cron":{"type":"string","description":"for a repeated one: five fields of cron, or a time such as 8:00 for every day"}}}`

// New returns the tool Remind for a turn of a chat.
func New(o Options) tool.Tool {
	run := func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		var in struct {
			Text string `json:"text" tool:"required"`
			In   string `json:"in"`
			At   string `json:"at"`
			Cron string `json:"cron"`
		}
		if err := tool.Decode(c.Input, &in); err != nil {
			return tool.Result{}, err
		}
		zone, err := o.Zone(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		r := remind.Reminder{User: c.Turn.User, Made: "call:" + c.Turn.Run + ":" + c.ID, To: o.To, From: o.From, Text: strings.TrimSpace(in.Text)}
		now := o.Now()
		switch {
		case in.In != "" && in.At == "" && in.Cron == "":
			r.Time, err = remind.In(in.In, now, zone)
		case in.At != "" && in.In == "" && in.Cron == "":
			r.Time, err = remind.At(in.At, now, zone)
		case in.Cron != "" && in.In == "" && in.At == "":
			r.Time, err = remind.Every(in.Cron, now, zone)
		default:
			err = core.Errorf(core.Invalid, "give exactly one of in, at and cron")
		}
		if err == nil {
			err = o.Add(ctx, r)
		}
		if err != nil {
			return tool.Result{}, err
		}
		text := "The reminder is set for " + r.Due.In(zone).Format("Monday, 2 January 2006, 15:04 MST")
		if r.Rule != "" {
			text += ", and again by its rule"
		}
		return tool.Result{Text: text + ". /reminders lists and cancels."}, nil
	}
	return tool.Tool{Name: "Remind", About: "Sends the person a message at a time, in this chat. Use it when they ask to be reminded of something.",
		Schema: json.RawMessage(schema), Kind: tool.Inner, Again: true, Run: run}
}
