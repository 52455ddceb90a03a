package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// callerKey is where a request of the protocol has its caller.
const callerKey = "caller"

// A caller is who made the HTTP request that a message came with.
type caller struct {
	auth.Principal
	request context.Context // of that request
	answer  *answer
}

type answerKey struct{}

// callerOf returns the caller of req, which is core.Denied without one.
func callerOf(req sdk.Request) (*caller, error) {
	if x := req.GetExtra(); x != nil && x.TokenInfo != nil {
		if c, ok := x.TokenInfo.Extra[callerKey].(*caller); ok {
			return c, nil
		}
	}
	return nil, core.Errorf(core.Denied, "send an API key")
}

// name returns what limits count c by.
func (c *caller) name() string { return c.Principal.Caller() }

// hasAny reports whether c has one of the scopes.
func (c *caller) hasAny(scopes []string) bool {
	for _, s := range scopes {
		if c.Has(s) {
			return true
		}
	}
	return false
}

// context returns ctx, which is of a call, with the values of c's request. It also ends when
// the server cuts off what is left at its stop; call cancel.
func (c *caller) context(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	forget := context.AfterFunc(web.Lasting(c.request), func() { end(web.ErrStopping) })
	return joined{ctx, c.request}, func() {
		forget()
		end(nil)
	}
}

// A joined context ends with one context and has the values of two.
type joined struct {
	context.Context
	values context.Context
}

func (j joined) Value(key any) any {
	if v := j.values.Value(key); v != nil {
		return v
	}
	return j.Context.Value(key)
}
