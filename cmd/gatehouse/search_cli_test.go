package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/web/api/find"
)

func TestSearchOnTheCommandLineFindsWithAndWithoutARunningGateway(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	code, out, errs := h.run("claim", "--json")
	var claim struct{ Code string }
	if code != 0 || json.Unmarshal([]byte(out), &claim) != nil {
		t.Fatal(errs)
	}
	file := filepath.Join(h.vault(), "Zoo", "Wombat.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("The wombat sleeps in a burrow."), 0o600)); err != nil {
		t.Fatal(err)
	}
	olga := sim.NewUser("Olga")
	olga.Send("/claim " + claim.Code)
	p := h.serve(nil)
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	asked := olga.Send("Where does the wombat sleep?")
	hear(t, sim, olga.DM(), asked.ID, "")
	p.sees(func() bool { // the answer is shown before its row is committed, and the file is indexed in the background
		_, out, _ = h.run("search", "wombat")
		return strings.Contains(out, "    Where does the wombat sleep?\n") && strings.Contains(out, "Zoo/Wombat.md:1  Wombat")
	})
	var page find.Page
	code, out, errs = h.run("search", "--json", "--type", "session", `"the wombat"`)
	if code != 0 || json.Unmarshal([]byte(out), &page) != nil || len(page.Hits) != 1 || page.Hits[0].In != "title" || errs != "" {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if _, exported, _ := h.run("export", page.Hits[0].Session); !strings.Contains(exported, "Where does the wombat sleep?") {
		t.Errorf("the conversation that was found: %s", exported)
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	p.end()
	code, out, errs = h.run("search", "--", "wombat", "-platypus")
	if code != 0 || !strings.Contains(errs, "No gateway runs") || !strings.Contains(out, page.Hits[0].ID) || !strings.Contains(out, "Zoo/Wombat.md:1  Wombat") {
		t.Errorf("on the files: %d %s %s", code, out, errs)
	}
	if code, out, errs = h.run("search", "wombat", "--folder", "Zoo"); code != 0 || strings.Contains(out, page.Hits[0].ID) || !strings.Contains(out, "    The wombat sleeps in a burrow.\n") {
		t.Errorf("in a folder: %d %s %s", code, out, errs)
	}
}
