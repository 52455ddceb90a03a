package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/storetest"
)

// Tests of the program on a PostgreSQL server; .ci/postgres runs them, and others of this
// package.

// cut ends the session of the server on which the gateway writes, as a failover does.
func (w *world) cut() {
	w.t.Helper()
	if n := w.count(storetest.EndHolder); n != 1 {
		w.t.Fatalf("%d sessions were ended, want that of the writer", n)
	}
}

func TestPostgres_MessagesSurviveLostConnections(t *testing.T) {
	storetest.PostgresOnly(t, "a file has no connection")
	model := llmtest.New(t, llmtest.Options{Choose: func(r llmtest.Request) llmtest.Reply {
		return llmtest.Say("You wrote: ", r.Messages[len(r.Messages)-1].Content)
	}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
		c.BusyMode, c.RateLimit, c.Activity = "queue", values.Rate{}, false
		c.Memory = false
	})
	boss := w.boss()
	before := boss.Send("begin").ID
	w.answers(boss.DM(), before)
	w.quiet()
	const rounds, burst = 6, 4
	for round := range rounds {
		for i := range burst {
			boss.Send(fmt.Sprintf("message %d of round %d", i, round))
			if i == round%burst {
				w.cut()
			}
		}
		w.quiet()
	}
	said := w.said(boss.DM(), before)[1:]
	if len(said) != rounds*burst {
		t.Errorf("%d answers to %d messages:\n%s", len(said), rounds*burst, strings.Join(said, "\n"))
	}
	for i, text := range said {
		if want := fmt.Sprintf("message %d of round %d", i%burst, i/burst); !strings.Contains(text, want) {
			t.Errorf("answer %d is %q, want the one to %q", i, text, want)
		}
	}
}

func TestPostgres_ASecondGatewayIsRefusedAndServesWhenTheFirstIsGone(t *testing.T) {
	storetest.PostgresOnly(t, "a vault has a lock")
	at := storetest.Fresh(t)
	first, second := newHome(t, nil), newHome(t, nil)
	first.env["GATEHOUSE_DATABASE_URL"], second.env["GATEHOUSE_DATABASE_URL"] = at, at
	p := first.serve(nil)
	if code, _, errs := second.run("serve"); code == 0 || !strings.Contains(errs, "another gateway uses this database") {
		t.Errorf("the second gateway: exit code %d\n%s", code, errs)
	}
	_ = p.cmd.Process.Kill()
	p.end()
	second.serve(nil)
	if code, out, errs := second.run("doctor"); !strings.Contains(out, "PostgreSQL 1") {
		t.Errorf("doctor: %d\n%s%s", code, out, errs)
	}
}

func TestPostgres_AServerThatIsAwayIsNamedWithoutThePassword(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // nobody listens there
		t.Fatal(err)
	}
	h := newHome(t, nil)
	h.env["GATEHOUSE_DATABASE_URL"] = "postgres://gatehouse@" + address + "/gatehouse"
	h.env["GATEHOUSE_DATABASE_PASSWORD"] = "topsecret"
	for _, args := range [][]string{{"serve"}, {"doctor"}, {"settings"}} {
		code, out, errs := h.run(args...)
		if strings.Contains(out+errs, "topsecret") {
			t.Errorf("%v shows the password:\n%s%s", args, out, errs)
		}
		if args[0] != "settings" && (code == 0 || !strings.Contains(out+errs, "GATEHOUSE_DATABASE_URL") || !strings.Contains(out+errs, address)) {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(h.vault(), "Chat", "sessions.db*")); len(found) > 0 {
		t.Errorf("a file was made instead: %v", found)
	}
}

func TestACopyThatIsNotCompleteIsNotServed(t *testing.T) {
	h := newHome(t, nil)
	at := storetest.Beside(t, h.dir)
	if at == "" {
		at = filepath.Join(h.vault(), "Chat", "sessions.db")
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env["GATEHOUSE_DATABASE_URL"] = at
	db := storetest.OpenAt(t, at, nil)
	mark := func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, carry.Marker, "of another") }
	if err := errors.Join(db.Tx(t.Context(), mark), db.Close()); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := h.run("serve"); code == 0 || !strings.Contains(errs, "run 'gatehouse migrate' again") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
