// Package daily reads the files of daily agents, Daily/.agents/NAME.md in the vault:
// when an agent runs, with what, and where its output goes.
package daily

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent/frontmatter"
	"gatehouse/core/schedule/when"
)

// Dir is the vault's directory of daily agents.
const Dir = "Daily/.agents"

// A Fault is an error in the file of an agent.
type Fault = frontmatter.Fault

// An Agent is what a file defines.
type Agent struct {
	Name        string // of the file, without .md
	File        string
	DisplayName string
	Description string
	Rule        when.Rule
	Enabled     bool   // runs by its schedule; it can be run by hand all the same
	Output      string // of the vault, with {name} and {date}
	outputLine  int    // of the file, where Output is set
	Tools       []string
	Model       string     // "" is the setting's
	Trust       core.Trust // Vault, or Sandboxed
	Deliver     *Chat      // who gets the output; nil: no one
	Prompt      string     // with {date}, {user_name} and {user_context}
}

// OwnerChat as Chat is the owner's direct chat with the bot.
const OwnerChat = "owner"

// A Chat is a chat of a bot.
type Chat struct{ Bot, Chat string }

// fields are those of the frontmatter.
type fields struct {
	DisplayName string `yaml:"displayName"`
	Description string
	Schedule    *schedule
	Enabled     *bool `yaml:"schedule_enabled"`
	Timezone    string
	Output      string
	Tools       *frontmatter.List
	Model       string
	Trust       string `yaml:"trust_level"`
	Deliver     string
}

// A schedule is a time, a cron expression, or fields with both.
type schedule struct {
	Enabled *bool
	Time    string
}

// UnmarshalYAML takes either form.
func (s *schedule) UnmarshalYAML(read func(any) error) error {
	if read(&s.Time) == nil {
		return nil
	}
	type both schedule
	return read((*both)(s))
}

// Defaults of a file.
const (
	defaultTime   = "3:00"
	defaultOutput = "Daily/{name}/{date}.md"
)

// goodName is what a file may be called: it names directories, and a metric's label.
var goodName = core.Pattern(`^[a-z0-9][a-z0-9_-]{0,47}$`)

// taken are names whose directories below Daily are another's.
var taken = []string{"agents", "activity", "assets", "chat-log"}

// CheckName returns a core.Invalid error for a name that no agent can have.
func CheckName(name string) error {
	if !goodName().MatchString(name) {
		return core.Errorf(core.Invalid, "a daily agent's name is 1 to 48 of a-z 0-9 - _ and begins with a letter or digit")
	}
	if slices.Contains(taken, name) {
		return core.Errorf(core.Invalid, "a daily agent cannot be called %s: Daily/%s belongs to something else", name, name)
	}
	return nil
}

// whole returns a fault of a file as a whole.
func whole(file, text string) *Fault { return &Fault{File: file, Text: text} }

// Parse reads the text of the file of the agent of that name.
func Parse(name, text string) (Agent, *Fault) {
	file := path.Join(Dir, name+".md")
	if err := CheckName(name); err != nil {
		return Agent{}, whole(file, core.TextOf(err))
	}
	h, body, fault := frontmatter.Split(file, text)
	if fault != nil {
		return Agent{}, fault
	}
	var f fields
	if fault := h.Decode(&f); fault != nil {
		fault.Text = strings.ReplaceAll(fault.Text, "docs/agents.md", "docs/schedule.md")
		return Agent{}, fault
	}
	if fault := h.NotNull("schedule", "tools", "trust_level", "deliver"); fault != nil {
		return Agent{}, fault
	}
	a := Agent{Name: name, File: file, DisplayName: core.CleanName(f.DisplayName), Description: strings.TrimSpace(f.Description), Model: strings.TrimSpace(f.Model),
		Enabled: true, Output: defaultOutput, Trust: core.Vault, Prompt: body}
	if a.DisplayName == "" {
		a.DisplayName = name
	}
	if body == "" {
		return Agent{}, whole(file, "there is no prompt below the frontmatter")
	}
	for _, set := range []func(*frontmatter.Header, *fields) *Fault{a.setSchedule, a.setOutput, a.setTools, a.setTrust, a.setDeliver} {
		if fault := set(h, &f); fault != nil {
			return Agent{}, fault
		}
	}
	return a, nil
}

func (a *Agent) setSchedule(h *frontmatter.Header, f *fields) *Fault {
	zone, err := when.Zone(f.Timezone)
	if err != nil {
		return h.At("timezone", "%s", err)
	}
	spec, key := defaultTime, "schedule"
	if f.Schedule != nil {
		if h.Has("schedule.time") {
			key = "schedule.time"
		}
		if f.Schedule.Time != "" || h.Has("schedule.time") || !h.Has("schedule.enabled") {
			spec = f.Schedule.Time
		}
		if f.Schedule.Enabled != nil {
			a.Enabled = *f.Schedule.Enabled
		}
	}
	if f.Enabled != nil { // the more explicit of the two
		a.Enabled = *f.Enabled
	}
	if a.Rule, err = when.Parse(spec, zone); err != nil {
		return h.At(key, "%s", err)
	}
	return nil
}

