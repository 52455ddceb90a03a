package pairing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMoveAndForget(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.Places.Enable(ctx, "tg", "old", "G", core.Vault, panel))
	w.put(inGroup(dm("tg", "7", "x"), "new")) // seen under the new id first
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.gate.Move(ctx, tx, "tg", "old", "new") }))
	if got := w.trust(inGroup(dm("tg", "9", "x"), "new")); got != core.Vault {
		t.Fatalf("after the move the group runs at %v", got)
	}
	w.admit("tg", "7", core.Vault)
	id, _, _ := w.gate.People.User(ctx, w.db, peer("7"))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.forget(tx, id) }))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		t.Fatalf("a forgotten person runs at %v", got)
	}
	w.admit("tg", "7", core.Vault)
	if again, _, _ := w.gate.People.User(ctx, w.db, peer("7")); again == id {
		t.Fatal("a forgotten person's id was used again")
	}
	err := w.db.Tx(ctx, func(tx *store.Tx) error { return w.forget(tx, core.Operator) })
	wantKind(t, err, core.Invalid)
}

func TestMetricsStartAtZeroAndCount(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, []string{"tg"})
	w := newWorld(t, func(o *Options) { o.Metrics = m })
	NewMetrics(reg, []string{"tg"}) // gatehouse_denied_total may be there already
	reg.MustRegister(w.gate.Gauges())
	if n, err := testutil.GatherAndCount(reg, "gatehouse_pairing_total", "gatehouse_denied_total"); err != nil || n != len(Decisions)+len(Rules) {
		t.Fatalf("%d series at the start, %v", n, err)
	}
	w.put(dm("tg", "7", "x"))
	want := `
# HELP gatehouse_pairing_pending Pairing requests that wait for a decision.
# TYPE gatehouse_pairing_pending gauge
gatehouse_pairing_pending{bot="dc"} 0
gatehouse_pairing_pending{bot="tg"} 1
gatehouse_pairing_pending{bot="tg2"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gatehouse_pairing_pending"); err != nil {
		t.Fatal(err)
	}
	if got := testutil.ToFloat64(m.decisions.WithLabelValues("tg", "requested")); got != 1 {
		t.Fatalf("requested %v", got)
	}
	if got := testutil.ToFloat64(m.denied.WithLabelValues(ruleStranger)); got != 1 {
		t.Fatalf("denied %v", got)
	}
}

func TestAdmitOfAKnownPersonReadsByIndex(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	w := newWorld(t)
	plan := storetest.Plan(t, w.db, personQuery, "telegram", "7", "tg", "dm", "")
	tables := 0
	for _, step := range plan {
		if strings.HasPrefix(step.Detail, "SCAN") && !strings.Contains(step.Detail, "CONSTANT ROW") && step.Detail != "SCAN one" {
			t.Errorf("step %q reads a whole table", step.Detail)
		}
		if strings.HasPrefix(step.Detail, "SEARCH") {
			tables++
		}
	}
	if tables < 4 {
		t.Errorf("plan %+v", plan)
	}
}

// Who asks for the newest requests waits for no sorting of all there ever were.
func TestTheNewestRequestsAreReadByIndex(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	w := newWorld(t)
	for _, query := range []string{newestRequests, requestColumns + ` WHERE status = $1 ORDER BY created_at DESC, id LIMIT 10`} {
		plan := storetest.Plan(t, w.db, query, 10)
		if detail := plan[0].Detail; !strings.Contains(detail, "USING INDEX") {
			t.Errorf("%s: %+v", query, plan)
		}
	}
}

func BenchmarkAdmitKnownPerson(b *testing.B) {
	w := newWorld(b)
	w.admit("tg", "7", core.Vault)
	in := dm("tg", "7", "x")
	err := w.db.Tx(ctx, func(tx *store.Tx) error {
		for b.Loop() {
			if v, err := w.gate.Admit(ctx, tx, &in); err != nil || v.Action != core.Run {
				return fmt.Errorf("%+v %v", v, err)
			}
		}
		return nil
	})
	w.ok(err)
}
