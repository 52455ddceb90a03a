package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// Two gateways on one server are in the panel, in the metrics and in doctor's report; one that was
// killed is reported as gone, one that was stopped is not in the list.
func TestPostgres_TheGatewaysOfADatabaseAreListed(t *testing.T) {
	storetest.PostgresOnly(t, "two gateways share a server")
	t.Parallel()
	h := newHome(t, nil)
	at := storetest.Fresh(t)
	h.env["GATEHOUSE_DATABASE_URL"], h.env["GATEHOUSE_METRICS_ADDR"] = at, freePort(t)
	metrics := "http://" + h.env["GATEHOUSE_METRICS_ADDR"] + "/metrics"
	p := h.serve(nil)
	panel := h.panel(p)
	h.env["GATEHOUSE_METRICS_ADDR"] = freePort(t)
	q, addr := h.standby()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.OpenAt(t, at, nil)
	state := func(state, newest, seen string) {
		t.Helper()
		p.sees(func() bool { return strings.Contains(panel.page("/admin/gateways"), state) })
		err := db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE nodes SET newest = `+newest+`, seen = `+seen+` WHERE state = 'standby'`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(what string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(what, text) {
				t.Errorf("%q is not in %s", text, what)
			}
		}
	}
	state("Stands by", "1", "seen")
	has(panel.page("/admin/gateways"), "Serves", ":"+port, "Cannot take over", "No gateway stands by")
	has(panel.page("/admin"), "Are all gateways there?", "the program is older than the database", "1 gateway cannot take over")
	state("Cannot take over", "newest + 1000000", "seen")
	page := panel.page("/admin/gateways")
	has(page, "1 gateway stands by, and would take over within seconds")
	if overview := panel.page("/admin"); strings.Contains(overview, "gateways there?") {
		t.Error("the overview reports a gateway that is well")
	}
	_, body, _ := probed(t, "GET", metrics)
	has(body, `gatehouse_nodes{state="serving"} 1`, `gatehouse_nodes{state="standby"} 1`, `gatehouse_nodes{state="gone"} 0`)
	_, out, errs := h.run("doctor")
	has(out+errs, ":"+port+" stands by", " serves")

	_ = q.cmd.Process.Kill()
	q.end()
	state("Stands by", "newest", "seen - 60000")
	has(panel.page("/admin/gateways"), "Gone", "No gateway stands by")
	has(panel.page("/admin"), ":"+port+" ended without being stopped", "1 gateway is gone")
	_, body, _ = probed(t, "GET", metrics)
	has(body, `gatehouse_nodes{state="standby"} 0`, `gatehouse_nodes{state="gone"} 1`)

	h.env["GATEHOUSE_ADDR"] = addr // it comes back under its name
	q, _ = h.standby()
	p.sees(func() bool { return !strings.Contains(panel.page("/admin/gateways"), "Gone") })
	_ = q.cmd.Process.Signal(syscall.SIGTERM)
	q.end()
	if page := panel.page("/admin/gateways"); strings.Contains(page, ":"+port) {
		t.Errorf("one that was stopped is listed: %s", page)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.end()
	var left int
	if err := db.Get(t.Context(), &left, `SELECT count(*) FROM nodes`); err != nil || left != 0 {
		t.Errorf("%d are listed after the stop, %v", left, err)
	}
}

func TestWithoutAServerThereIsNoListOfGateways(t *testing.T) {
	storetest.SQLiteOnly(t, "there is a list on a server")
	t.Parallel()
	w := newWorld(t, nil)
	if page := w.browser().page("/admin/queue"); strings.Contains(page, "/admin/gateways") {
		t.Error("the panel has the page")
	}
}
