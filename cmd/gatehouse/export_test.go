package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
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
	if code, out, errs := h.run("export", id[:8]); code != 0 || out != served {
		t.Errorf("the beginning of its id: %d %q %q", code, out, errs)
	}
	if code, _, errs := h.run("export", "11111111-1111-4111-8111-111111111111"); code != 1 || !strings.Contains(errs, "there is no session") {
		t.Errorf("an unknown session: %d %q", code, errs)
	}
}

// A deleted conversation lies in the trash for a time: an export says so.
func TestExportOfAUserListsTheirConversationsInTheTrash(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"] = "open"
	p := h.serve(nil)
	ada, bo := sim.NewUser("Ada"), sim.NewUser("Bo")
	for _, u := range []*telegramtest.User{ada, bo} {
		m := u.Send("How long should green tea brew?")
		hear(t, sim, u.DM(), m.ID, "tea")
	}
	n := 0
	export := func(u *telegramtest.User) (out, person string) {
		t.Helper()
		n++
		dir := filepath.Join(h.dir, fmt.Sprint("export", n))
		code, out, errs := h.run("export", "--user", fmt.Sprintf("telegram:%d", u.ID()), "-o", dir)
		b, err := os.ReadFile(filepath.Join(dir, "person.json"))
		if code != 0 || err != nil {
			t.Fatalf("%d %s %v", code, errs, err)
		}
		return out, string(b)
	}
	var id string
	p.sees(func() bool { // the answer is shown before its row is committed
		export(ada)
		files, _ := filepath.Glob(filepath.Join(h.dir, fmt.Sprint("export", n), "conversations", "*.md"))
		if len(files) == 1 {
			id = strings.TrimSuffix(filepath.Base(files[0]), ".md")
		}
		return id != ""
	})
	if out, person := export(ada); strings.Contains(out, "trash") || !strings.Contains(person, `"trash": []`) {
		t.Errorf("before anything is deleted: %s\n%s", out, person)
	}
	keys, _ := filepath.Glob(filepath.Join(h.env["XDG_RUNTIME_DIR"], "*", "key"))
	if len(keys) != 1 {
		t.Fatal(keys)
	}
	key, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+p.addr()+"/api/chat/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		t.Fatal(resp.Status)
	}
	out, person := export(ada)
	if !strings.Contains(out, "1 deleted conversation in the trash") || !regexp.MustCompile(`"name": "\.parachute/trash/[^"]+-`+id+`\.jsonl"`).MatchString(person) || !strings.Contains(person, `"session_id": "`+id+`"`) {
		t.Errorf("after a deletion: %s\n%s", out, person)
	}
	if out, person := export(bo); strings.Contains(out, "trash") || !strings.Contains(person, `"trash": []`) {
		t.Errorf("somebody else's: %s\n%s", out, person)
	}
}
