package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// middleware bounds and records what a client asks for, and shows it only what its key may
// use.
func (s *Server) middleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() { // outside of the server's handlers, a panic would end the program
			if p := recover(); p != nil {
				s.o.Log.Error("panic in a call over MCP", "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, fault(fmt.Errorf("panic: %v", p))
			}
		}()
		c, err := callerOf(req)
		if err != nil {
			return nil, fault(err)
		}
		switch method {
		case "initialize":
			return s.begin(ctx, c, method, req, next)
		case "tools/list":
			return s.listTools(ctx, c, method, req, next)
		case "tools/call", "resources/read", "resources/list", "prompts/get":
			return s.call(ctx, c, method, req, next)
		case "prompts/list":
			return s.listPrompts(c), nil
		}
		return next(ctx, method, req)
	}
}

// begin begins a session.
func (s *Server) begin(ctx context.Context, c *caller, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	if session, ok := req.GetSession().(*sdk.ServerSession); ok {
		if err := s.sessions.begin(c.name(), session); err != nil {
			return nil, fault(err)
		}
	}
	return next(ctx, method, req)
}

// call has next answer a call that is within the limits, after it was recorded.
func (s *Server) call(ctx context.Context, c *caller, method string, req sdk.Request, next sdk.MethodHandler) (result sdk.Result, err error) {
	what := s.label(method, req)
	defer func() {
		r, ok := result.(*sdk.CallToolResult)
		s.metrics.called(what, err != nil || ok && r.IsError)
	}()
	release, ok := s.slots.Take(c.name())
	if !ok {
		return s.refused(method, core.Errorf(core.Busy, "at most %d calls of one key run at once: wait for one to end", MaxCalls))
	}
	defer release()
	if session, ok := req.GetSession().(*sdk.ServerSession); ok {
		in, done := s.sessions.use(ctx, c.name(), session)
		defer done()
		ctx = in
	}
	if err := s.o.Audit.Called(ctx, c.Actor(), what, c.Key); err != nil {
		return s.refused(method, fmt.Errorf("audit: %w", err))
	}
	ctx, cancel := c.context(ctx)
	defer cancel()
	switch method {
	case "prompts/get":
		return s.prompt(c, req)
	case "resources/list":
		return s.listSessions(ctx, c, req)
	}
	return next(ctx, method, req)
}

// label returns what a call is of, for metrics and the audit log: a tool that there is, or
// the method.
func (s *Server) label(method string, req sdk.Request) string {
	if r, ok := req.(*sdk.CallToolRequest); ok {
		if _, known := s.scopes[r.Params.Name]; known {
			return r.Params.Name
		}
		return "unknown"
	}
	return method
}

// refused returns err as the result of a tool, or as the error of another method.
func (s *Server) refused(method string, err error) (sdk.Result, error) {
	if method != "tools/call" {
		return nil, s.shown(err)
	}
	var r sdk.CallToolResult
	r.SetError(errors.New(core.TextOf(s.logged(err))))
	return &r, nil
}

// logged logs err if it is a fault of the program, and returns it.
func (s *Server) logged(err error) error {
	if core.KindOf(err) == core.Other && !errors.Is(err, context.Canceled) {
		s.o.Log.Error("a call over MCP failed", "err", err)
	}
	return err
}

// shown returns the error of a method that is no tool as clients read it.
func (s *Server) shown(err error) error { return fault(s.logged(err)) }

// fault returns err as an error of the protocol.
func fault(err error) error {
	code := int64(jsonrpc.CodeInvalidParams)
	if core.KindOf(err) == core.Other {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: core.TextOf(err)}
}

// listTools lists the tools that the caller's key may call.
func (s *Server) listTools(ctx context.Context, c *caller, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	result, err := next(ctx, method, req)
	all, ok := result.(*sdk.ListToolsResult)
	if err != nil || !ok {
		return result, err
	}
	mine := *all
	mine.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(t *sdk.Tool) bool { return !c.hasAny(s.scopes[t.Name]) })
	for i, t := range mine.Tools {
		if t.Name == askAgent {
			mine.Tools[i] = withAgents(s.agents(c), t)
		}
	}
	return &mine, nil
}

// maxNamed bounds the agents that a description names.
const maxNamed = 40

// withAgents returns t with the names of the agents in its description.
func withAgents(list []Agent, t *sdk.Tool) *sdk.Tool {
	var names []string
	for _, a := range list[:min(len(list), maxNamed)] {
		names = append(names, core.CleanName(a.Name))
	}
	if names == nil {
		return t
	}
	with := *t
	with.Description += " Agents: " + strings.Join(names, ", ") + "."
	return &with
}

// missing returns the error of a caller without any of scopes; nil of one that has one.
func (c *caller) missing(scopes []string) error {
	if c.hasAny(scopes) {
		return nil
	}
	has := strings.Join(c.Scopes, ", ")
	if has == "" {
		has = "none"
	}
	return core.Errorf(core.Denied, "this needs a key with the scope %s; this key has: %s", strings.Join(scopes, " or "), has)
}

// reading are the scopes that see conversations and files.
func reading() []string { return []string{auth.ScopeRead, auth.ScopeChat} }
