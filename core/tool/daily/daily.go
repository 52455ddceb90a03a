// Package daily holds the tools of daily agents: they read the owner's journal and chat
// logs, and write the output of a run.
package daily

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"gatehouse/core"
	agents "gatehouse/core/schedule/daily"
	"gatehouse/core/tool"
)

// Limits of one call.
const (
	maxDay      = 100 << 10 // bytes of a day's file that are returned
	maxRecent   = 200 << 10 // bytes of several days together
	maxDays     = 30
	defaultDays = 7
	maxSessions = 50
	maxOutput   = 256 << 10 // bytes of an output
)

// A Session is a conversation of the owner's.
type Session struct {
	Title    string
	Source   string
	Last     time.Time
	Messages int
}

// Options of New; all are required.
type Options struct {
	Agent agents.Agent
	Date  string // of the run
	// MayRead and MayWrite are the bounds of the owner at trust vault: what the file of the
	// agent declares works also where its trust is lower.
	MayRead, MayWrite func(name string) bool
	// Sessions returns the owner's conversations used since then, the newest first.
	Sessions func(ctx context.Context, since time.Time, limit int) ([]Session, error)
	// Wrote stores which file the run has written.
	Wrote func(ctx context.Context, run, file string) error
}

// New returns the tools of one run, those that its agent does not declare too.
func New(o Options) []tool.Tool {
	t := tools{o}
	day := func(about string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"date":{"type":"string","description":"` + about + `, as 2026-01-28; the date of this run without it"}}}`)
	}
	days := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"days":{"type":"integer","minimum":1,"maximum":30,"description":"how many days up to the date of this run, 7 without it"}}}`)
	output := json.RawMessage(`{"type":"object","additionalProperties":false,"required":["content"],"properties":{
"date":{"type":"string","description":"the date that the output is of, as 2026-01-28; the date of this run without it"},
"content":{"type":"string","description":"the whole text, in Markdown"}}}`)
	return []tool.Tool{
		{Name: agents.ReadJournal, About: "Returns the owner's journal of one day.", Schema: day("the day"), Kind: tool.Inner,
			Run: t.day(func(date string) string { return "Daily/" + date + ".md" }, "There is no journal of %s.")},
		{Name: agents.ReadChatLog, About: "Returns the log of the owner's conversations of one day.", Schema: day("the day"), Kind: tool.Inner,
			Run: t.day(func(date string) string { return "Daily/chat-log/" + date + ".md" }, "There is no chat log of %s.")},
		{Name: agents.ReadRecentJournals, About: "Returns the owner's journals of the last days, the newest first.", Schema: days, Kind: tool.Inner, Run: t.recent},
		{Name: agents.ReadRecentSessions, About: "Lists the owner's conversations of the last days, the newest first: when, title, where, how many messages.", Schema: days, Kind: tool.Inner, Run: t.sessions},
		{Name: agents.WriteOutput, About: "Stores the output of this run, in place of an earlier one of the same date. Call it once, with the whole text.", Schema: output, Kind: tool.Inner, Run: t.write},
	}
}

type tools struct{ o Options }

// day returns a tool's Run that reads the file of one day.
func (t tools) day(file func(date string) string, missing string) func(context.Context, *tool.Call) (tool.Result, error) {
	return func(_ context.Context, c *tool.Call) (tool.Result, error) {
		var in struct {
			Date string `json:"date"`
		}
		if err := tool.Decode(c.Input, &in); err != nil {
			return tool.Result{}, err
		}
		date, err := t.date(in.Date)
		if err != nil {
			return tool.Result{}, err
		}
		text, err := t.read(c.Turn, file(date), maxDay)
		if errors.Is(err, fs.ErrNotExist) {
			return tool.Result{Text: fmt.Sprintf(missing, date)}, nil
		}
		return tool.Result{Text: text}, err
	}
}

func (t tools) date(given string) (string, error) {
	if given = strings.TrimSpace(given); given == "" {
		return t.o.Date, nil
	}
	return agents.CheckDate(given)
}

// read returns the text of a file of the vault, up to limit bytes.
func (t tools) read(in *tool.Turn, name string, limit int) (string, error) {
	if !t.o.MayRead(name) {
		return "", core.Errorf(core.Denied, "%s is closed: it is on the deny list", name)
	}
	f, err := in.Vault.OpenNoLinks(name)
	if err != nil {
		return "", readError(name, err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", core.Errorf(core.Invalid, "%s is no regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return "", core.Errorf(core.Busy, "%s cannot be read now", name)
	}
	text := strings.ToValidUTF8(string(b), "")
	if len(b) > limit {
		text = core.CutRunes(text, limit) + fmt.Sprintf("\n(cut after %d bytes)", limit)
	}
	return text, nil
}

func readError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return core.Errorf(core.Invalid, "%s is not read: it is a link, or no regular file", name)
}

