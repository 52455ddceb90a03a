// Package journal holds the tool that adds an entry to the journal of a turn's user.
package journal

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/core/tool"
)

var (
	//go:embed journal.md
	about string
	//go:embed journal.json
	schema json.RawMessage
)

// timeout is of one call.
const timeout = 30 * time.Second

// A Writer adds entries (journal.Store).
type Writer interface {
	Append(ctx context.Context, user int64, d journal.Draft, by core.Actor) (journal.Entry, error)
	// Preview returns a day's file before an entry is added and after it.
	Preview(user int64, d journal.Draft) (before *string, after string, err error)
}

// New returns the tool JournalWrite over w. now returns the time in a user's time zone. The
// tool writes the file of a day in the journal of the turn's own user, so that a call is
// decided like any other write of that file.
func New(w Writer, now func(ctx context.Context, user int64) (time.Time, error)) tool.Tool {
	j := writer{w, now}
	return tool.Tool{Name: "JournalWrite", About: about, Schema: schema, Kind: tool.Write, Effects: true, Timeout: timeout, Touches: j.touches, Change: j.change, Run: j.run}
}

type writer struct {
	journals Writer
	now      func(ctx context.Context, user int64) (time.Time, error)
}

type input struct {
	Text string `json:"text" tool:"required"`
	Date string `json:"date"`
	Time string `json:"time"`
}

// draft returns the entry that a call adds.
func (j writer) draft(ctx context.Context, t *tool.Turn, raw json.RawMessage) (journal.Draft, error) {
	var in input
	if err := tool.Decode(raw, &in); err != nil {
		return journal.Draft{}, err
	}
	if strings.TrimSpace(in.Text) == "" {
		return journal.Draft{}, core.Errorf(core.Invalid, "text is empty")
	}
	now, err := j.now(ctx, t.User)
	if err != nil {
		return journal.Draft{}, err
	}
	d := journal.Draft{Date: in.Date, At: now, Text: in.Text}
	if d.Date == "" {
		d.Date = now.Format(time.DateOnly)
	}
	if in.Time != "" {
		if d.At, err = time.Parse("15:04", in.Time); err != nil {
			return d, core.Errorf(core.Invalid, "time is a time of day such as 10:30 or 22:15")
		}
	}
	return d, nil
}

func (j writer) touches(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	d, err := j.draft(ctx, t, raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := journal.PathOf(t.User, d.Date)
	return tool.Access{Write: []string{name}}, err
}

// decided returns the entry of a call, on the day that was decided on.
func (j writer) decided(ctx context.Context, c *tool.Call) (journal.Draft, error) {
	d, err := j.draft(ctx, c.Turn, c.Input)
	if err != nil {
		return d, err
	}
	if len(c.Access.Write) != 1 || c.Turn.MayWrite == nil || !c.Turn.MayWrite(c.Access.Write[0]) {
		return d, core.Errorf(core.Denied, "the journal may not be written here")
	}
	d.Date = strings.TrimSuffix(path.Base(c.Access.Write[0]), ".md") // it may be past midnight
	if name, err := journal.PathOf(c.Turn.User, d.Date); err != nil || name != c.Access.Write[0] {
		return d, core.Errorf(core.Denied, "the journal may not be written here")
	}
	return d, nil
}

// appended is the state of every file: entries are added to whatever is there.
const appended = "appended"

func (j writer) change(ctx context.Context, c *tool.Call) (tool.Change, error) {
	d, err := j.decided(ctx, c)
	if err != nil {
		return tool.Change{State: appended}, err
	}
	before, after, err := j.journals.Preview(c.Turn.User, d)
	return tool.Change{Before: before, After: after, State: appended}, err
}

func (j writer) run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	d, err := j.decided(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	e, err := j.journals.Append(ctx, c.Turn.User, d, core.Actor{User: c.Turn.User, Via: "tool"})
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("Added to the journal of %s at %s, as entry para:%s.", e.Date, e.Time, e.ID)}, nil
}
