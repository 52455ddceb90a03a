package guard

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
)

func TestFetch_UnnamedAddressAsksInTrustModeAndShowsItWhole(t *testing.T) {
	s := newStation(t)
	p := ownersTurn
	p.Auto = true
	p.Named = func(_ context.Context, u *url.URL) (bool, error) { return u.Hostname() == "named.example", nil }
	ask := func(address string) (core.PermissionRequest, <-chan verdict) {
		out := make(chan verdict, 1)
		go func() {
			d, err := s.guard.Allow(ctx, p, fetchTool, &tool.Call{ID: "call", Input: json.RawMessage(`{}`), Access: tool.Access{URL: address}}, func(e core.Event) { s.events <- e }, func(bool) {})
			out <- verdict{d, err}
		}()
		select {
		case v := <-out:
			out <- v
			return core.PermissionRequest{}, out
		case e := <-s.events:
			r, _ := e.(core.PermissionRequest)
			return r, out
		}
	}
	if r, v := ask("https://named.example/a"); r.ID != "" || (<-v).d.Rule != permission.RuleNamed {
		t.Fatalf("a named address asks: %+v", r)
	}
	long := "https://other.example:8443/take?d=" + strings.Repeat("x", 1500)
	r, v := ask(long)
	if r.Kind != "web" || r.URL != long || len(r.SuggestedGrants) != 1 || r.SuggestedGrants[0].Pattern != "other.example" {
		t.Fatalf("shown %+v", r)
	}
	for _, wider := range []string{"*", "**", "*.example", "example", "other.example/*", "sub.other.example", "named.example"} {
		wantKind(t, s.guard.Grant(ctx, r.ID, wider, owner), core.Invalid)
	}
	s.ok(s.guard.Grant(ctx, r.ID, "other.example", owner))
	s.resolved("granted", "operator via chat")
	if got := <-v; got.err != nil || got.d.Verdict != permission.Allow {
		t.Fatalf("%+v", got)
	}
	if r, v := ask("http://OTHER.example./b"); r.ID != "" || (<-v).d.Rule != permission.RuleGrant {
		t.Errorf("the granted host asks: %+v", r)
	}
	r, v = ask("https://secret.other.example/")
	if r.ID == "" {
		t.Fatal("a host below the granted one is open")
	}
	s.ok(s.guard.Deny(ctx, r.ID, owner))
	if got := <-v; got.d.Verdict != permission.Deny {
		t.Errorf("%+v", got)
	}
	<-s.events
	p.CanAsk = false
	if _, v := ask("https://third.example/"); true {
		if got := <-v; got.d.Rule != permission.RuleNobody || !strings.Contains(got.d.Text, "https://third.example/") {
			t.Errorf("where nobody can answer: %+v", got.d)
		}
	}
}
