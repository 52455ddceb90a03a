package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestASessionIsExportedAsMarkdownWithAndWithoutARunningGateway(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	_, claim, _ := h.run("claim")
	olga := sim.NewUser("Olga")
	olga.Send(regexp.MustCompile(`/claim \S+`).FindString(claim))
	p := h.serve(nil)
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	asked := olga.Send("How long should green tea brew?")
	hear(t, sim, olga.DM(), asked.ID, "tea")
	var id, served string
	p.sees(func() bool { // the answer is shown before its row is committed
		files, _ := filepath.Glob(filepath.Join(h.vault(), ".claude", "projects", "*", "*.jsonl"))
		if len(files) != 1 {
			return false
		}
		id = strings.TrimSuffix(filepath.Base(files[0]), ".jsonl")
		_, served, _ = h.run("export", id)
		return strings.Contains(served, "### Assistant | ") && strings.Contains(served, "\nmessage_count: 2\n")
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	file := filepath.Join(h.dir, "tea.md")
	if code, out, errs := h.run("export", id, "-o", file); code != 0 || out != "" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	raw, err := os.ReadFile(file)
	if err != nil || string(raw) != served {
		t.Errorf("%v; on the files\n%s\nthrough the gateway\n%s", err, raw, served)
	}
	form := regexp.MustCompile(`(?s)^---\nsession_id: "` + id + `"\ntitle: "How long should green tea brew\?"\n.*\n---\n\n# How long .*\n\n### User \| 2\d{3}-\S+Z\n\nHow long should green tea brew\?\n\n### Assistant \| `)
	if !form.MatchString(served) {
		t.Errorf("%s", served)
	}
	if code, _, errs := h.run("export", id, "-o", file); code != 1 || !strings.Contains(errs, "is there already") {
		t.Errorf("over an existing file: %d %q", code, errs)
	}
	if code, _, errs := h.run("export", "11111111-1111-4111-8111-111111111111"); code != 1 || !strings.Contains(errs, "there is no session") {
		t.Errorf("an unknown session: %d %q", code, errs)
	}
}