// days reads the input of a tool that goes back over days.
func days(raw json.RawMessage) (int, error) {
	var in struct {
		Days *int `json:"days"`
	}
	if err := tool.Decode(raw, &in); err != nil {
		return 0, err
	}
	if in.Days == nil {
		return defaultDays, nil
	}
	if *in.Days < 1 || *in.Days > maxDays {
		return 0, core.Errorf(core.Invalid, "days is a number from 1 to %d", maxDays)
	}
	return *in.Days, nil
}

func (t tools) recent(_ context.Context, c *tool.Call) (tool.Result, error) {
	n, err := days(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	day, err := time.Parse(time.DateOnly, t.o.Date)
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	for i := range n {
		date := day.AddDate(0, 0, -i).Format(time.DateOnly)
		left := maxRecent - b.Len()
		if left <= 0 {
			fmt.Fprintf(&b, "(older days are left out: together they are longer than %d bytes)\n", maxRecent)
			break
		}
		text, err := t.read(c.Turn, "Daily/"+date+".md", min(maxDay, left))
		if err != nil { // one day that cannot be read is none
			continue
		}
		fmt.Fprintf(&b, "=== Journal of %s\n\n%s\n\n", date, strings.TrimSpace(text))
	}
	if b.Len() == 0 {
		return tool.Result{Text: fmt.Sprintf("There is no journal of the %d days up to %s.", n, t.o.Date)}, nil
	}
	return tool.Result{Text: b.String()}, nil
}

func (t tools) sessions(ctx context.Context, c *tool.Call) (tool.Result, error) {
	n, err := days(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	zone := t.o.Agent.Rule.Zone() // that of the run's date
	if zone == nil {
		zone = time.UTC
	}
	day, err := time.ParseInLocation(time.DateOnly, t.o.Date, zone)
	if err != nil {
		return tool.Result{}, err
	}
	list, err := t.o.Sessions(ctx, day.AddDate(0, 0, 1-n), maxSessions)
	if err != nil {
		return tool.Result{}, err
	}
	if len(list) == 0 {
		return tool.Result{Text: "There were no conversations."}, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Times are of %s.\n", zone)
	for _, s := range list {
		fmt.Fprintf(&b, "- %s %q, %s, %d messages\n", s.Last.In(zone).Format("2006-01-02 15:04"), core.CleanName(s.Title), s.Source, s.Messages)
	}
	return tool.Result{Text: b.String()}, nil
}

func (t tools) write(ctx context.Context, c *tool.Call) (tool.Result, error) {
	var in struct {
		Date    string `json:"date"`
		Content string `json:"content" tool:"required"`
	}
	if err := tool.Decode(c.Input, &in); err != nil {
		return tool.Result{}, err
	}
	date, err := t.date(in.Date)
	if err != nil {
		return tool.Result{}, err
	}
	text := strings.TrimSpace(strings.ReplaceAll(in.Content, "\x00", ""))
	switch {
	case text == "":
		return tool.Result{}, core.Errorf(core.Invalid, "content is empty: without output, do not call this tool")
	case len(text) > maxOutput:
		return tool.Result{}, core.Errorf(core.Invalid, "content is %d bytes long, and at most %d are stored", len(text), maxOutput)
	}
	file := t.o.Agent.OutputOf(date)
	at, err := c.Turn.Vault.Dir(file)
	if err != nil {
		return tool.Result{}, err
	}
	if !at.Inside || at.Rel != file || !t.o.MayWrite(file) {
		return tool.Result{}, core.Errorf(core.Denied, "%s may not be written by agents, or a link is on the way to it", file)
	}
	if old, err := c.Turn.Vault.OpenNoLinks(file); err == nil {
		_ = old.Close()
		if date != t.o.Date { // what an agent reads may instruct it to replace all that it has written
			return tool.Result{}, core.Errorf(core.Denied, "%s exists: a run replaces the output of its own date, %s, alone", file, t.o.Date)
		}
	}
	// First, so that a run that is ended in between is known to have written.
	if err := t.o.Wrote(ctx, c.Turn.Run, file); err != nil {
		return tool.Result{}, err
	}
	if err := c.Turn.Vault.WriteFile(file, []byte(text+"\n")); err != nil {
		return tool.Result{}, errors.Join(err, t.o.Wrote(ctx, c.Turn.Run, ""))
	}
	return tool.Result{Text: "Stored as " + file + "."}, nil
}
