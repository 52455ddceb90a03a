package admin_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/daily"
	"gatehouse/core"
	agents "gatehouse/core/schedule/daily"
)

const dailyPath = "/admin/daily"

// A dailyWorld has the daily agents of a world: files of its vault, and runs in memory.
type dailyWorld struct {
	w     *world
	files *agents.Files

	mu   sync.Mutex
	runs []agents.Run // newest first
}

// openDaily fills the options with the world's daily agents.
func (w *world) openDaily(o *admin.Options) {
	w.daily = &dailyWorld{w: w, files: agents.NewFiles(w.vault)}
	o.Daily = daily.Options{Lists: w.daily, Acts: w.daily}
}

func (d *dailyWorld) line(a agents.Agent) agents.Line {
	l := agents.Line{Agent: a}
	if a.Enabled {
		l.Next = a.Rule.Next(d.w.clock.Now())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.runs, func(r agents.Run) bool { return r.Agent == a.Name }); i >= 0 {
		r := d.runs[i]
		l.Last = &r
	}
	return l
}

func (d *dailyWorld) List(context.Context) (lines []agents.Line, faults []agents.Fault, err error) {
	set, err := d.files.Read()
	for _, a := range set.Agents {
		lines = append(lines, d.line(a))
	}
	return lines, set.Faults, err
}

func (d *dailyWorld) Line(_ context.Context, name string) (agents.Line, error) {
	set, err := d.files.Read()
	if err != nil {
		return agents.Line{}, err
	}
	a, ok := set.Agent(name)
	if !ok {
		return agents.Line{}, core.Errorf(core.NotFound, "there is no daily agent %s", name)
	}
	return d.line(a), nil
}

func (d *dailyWorld) History(_ context.Context, name string, limit int) (list []agents.Run, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.runs {
		if r.Agent == name && len(list) < limit {
			list = append(list, r)
		}
	}
	return list, nil
}

func (d *dailyWorld) Start(_ context.Context, name, date string, force bool, by core.Actor) (agents.Run, error) {
	d.w.mu.Lock()
	d.w.note(by, "run %s for %q, force %v", name, date, force)
	d.w.mu.Unlock()
	if date == "" {
		date = diaryDay
	}
	r := agents.Run{Agent: name, Date: date, N: 1, Cause: "operator via panel", Result: agents.Completed, Output: "Daily/" + name + "/" + date + ".md", Session: d.w.mine, Created: d.w.clock.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = slices.Insert(d.runs, 0, r)
	return r, nil
}

func (d *dailyWorld) Switch(_ context.Context, name string, on bool, by core.Actor) error {
	d.w.mu.Lock()
	d.w.note(by, "switch %s %v", name, on)
	d.w.mu.Unlock()
	return d.files.Enable(name, on)
}

func (d *dailyWorld) Add(_ context.Context, sample string, by core.Actor) error {
	d.w.mu.Lock()
	d.w.note(by, "add %s", sample)
	d.w.mu.Unlock()
	return d.files.AddSample(sample)
}

// daily agents of the world: two that have run, and a file that cannot be used.
func (w *world) mornings() {
	must(w.daily.files.AddSample("reflection"))
	must(w.daily.files.AddSample("content-scout"))
	must(w.daily.files.Enable("content-scout", false))
	w.file("Daily/.agents/weather.md", "---\nschedule: \"25:00\"\n---\nHow is the weather on {date}?\n")
	now := w.clock.Now()
	w.daily.runs = []agents.Run{
		{Agent: "reflection", Date: "2026-01-27", N: 2, Cause: "operator via panel", Result: agents.Completed, Output: "Daily/reflection/2026-01-27.md", Session: w.mine, Created: now.Add(-18 * time.Hour)},
		{Agent: "reflection", Date: "2026-01-27", N: 1, Cause: agents.ByTime, Result: agents.Failed, Error: "the model did not answer within 5 minutes", Session: w.ada, Created: now.Add(-19 * time.Hour)},
		{Agent: "reflection", Date: "2026-01-26", N: 1, Cause: agents.Missed, Result: agents.CompletedNoOutput, Session: w.ada, Created: now.Add(-43 * time.Hour)},
		{Agent: "content-scout", Date: "2026-01-26", N: 1, Cause: agents.ByTime, Result: agents.Failed, Error: "the budget of the month is used up", Created: now.Add(-50 * time.Hour)},
	}
}

func TestDailyAgents_AreListedRunAndSwitched(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get(dailyPath).has(t, "No daily agent yet")
	s.world.full()
	s.get(dailyPath).has(t, "Reflection", "21:30 UTC", "Written", "Failed", "Daily/.agents/weather.md", "1 file can’t be used")
	s.get(dailyPath+"/reflection").has(t, "run 2", "by the clock", "made up", "the model did not answer within 5 minutes", "/admin/chats/"+s.world.mine)
	s.post(dailyPath+"/reflection/run", nil).has(t, "reflection is running for "+diaryDay)
	s.post(dailyPath+"/content-scout/enable", nil).has(t, "content-scout runs by its schedule from now on.")
	if did := s.world.done(); !slices.Equal(did, []string{`run reflection for "", force false`, "switch content-scout true"}) {
		t.Errorf("done: %q", did)
	}
}
