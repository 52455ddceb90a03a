package orchestrator

import (
	"context"
	"net/url"

	"gatehouse/core/orchestrator/named"
	"gatehouse/core/tool"
)

// maxNamedBytes bounds the part of a transcript, its newest, that is searched for
// an address that a model wants to fetch.
const maxNamedBytes = 4 << 20

// named reports whether u was named in the conversation: its host by the turn's sender;
// or u itself by the result of an earlier fetch or search. A page names addresses, never
// hosts: otherwise it could make the model send data to a host of its choice.
func (r *run) named(ctx context.Context, u *url.URL) (bool, error) {
	host, err := tool.Host(u)
	if err != nil {
		return false, nil
	}
	for i := range r.t.Rows {
		row := &r.t.Rows[i]
		// What is answered again is in the transcript, with its quotations and files.
		others := row.Again != "" || row.Forwarded()
		if !others && named.ByUser(named.Own(row.Text), host) {
			return true, nil
		}
	}
	for _, s := range r.t.options().Before {
		if s.Role == "user" && named.ByUser(s.Text, host) {
			return true, nil
		}
	}
	if r.found.Names(u, host) {
		return true, nil
	}
	return r.namedBefore(ctx, u, host)
}

// namedBefore returns named for what is in the transcript.
func (r *run) namedBefore(ctx context.Context, u *url.URL, host string) (bool, error) {
	if r.o.Runs == nil {
		return false, nil
	}
	runs, err := r.o.Runs(ctx, r.t.Session.ID)
	if err != nil {
		return false, err
	}
	messages, err := r.conv.Newest(maxNamedBytes)
	if err != nil {
		return false, err
	}
	return named.In(messages, runs, r.t.User, u, host), nil
}
