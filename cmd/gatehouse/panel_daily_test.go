package main

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
	"gatehouse/core/schedule/daily"
)

var tagsOff = regexp.MustCompile(`<[^>]*>`)

func TestThePanelShowsDailyAgentsAndRunsThem(t *testing.T) {
	w, model, _ := newScheduleWorld(t)
	b := w.browser()
	const path = "/admin/daily"
	empty := b.page(path)
	if !strings.Contains(empty, "No daily agent yet") {
		t.Errorf("without agents: %s", empty)
	}
	if _, said := b.submit(path+"/reflection/add", empty, url.Values{}); !strings.Contains(said, "Daily/.agents/reflection.md is written") {
		t.Errorf("the sample: %s", said)
	}
	w.put("Daily/.agents/bad.md", "---\nschedule: \"25:99\"\n---\nx")
	page := b.page(path)
	for _, want := range []string{"21:30 UTC", "Turn off", "Daily/.agents/bad.md", "line 2", "hours are 0 to 23", "1 file can’t be used", "never"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q: %s", want, page)
		}
	}
	if strings.Contains(page, "reflection/add") || !strings.Contains(page, "content-scout/add") {
		t.Error("a sample that is there is offered")
	}
	model.Script(llmtest.CallTool("b", "WriteOutput", `{"content":"A day."}`), llmtest.Say("Done."))
	if _, said := b.submit(path+"/reflection/run", page, url.Values{}); !strings.Contains(said, "reflection is running for") {
		t.Errorf("run: %s", said)
	}
	run := w.ran("reflection", 1)
	one := b.page(path + "/reflection")
	for _, want := range []string{"Written", "/admin/chats/" + run.Session, "path=Daily%2Freflection%2F" + run.Date + ".md", "operator via panel", "It is the evening of {date}"} {
		if !strings.Contains(one, want) {
			t.Errorf("its page does not say %q: %s", want, one)
		}
	}
	if _, said := b.submit(path+"/reflection/run", one, url.Values{"from": {"one"}, "date": {run.Date}}); !strings.Contains(said, "has been run for") {
		t.Errorf("run again: %s", said)
	}
	model.Script(llmtest.Say("Nothing."))
	if _, said := b.submit(path+"/reflection/run", one, url.Values{"from": {"one"}, "date": {run.Date}, "force": {"1"}}); !strings.Contains(said, "is running for") {
		t.Errorf("run by force: %s", said)
	}
	if run := w.ran("reflection", 2); run.Result != daily.CompletedNoOutput {
		t.Errorf("the run is %+v", run)
	}
	if _, said := b.submit(path+"/reflection/disable", one, url.Values{}); !strings.Contains(said, "runs only when you start it") || !strings.Contains(said, "Turn on") {
		t.Errorf("switched off: %s", said)
	}
	if !strings.Contains(w.vaultText("Daily/.agents/reflection.md"), "schedule_enabled: false") {
		t.Error("the file does not say that it is off")
	}
	for _, bad := range []string{"/..%2f..%2fx/run", "/missing/run", "/bad/enable", "/reflection/burn"} {
		if status, said := b.submit(path+bad, one, url.Values{}); status >= 500 || strings.Contains(said, "failed to do this") {
			t.Errorf("%s: %d", bad, status)
		}
	}
	audit := b.page("/admin/audit")
	for _, want := range []string{"started the daily agent reflection for", "turned the daily agent reflection off", "added the sample of a daily agent reflection"} {
		if !strings.Contains(tagsOff.ReplaceAllString(audit, ""), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}
