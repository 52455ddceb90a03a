package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
)

const (
	maxCalls     = 128     // tool calls of one answer
	maxArguments = 4 << 20 // bytes of all calls' arguments together
)

// Calls are the tool calls of one answer; their arguments arrive in fragments.
type Calls struct {
	list []*Call
	sent int // of them, from the first on
	size int // bytes of arguments
}

// A Call is one of them.
type Call struct {
	Index    int // as the provider numbers it; -1 where it does not
	ID, Name string
	args     strings.Builder
}

// Start begins a call.
func (c *Calls) Start(index int, id, name string) (*Call, *Failure) {
	if len(c.list) >= maxCalls {
		return nil, Garbage("more than 128 tool calls")
	}
	call := &Call{Index: index, ID: id, Name: name}
	c.list = append(c.list, call)
	return call, nil
}

// At returns the newest call that the provider numbers so; nil where there is none.
func (c *Calls) At(index int) *Call {
	for _, call := range slices.Backward(c.list) {
		if call.Index == index {
			return call
		}
	}
	return nil
}

// Last returns the call that was begun last; nil before the first.
func (c *Calls) Last() *Call {
	if len(c.list) == 0 {
		return nil
	}
	return c.list[len(c.list)-1]
}

// Grow adds a fragment of its arguments to a call.
func (c *Calls) Grow(call *Call, fragment string) *Failure {
	if c.size += len(fragment); c.size > maxArguments {
		return Garbage("the arguments of tool calls are longer than 4 MiB")
	}
	call.args.WriteString(fragment)
	return nil
}

// whole reports whether the arguments are a JSON object.
func (c *Call) whole() bool {
	args := strings.TrimSpace(c.args.String())
	return args != "" && args[0] == '{' && json.Valid([]byte(args))
}

// block returns the whole call. Arguments that are no JSON object are handed on as
// a JSON string, so that the call can be refused; those of a call that the
// token limit cut, maybe before the first of them, are not handed on at all.
func (c *Call) block(cut bool) (*core.Block, bool) {
	args := strings.TrimSpace(c.args.String())
	switch {
	case args == "" && cut:
		return nil, false
	case args == "":
		args = "{}"
	}
	input := json.RawMessage(args)
	if !json.Valid(input) || input[0] != '{' {
		if cut {
			return nil, false
		}
		input, _ = json.Marshal(args) // a string: cannot fail
	}
	id := c.ID
	if id == "" {
		id = "call_" + uuid.NewString()
	}
	return &core.Block{Type: "tool_use", ID: id, Name: c.Name, Input: input}, c.Name != ""
}
