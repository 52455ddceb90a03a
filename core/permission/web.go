package permission

import (
	"context"
	"fmt"
	"net/url"

	"gatehouse/core"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// kindWeb is the kind of an ask and a grant for pages of one host.
const kindWeb = "web"

// Rules of fetches from the web above trust sandboxed.
const (
	RuleNamed   = "address_named"   // yes: the user or an earlier result named the address
	RuleUnnamed = "address_unnamed" // ask: neither did
)

// A Named function reports whether address was named in the conversation: its
// host by the user whose turn it is, or the address itself by the result of
// an earlier fetch or search. It is called for fetches only.
type Named func(ctx context.Context, address *url.URL) (bool, error)

// fetches reports whether a call fetches an address that has to be named. A
// guest has no files that could leave by it: see Offered.
func fetches(p Profile, t tool.Tool, a tool.Access) bool {
	return t.Kind == tool.Network && p.Trust > core.Sandboxed && (a.URL != "" || t.Name == "WebFetch")
}

// namedAddress asks p.Named about the address of a fetch.
func namedAddress(ctx context.Context, p Profile, a tool.Access) (bool, error) {
	u, err := url.Parse(a.URL)
	if err != nil || p.Named == nil {
		return false, nil
	}
	ok, err := p.Named(ctx, u)
	if err != nil {
		return false, fmt.Errorf("named addresses: %w", err)
	}
	return ok, nil
}

// fetch decides a fetch from the web, also in trust mode: a page or a file may
// have talked the model into it, and what it knows would leave in the address.
func (q question) fetch(d Decision) Decision {
	if !fetches(q.p, q.t, q.a) {
		return d.With(Allow, RuleAlways, "")
	}
	if q.known {
		return d.With(Allow, RuleNamed, "")
	}
	u, err := url.Parse(q.a.URL)
	if err != nil {
		return d.With(MustAsk, RuleUnnamed, q.t.Name+" wants to open an address that cannot be read.")
	}
	host, err := tool.Host(u)
	if err != nil {
		return d.With(MustAsk, RuleUnnamed, q.t.Name+" wants to open an address with an invalid host name.")
	}
	for _, g := range q.granted(kindWeb) {
		if g == host {
			return d.With(Allow, RuleGrant, "")
		}
	}
	d.Suggested = []core.SuggestedGrant{{Scope: "host", Pattern: host, Label: texts.Text("grant_host", texts.With{"Name": host})}}
	return d.With(MustAsk, RuleUnnamed, fmt.Sprintf("%s wants to open %s. Neither the person nor an earlier result of a fetch or search named it.", q.t.Name, shorten(q.a.URL)))
}
