package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

type pairingIn struct {
	Status string `json:"status,omitempty" jsonschema:"pending (the default), approved, denied or expired"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; 20 by default"`
}

type pairingOut struct {
	Notice   string    `json:"notice"`
	Requests []request `json:"requests"`
}

type request struct {
	ID       string    `json:"id"`
	Bot      string    `json:"bot"`
	Name     string    `json:"platform_user_display" jsonschema:"as the stranger chose it"`
	User     string    `json:"platform_user_id"`
	Scope    string    `json:"scope" jsonschema:"dm or group"`
	Place    string    `json:"place,omitempty"`
	Status   string    `json:"status"`
	Revoked  bool      `json:"revoked,omitempty" jsonschema:"denied because the access was revoked; pairing_approve gives it again"`
	Created  time.Time `json:"created_at"`
	Message  string    `json:"first_message" jsonschema:"as the stranger wrote it"`
	Trust    string    `json:"approved_trust_level,omitempty"`
	Resolved string    `json:"resolved_by,omitempty"`
}

func (r *request) clean() {
	r.Name, r.Place, r.Message = core.CleanName(r.Name), core.CleanName(r.Place), line(r.Message, 300)
}

func (s *Server) pairingList(ctx context.Context, _ *call, in pairingIn) (string, pairingOut, error) {
	out := pairingOut{Notice: notice}
	q := url.Values{"status": {cmp.Or(in.Status, "pending")}, "limit": {strconv.Itoa(min(cmp.Or(in.Limit, 20), 100))}}
	if err := s.ask(ctx, question{method: http.MethodGet, path: []string{"api", "bots", "pairing"}, query: q}, &out); err != nil {
		return "", out, err
	}
	if len(out.Requests) == 0 {
		return "There are no such requests.", out, nil
	}
	var b strings.Builder
	for i := range out.Requests {
		r := &out.Requests[i]
		r.clean()
		state := r.Status
		if r.Revoked {
			state = "revoked"
		}
		fmt.Fprintf(&b, "%s  %s  %s (%s) at the bot %s, %s, %s: %s\n", r.ID, r.Created.UTC().Format("2006-01-02 15:04"), r.Name, r.User, r.Bot, r.Scope, state, r.Message)
	}
	return quoted("pairing requests of strangers", b.String()), out, nil
}

type approveIn struct {
	ID      string    `json:"id" jsonschema:"the request, from pairing_list"`
	Trust   string    `json:"trust_level,omitempty" jsonschema:"sandboxed or vault; the bot's preset by default"`
	Expires time.Time `json:"expires_at,omitzero" jsonschema:"when the access ends; never by default"`
}

func (s *Server) pairingApprove(ctx context.Context, _ *call, in approveIn) (string, request, error) {
	body := map[string]any{}
	if in.Trust != "" {
		body["trust_level"] = in.Trust
	}
	if !in.Expires.IsZero() {
		body["expires_at"] = in.Expires
	}
	return s.decide(ctx, in.ID, "approve", body)
}

type denyIn struct {
	ID string `json:"id" jsonschema:"the request, from pairing_list"`
}

func (s *Server) pairingDeny(ctx context.Context, _ *call, in denyIn) (string, request, error) {
	return s.decide(ctx, in.ID, "deny", nil)
}

func (s *Server) decide(ctx context.Context, id, verb string, body map[string]any) (string, request, error) {
	var out request
	q := question{method: http.MethodPost, path: []string{"api", "bots", "pairing", id, verb}}
	if len(body) > 0 {
		q.body = body
	}
	err := s.ask(ctx, q, &out)
	out.clean()
	return fmt.Sprintf("The request of %s is %s.", out.Name, out.Status), out, err
}
