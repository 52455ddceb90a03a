package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/erasure"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing/codes"
	"gatehouse/web"
	"gatehouse/web/api"
)

// The other commands talk to the running server over a Unix socket in the
// runtime directory, which only the gateway's own user may enter. Every request is
// audited.

// listenSocket binds the socket; an old one is stale, since the vault's lock is ours.
func (a *app) listenSocket() (net.Listener, error) {
	path := filepath.Join(a.runtime, "socket")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}

// maxOrder bounds an order: the longest text to send, as JSON may write it, and
// the files that go along.
const maxOrder = 1<<20 + api.MaxAttached/3*4

// An order is what a command asks of the server; unused fields stay empty.
type order struct {
	Ref       string     `json:"ref,omitempty"`
	Bot       string     `json:"bot,omitempty"`
	User      string     `json:"user,omitempty"`
	Status    string     `json:"status,omitempty"`
	Trust     core.Trust `json:"trust_level,omitempty"`
	ExpiresAt time.Time  `json:"expires_at,omitzero"`
	Replace   bool       `json:"replace,omitempty"`

	Key    *keyOrder          `json:"key,omitempty"`
	Audit  *store.AuditFilter `json:"audit,omitempty"`
	Send   *api.Unasked       `json:"send,omitempty"`  // its ID is the client's own name for it
	Files  []sentFile         `json:"files,omitempty"` // that go along with Send
	Invite *codes.Invitation  `json:"invite,omitempty"`
}

// A result is what the server answers.
type result struct {
	Requests  []core.PairingRequest `json:"requests,omitempty"`
	Request   *core.PairingRequest  `json:"request,omitempty"`
	Revoked   int                   `json:"revoked,omitempty"`
	Code      string                `json:"code,omitempty"`
	ExpiresAt time.Time             `json:"expires_at,omitzero"`
	Kind      core.Kind             `json:"kind,omitempty"`
	Error     string                `json:"error,omitempty"`
	Text      string                `json:"text,omitempty"`

	Keys      *keyResult         `json:"keys,omitempty"`
	Log       *logPage           `json:"log,omitempty"`
	Posted    *api.Posted        `json:"posted,omitempty"`
	Invites   []codes.Invitation `json:"invites,omitempty"`
	Pending   bool               `json:"pending,omitempty"` // a long command is still running; Text is its progress
	Forgotten *erasure.Forgotten `json:"forgotten,omitempty"`
	Reindexed *session.Reindexed `json:"reindexed,omitempty"`
	Person    *erasure.Export    `json:"person,omitempty"`
	Standing  *live.Report       `json:"standing,omitempty"`
}

var cli = core.Actor{User: core.Operator, Via: "cli"}

// orders returns the verbs of the command line, the same for a running server and
// for files opened when no one serves.
func (a *app) orders() map[string]func(context.Context, order) (result, error) {
	one := func(r core.PairingRequest, err error) (result, error) { return result{Request: &r}, err }
	all := map[string]func(context.Context, order) (result, error){
		"ping": func(context.Context, order) (result, error) { return result{Text: a.limits}, nil },
		"claim": func(ctx context.Context, o order) (result, error) {
			code, expires, err := a.pairing.Codes.NewClaim(ctx, o.Replace)
			return result{Code: code, ExpiresAt: expires}, err
		},
		"pairing/list": func(ctx context.Context, o order) (result, error) {
			rs, err := a.pairing.Requests(ctx, o.Status, 1000)
			return result{Requests: rs}, err
		},
		"pairing/approve": func(ctx context.Context, o order) (result, error) {
			return one(a.pairing.Approve(ctx, o.Ref, core.Approval{Trust: o.Trust, ExpiresAt: o.ExpiresAt}, cli))
		},
		"pairing/deny":  func(ctx context.Context, o order) (result, error) { return one(a.pairing.Deny(ctx, o.Ref, cli)) },
		"pairing/block": func(ctx context.Context, o order) (result, error) { return one(a.pairing.Block(ctx, o.Ref, cli)) },
		"pairing/revoke": func(ctx context.Context, o order) (result, error) {
			n, err := a.pairing.People.Revoke(ctx, o.Bot, o.User, cli)
			return result{Revoked: n}, err
		},
		"export":        a.export,
		"export/person": a.exportPerson,
		"explain":       a.explain,
		"settings":      a.reportSettings,
		"reindex":       a.reindex,
		"audit":         a.auditOrder,
	}
	maps.Copy(all, a.keyOrders())
	maps.Copy(all, a.forgetOrders())
	maps.Copy(all, a.sendOrders())
	a.inviteOrders(all)
	return all
}

func (a *app) socketHandler() http.Handler {
	mux := http.NewServeMux()
	for name, f := range a.orders() {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			var o order
			err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&o)
			if err != nil {
				err = core.Errorf(core.Invalid, "the order could not be read")
			} else if err = a.auditSocket(r.Context(), name); err == nil {
				var res result
				if res, err = f(r.Context(), o); err == nil {
					_ = web.WriteJSON(w, http.StatusOK, res)
					return
				}
			}
			if core.KindOf(err) == core.Other {
				a.log.Error("socket", "order", name, "err", err)
			}
			_ = web.WriteJSON(w, http.StatusOK, result{Kind: core.KindOf(err), Error: core.TextOf(err)})
		})
	}
	return mux
}

func (a *app) auditSocket(ctx context.Context, name string) error {
	return a.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, cli, "socket.request", name, nil) })
}

// errNobodyServes means that no server listens on the vault's socket.
var errNobodyServes = errors.New("no gateway serves this vault")

// askServer sends an order to the running server.
func askServer(ctx context.Context, dir, name string, o order) (result, error) {
	if err := checkRuntimeDir(dir); errors.Is(err, os.ErrNotExist) {
		return result{}, errNobodyServes
	} else if err != nil { // anyone who made it would be asked
		return result{}, err
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "socket"))
		},
	}}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(o)
	if err != nil {
		return result{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, (&url.URL{Scheme: "http", Host: "gatehouse", Path: "/" + name}).String(), bytes.NewReader(body))
	if err != nil {
		return result{}, err
	}
	resp, err := client.Do(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return result{}, errNobodyServes
	}
	if err != nil {
		return result{}, fmt.Errorf("ask the running gateway: %w", err)
	}
	defer resp.Body.Close()
	var res result
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&res); err != nil {
		return result{}, fmt.Errorf("ask the running gateway: %w", err)
	}
	if res.Error != "" {
		return result{}, &core.Error{Kind: res.Kind, Text: res.Error}
	}
	return res, nil
}