func (a *Agent) setOutput(h *frontmatter.Header, f *fields) *Fault {
	a.outputLine = h.At("output", "").Line
	if !h.Has("output") {
		return nil
	}
	a.Output = strings.TrimSpace(f.Output)
	name := a.OutputOf("2026-01-28")
	switch {
	case !strings.Contains(a.Output, "{date}"):
		return h.At("output", "output has no {date}: each run would replace the output of the last")
	case !strings.HasSuffix(name, ".md") || path.Clean(name) != name || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || strings.ContainsAny(name, "\\\x00{}"):
		return h.At("output", "output is a file of the vault that ends in .md, such as %s", defaultOutput)
	}
	for _, part := range strings.Split(name, "/") {
		if strings.HasPrefix(part, ".") {
			return h.At("output", "output is in no hidden directory")
		}
	}
	if dateFile().MatchString(name) {
		return h.At("output", "output would replace the journal of the day")
	}
	return nil
}

// dateFile are the journal's own files.
var dateFile = core.Pattern(`(?i)^Daily/(chat-log/)?\d{4}-\d{2}-\d{2}\.md$`)

// OutputOf returns the file of a date's output.
func (a *Agent) OutputOf(date string) string {
	return strings.NewReplacer("{name}", a.Name, "{date}", date).Replace(a.Output)
}

// shares returns a fault where b writes the same files as a, and both run by their schedules.
func (a *Agent) shares(b *Agent) *Fault {
	if !a.Enabled || !b.Enabled || !strings.EqualFold(a.OutputOf("{date}"), b.OutputOf("{date}")) {
		return nil
	}
	f := whole(a.File, "its output is that of "+b.Name+": each would replace what the other wrote")
	f.Line = a.outputLine
	return f
}

// StateFile returns the file in which programs find how the agent's runs went.
func StateFile(name string) string { return path.Join("Daily", "."+name, "state.json") }

// Tools that a daily agent may have.
const (
	ReadJournal        = "ReadJournal"
	ReadChatLog        = "ReadChatLog"
	ReadRecentJournals = "ReadRecentJournals"
	ReadRecentSessions = "ReadRecentSessions"
	WriteOutput        = "WriteOutput" // it has always
)

// Own are the tools that only daily agents have.
var Own = []string{ReadJournal, ReadChatLog, ReadRecentJournals, ReadRecentSessions, WriteOutput}

// ours are the names of tools by those that files of the original system use.
var ours = map[string]string{
	"read_journal": ReadJournal, "read_chat_log": ReadChatLog, "read_recent_journals": ReadRecentJournals,
	"read_recent_sessions": ReadRecentSessions, "write_output": WriteOutput,
	"web_search": "WebSearch", "web_fetch": "WebFetch", "read_file": "Read", "read": "Read", "glob": "Glob", "grep": "Grep", "search": "Search", "bash": "Bash",
	"write_file": "Write", "write": "Write", "edit": "Edit", "skill": "Skill", "task": "Task",
}

// others are tools of the program that a file may name too.
var others = []string{"Read", "Write", "Edit", "Glob", "Grep", "Search", "Bash", "WebFetch", "WebSearch", "Skill", "Task"}

func (a *Agent) setTools(h *frontmatter.Header, f *fields) *Fault {
	if !h.Has("tools") {
		a.Tools = slices.Clone(Own)
		return nil
	}
	if f.Tools.Values() == nil {
		return h.At("tools", "tools are listed one by one: what runs unattended has no others")
	}
	a.Tools = []string{WriteOutput}
	for _, name := range f.Tools.Values() {
		own, known := ours[strings.ToLower(name)]
		switch {
		case known:
			name = own
		case slices.Contains(Own, name) || slices.Contains(others, name) || strings.HasPrefix(name, "mcp__"):
		default:
			return h.At("tools", "tools names a tool that does not exist; docs/schedule.md lists those that there are")
		}
		if !slices.Contains(a.Tools, name) {
			a.Tools = append(a.Tools, name)
		}
	}
	return nil
}

func (a *Agent) setTrust(h *frontmatter.Header, f *fields) *Fault {
	switch f.Trust {
	case "", "vault":
	case "sandboxed":
		a.Trust = core.Sandboxed
	default:
		return h.At("trust_level", "trust_level is vault or sandboxed: no agent runs unattended above that")
	}
	return nil
}

func (a *Agent) setDeliver(h *frontmatter.Header, f *fields) *Fault {
	if !h.Has("deliver") {
		return nil
	}
	bot, chat, found := strings.Cut(strings.TrimSpace(f.Deliver), "/")
	if !found || bot == "" || chat == "" || core.OfSession(bot) || strings.ContainsAny(bot+chat, " \t\x00") {
		return h.At("deliver", "deliver is a bot and a chat: BOT/owner for the chat with the owner, or BOT/ and the id of a chat")
	}
	a.Deliver = &Chat{bot, chat}
	return nil
}

// PromptOf returns the prompt of a run for date. user is the value of {user_name}, about
// what {user_context} does.
func (a *Agent) PromptOf(date, user, about string) string {
	return strings.NewReplacer("{date}", date, "{yesterday}", dayBefore(date), "{user_name}", user, "{user_context}", about).Replace(a.Prompt)
}

func dayBefore(date string) string {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return date
	}
	return day.AddDate(0, 0, -1).Format(time.DateOnly)
}

// CheckDate returns date as 2026-01-28, or core.Invalid for what is no day.
func CheckDate(date string) (string, error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil || day.Year() < 1970 || day.Year() > 9998 {
		return "", core.Errorf(core.Invalid, "%s is no date; write it as 2026-01-28", shown(date))
	}
	return day.Format(time.DateOnly), nil
}

func shown(s string) string { return fmt.Sprintf("%q", core.CutRunes(s, 40)) }
