package entry

import (
	"time"
)

// A State is how the gateway finds a server.
type State struct {
	Name  string    `json:"name"`
	State string    `json:"state"` // as mcp.Health has it
	Since time.Time `json:"since,omitzero"`
	Next  time.Time `json:"next,omitzero"` // of a failing one; absent: being tried
	Error string    `json:"error,omitempty"`
}
