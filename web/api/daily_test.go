package api

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	apidaily "gatehouse/web/api/daily"

	"testing"
)

// A dailyDouble has one agent, which has run once.
type dailyDouble struct{ now func() time.Time }

func (h *harness) daily() apidaily.Options {
	d := dailyDouble{h.clock.Now}
	return apidaily.Options{Lists: d, Starter: d}
}

func (d dailyDouble) last() daily.Run {
	return daily.Run{Agent: "reflection", Date: "2026-01-28", N: 1, Run: "r1", Session: "5f0e8d1c-2a77-4f53-9a54-0c1f3a0c9b11", Cause: daily.ByTime, Result: daily.Completed,
		Output: "Daily/reflection/2026-01-28.md", Model: "local/quote", Due: d.now(), Created: d.now(), Ended: d.now()}
}

func (d dailyDouble) Line(_ context.Context, name string) (daily.Line, error) {
	if name != "reflection" {
		return daily.Line{}, core.Errorf(core.NotFound, "there is no daily agent of this name")
	}
	a, fault := daily.Parse(name, "---\nschedule: \"21:30\"\n---\nLook back.")
	if fault != nil {
		return daily.Line{}, core.Errorf(core.Invalid, "%s", fault)
	}
	last := d.last()
	return daily.Line{Agent: a, Next: a.Rule.Next(d.now()), Last: &last}, nil
}

func (d dailyDouble) List(ctx context.Context) ([]daily.Line, []daily.Fault, error) {
	l, err := d.Line(ctx, "reflection")
	return []daily.Line{l}, []daily.Fault{{File: "Daily/.agents/bad.md", Line: 2, Text: "no"}}, err
}

func (d dailyDouble) History(context.Context, string, int) ([]daily.Run, error) {
	return []daily.Run{d.last()}, nil
}

func (d dailyDouble) Start(_ context.Context, name, date string, force bool, _ core.Actor) (daily.Run, error) {
	r := d.last()
	if name != r.Agent {
		return daily.Run{}, core.Errorf(core.NotFound, "there is no daily agent %s", name)
	}
	if _, err := daily.CheckDate(date); date != "" && err != nil {
		return daily.Run{}, err
	}
	r.Result = daily.Skipped
	if force {
		r.Result, r.Ended = "", time.Time{}
	}
	return r, nil
}

func TestDailyAgentsOverTheAPI(t *testing.T) {
	h := open(t, options{})
	key := h.key("admin")
	list := h.want(200, "", key, "GET", "/api/daily/agents", "")
	if a := list["agents"].([]any)[0].(map[string]any); a["name"] != "reflection" || a["schedule"] != "21:30" || a["next_run"] == nil || list["faults"].([]any)[0].(map[string]any)["line"] != 2.0 {
		t.Errorf("the list is %v", list)
	}
	if next := h.want(200, "", key, "GET", "/api/scheduler", ""); len(next["jobs"].([]any)) != 1 {
		t.Errorf("the scheduler is %v", next)
	}
	if one := h.want(200, "", key, "GET", "/api/daily/agents/reflection", ""); one["last_run"].(map[string]any)["result"] != "completed" {
		t.Errorf("the agent is %v", one)
	}
	if run := h.want(200, "", key, "POST", "/api/daily/agents/reflection/run", `{}`); run["result"] != "skipped" {
		t.Errorf("run again: %v", run)
	}
	if run := h.want(200, "", key, "POST", "/api/daily/agents/reflection/run", `{"date":"2026-01-28","force":true}`); run["result"] != "running" {
		t.Errorf("by force: %v", run)
	}
	if runs := h.want(200, "", key, "GET", "/api/daily/agents/reflection/history", ""); len(runs["runs"].([]any)) != 1 {
		t.Errorf("the history is %v", runs)
	}
	h.want(404, "not-found", key, "GET", "/api/daily/agents/nothing", "")
	h.want(400, "invalid-request", key, "POST", "/api/daily/agents/reflection/run", `{"date":"yesterday"}`)
	h.want(400, "invalid-request", key, "GET", "/api/daily/agents/reflection/history?limit=0", "")
}
