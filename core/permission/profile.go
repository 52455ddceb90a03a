package permission

import (
	"encoding/json"
	"strings"
	"time"

	"gatehouse/core"
)

// A Profile is what permissions a turn has; one per run.
type Profile struct {
	User       int64
	Any        bool // of Explain: it stands for any guest, not for the one of the number User
	Trust      core.Trust
	Session    string
	Owner      bool       // the sender is owner or admin
	Auto       bool       // trust mode: what is neither forbidden nor hidden goes on unasked
	Configured Configured // the session's; ParseConfigured
	CanAsk     bool       // someone can answer
	GuestRead  []string   // globs that sandboxed users may read: GUEST_READ and the session's
	Bot, Chat  string     // where the turn is, for showing asks
	Run        string
	Named      Named     // which addresses of the web were named in the conversation; nil: none
	Since      time.Time // tool grants count from then on; the zero time is always. A raise begins without any
}

// Configured is what a session may do without a question, as in its metadata:
// {"read": [globs], "write": [globs], "bash": false, true or [globs of commands]}.
type Configured struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
	Bash  Commands `json:"bash"`
}

// Commands are what a shell may run unasked: all, or what a pattern matches.
// In JSON it is a boolean or a list.
type Commands struct {
	All      bool
	Patterns []string
}

// UnmarshalJSON takes true, false, null or a list of patterns.
func (c *Commands) UnmarshalJSON(b []byte) error {
	*c = Commands{}
	switch s := strings.TrimSpace(string(b)); {
	case s == "null" || s == "false":
		return nil
	case s == "true":
		c.All = true
		return nil
	case strings.HasPrefix(s, "["):
		return json.Unmarshal(b, &c.Patterns)
	}
	return core.Errorf(core.Invalid, "bash is neither true, false nor a list of commands")
}

// MarshalJSON returns the form that UnmarshalJSON reads.
func (c Commands) MarshalJSON() ([]byte, error) {
	if c.All || len(c.Patterns) == 0 {
		return json.Marshal(c.All)
	}
	return json.Marshal(c.Patterns)
}

// ForOwner returns the permissions of an owner's session that configures none.
func ForOwner() Configured { return Configured{Write: []string{"Chat/artifacts/*"}} }

// ForGuest returns those of a guest's session: the guest's own directory.
func ForGuest(user int64) Configured {
	if user <= 0 {
		return Configured{}
	}
	own := []string{core.GuestDir(user) + "/**"}
	return Configured{Read: own, Write: own}
}

// ParseConfigured reads "permissions" in a session's metadata. What it does not
// say is as in defaults; what cannot be read opens nothing.
func ParseConfigured(metadata json.RawMessage, defaults Configured) Configured {
	if len(metadata) == 0 {
		return defaults
	}
	var m struct {
		Permissions *struct {
			Read, Write *[]string
			Bash        *Commands
		} `json:"permissions"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return Configured{}
	}
	out := defaults
	if p := m.Permissions; p != nil {
		if p.Read != nil {
			out.Read = *p.Read
		}
		if p.Write != nil {
			out.Write = *p.Write
		}
		if p.Bash != nil {
			out.Bash = *p.Bash
		}
	}
	return out
}
