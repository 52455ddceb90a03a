package core

import "strings"

// An Address reports where a message came from and where its reply goes. All
// strings but Bot are opaque: only the connector that made them looks inside.
type Address struct {
	Bot    string `json:"bot"`              // the bot's configured name; APIBot for API turns
	Chat   string `json:"chat"`             // the connector's string for chat and thread together; "chat" in every table
	Thread string `json:"thread,omitempty"` // the thread alone, "" without one
	Place  string `json:"place,omitempty"`  // the group without thread; "" in a direct message
}

// APIBot is the bot name of turns that came over HTTP. Their Chat is the
// session's id and their replies go to the event stream only.
const APIBot = "api"

// ScheduleBot is the bot name of turns that the schedule starts. Their Chat is the session's
// id. No connector and no endpoint makes them.
const ScheduleBot = "schedule"

// PanelSource is where a conversation began that the panel began. Its turns are APIBot's.
const PanelSource = "panel"

// OfSession reports whether bot is no platform's: its chats are sessions, and a reply
// goes to the event stream only.
func OfSession(bot string) bool { return bot == APIBot || bot == ScheduleBot }

// LaneOf returns the key of the lane in which the turns of an address are
// worked off in order: "<bot>|<chat>", or "session:<id>" for a session that is
// in no chat.
func LaneOf(a Address) string {
	if OfSession(a.Bot) {
		return "session:" + a.Chat
	}
	return a.Bot + "|" + a.Chat
}

// Ends of the keys of lanes that pass by a chat's turns: they follow LaneOf.
const (
	ControlLane = "#control" // /stop, answers to questions, buttons
	ShowsLane   = "#shows"   // commands that only show something, which no control turn waits for
)

// LaneEnd returns ControlLane, ShowsLane, or "" for the key of any other lane.
func LaneEnd(lane string) string {
	for _, end := range [...]string{ControlLane, ShowsLane} {
		if strings.HasSuffix(lane, end) {
			return end
		}
	}
	return ""
}

// Group reports whether the address is in a group (place), not a direct message.
func (a Address) Group() bool { return a.Place != "" }

// A Scope is what an access row opens: direct messages or one group.
type Scope string

const (
	ScopeDM    Scope = "dm"
	ScopeGroup Scope = "group"
)

// Scope returns ScopeGroup in a group, else ScopeDM.
func (a Address) Scope() Scope {
	if a.Group() {
		return ScopeGroup
	}
	return ScopeDM
}

// A Peer is who wrote. ID is the platform's immutable id; names are hostile
// text, never an identity.
type Peer struct {
	Platform string `json:"platform"` // the connector's platform, or "api"
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`   // display name, cleaned of control characters by CleanName
	Shared   bool   `json:"shared,omitempty"` // not one user (anonymous admin, channel, webhook): can't be paired
	Bot      bool   `json:"bot,omitempty"`    // another bot
}

// IsZero reports whether no one is named.
func (p Peer) IsZero() bool { return p.ID == "" }
