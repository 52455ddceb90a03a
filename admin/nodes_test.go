package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/admin"
	adminnodes "gatehouse/admin/nodes"
	"gatehouse/core/nodes"
)

func (w *world) listGateways(o *admin.Options) {
	o.Nodes = adminnodes.Options{Needed: 7, List: func(context.Context) ([]nodes.Node, error) { return w.gateways, w.broken }}
}

// twoOf are gateways of which one stands by and one is gone.
func (w *world) twoOf() {
	now := w.clock.Now()
	w.gateways = []nodes.Node{
		{ID: "gate1:3333", State: nodes.Serving, Version: "v1.4.0", Newest: 7, Address: "[::]:3333", Started: now.Add(-50 * time.Hour)},
		{ID: "gate2:3333", State: nodes.Standby, Version: "v1.4.0", Newest: 7, Address: "[::]:3333", Started: now.Add(-49 * time.Hour)},
	}
}

// gateways has the panel list these, on a database that needs migration 7.
func gateways(list *[]nodes.Node, err *error) func(*admin.Options) {
	return func(o *admin.Options) {
		o.Nodes = adminnodes.Options{Needed: 7, List: func(context.Context) ([]nodes.Node, error) { return *list, *err }}
	}
}

func TestGateways_ThePageAndTheOverviewSayWhoWouldTakeOver(t *testing.T) {
	serving := nodes.Node{ID: "one:3333", State: nodes.Serving, Version: "v1.4.0", Newest: 7, Address: "[::]:3333", Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	well, old, gone := serving, serving, serving
	well.ID, well.State = "two:3333", nodes.Standby
	old.ID, old.State, old.Newest, old.Version = "three:3333", nodes.Standby, 6, "v1.3.0"
	gone.ID, gone.State, gone.Silent = "<b>four", nodes.Gone, 3*time.Minute
	var list []nodes.Node
	var err error
	s := newSite(t, nil, gateways(&list, &err)).enter()
	s.get("/admin/gateways").has(t, "No gateway stands by", "None is noted yet")
	list = []nodes.Node{serving}
	s.get("/admin").lacks(t, "gateways there?")
	s.get("/admin/queue").has(t, `href="/admin/gateways"`)
	list = []nodes.Node{serving, well}
	s.get("/admin").lacks(t, "gateways there?")
	s.get("/admin/gateways").has(t, "1 gateway stands by, and would take over within seconds", "Serves", "Stands by", "[::]:3333", "v1.4.0")
	list = []nodes.Node{serving, old}
	s.get("/admin/gateways").has(t, "No gateway stands by", "Cannot take over", "v1.3.0")
	s.get("/admin").has(t, "three:3333 cannot take over: the program is older than the database", "1 gateway cannot take over")
	list = []nodes.Node{serving, well, gone}
	s.get("/admin/gateways").has(t, "1 gateway stands by", "Gone", "3 min ago", "&lt;b&gt;four")
	s.get("/admin").has(t, "&lt;b&gt;four ended without being stopped, or cannot reach the database", "1 gateway is gone")
	err = errors.New("the server is away")
	s.get("/admin/gateways").has(t, "The gateways")
	s.get("/admin").has(t, "gateways there?")
}
