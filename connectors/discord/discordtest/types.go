package discordtest

import (
	"encoding/json"
	"strconv"
	"time"

	"gatehouse/core"
)

// An ID is a snowflake ([reference] "Snowflakes"): 64 bits, of which the upper
// 42 are milliseconds since 2015, so ids ascend with time. In JSON it is a
// string, as on the platform.
type ID uint64

// String returns the decimal form, as in JSON and in addresses.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Time returns when the id was made, to the millisecond.
func (id ID) Time() time.Time { return time.UnixMilli(int64(id>>22) + epoch).UTC() }

// MarshalText never fails.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(id), 10), nil }

// UnmarshalText fails for anything but decimal digits that fit 64 bits.
func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	*id = v
	return err
}

// ParseID reads the decimal form. core.Invalid for anything else.
func ParseID(text string) (ID, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, core.Errorf(core.Invalid, "%q is no id", text)
	}
	return ID(v), nil
}

// epoch is the first second of 2015 ([reference] "Snowflakes").
const epoch = 1420070400000

// Channel types ([channel] "Channel Types").
const (
	Text          = 0
	DM            = 1
	GroupDM       = 3
	PublicThread  = 11
	PrivateThread = 12
	Forum         = 15
)

// Permissions of a bot in a guild or channel (topics/permissions).
const (
	AddReactions       uint64 = 1 << 6
	ViewChannel        uint64 = 1 << 10
	SendMessages       uint64 = 1 << 11
	ManageMessages     uint64 = 1 << 13
	EmbedLinks         uint64 = 1 << 14
	AttachFiles        uint64 = 1 << 15
	ReadHistory        uint64 = 1 << 16
	MentionEveryone    uint64 = 1 << 17
	ManageThreads      uint64 = 1 << 34
	CreateThreads      uint64 = 1 << 35
	SendInThreads      uint64 = 1 << 38
	DefaultPermissions        = AddReactions | ViewChannel | SendMessages | EmbedLinks | AttachFiles | ReadHistory | CreateThreads | SendInThreads
)

// Intents ([gateway] "List of Intents") that the simulator's events need.
const (
	IntentGuilds          = 1 << 0
	IntentMembers         = 1 << 1
	IntentPresences       = 1 << 8
	IntentMessages        = 1 << 9
	IntentReactions       = 1 << 10
	IntentTyping          = 1 << 11
	IntentDirect          = 1 << 12
	IntentDirectReactions = 1 << 13
	IntentDirectTyping    = 1 << 14
	IntentContent         = 1 << 15
	privileged            = IntentMembers | IntentPresences | IntentContent
	allIntents            = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
	flagContent           = 1 << 19 // resources/application "Application Flags": GATEWAY_MESSAGE_CONTENT_LIMITED
	flagMembers           = 1 << 15 // GATEWAY_GUILD_MEMBERS_LIMITED
	flagPresences         = 1 << 13 // GATEWAY_PRESENCE_LIMITED
)

// Message flags ([message] "Message Flags").
const (
	SuppressEmbeds        = 1 << 2
	HasThread             = 1 << 5
	Ephemeral             = 1 << 6
	Loading               = 1 << 7
	SuppressNotifications = 1 << 12
	componentsV2          = 1 << 15
)

// Message types ([message] "Message Types").
const (
	typeDefault       = 0
	typeThreadCreated = 18
	typeReply         = 19
	typeCommand       = 20
	typeStarter       = 21
)

// An Account is a user or a bot as everyone sees it.
type Account struct {
	ID       ID     `json:"id,omitzero"`
	Name     string `json:"name"`               // what is shown (global_name)
	Username string `json:"username,omitempty"` // unique; made of the name when empty
	Bot      bool   `json:"bot,omitempty"`
}

// A wireUser is a user object ([user] "User Structure").
type wireUser struct {
	ID            ID      `json:"id"`
	Username      string  `json:"username"`
	Discriminator string  `json:"discriminator"`
	GlobalName    *string `json:"global_name"`
	Avatar        *string `json:"avatar"`
	Bot           bool    `json:"bot,omitempty"`
	Flags         int     `json:"public_flags"`
}

func (a Account) wire() wireUser {
	w := wireUser{ID: a.ID, Username: a.Username, Discriminator: "0", Bot: a.Bot}
	if !a.Bot && a.Name != "" {
		w.GlobalName = &a.Name
	}
	return w
}

// A wireMember is a partial guild member (resources/guild).
type wireMember struct {
	User     *wireUser `json:"user,omitempty"`
	Nick     *string   `json:"nick"`
	Roles    []ID      `json:"roles"`
	JoinedAt string    `json:"joined_at"`
	Deaf     bool      `json:"deaf"`
	Mute     bool      `json:"mute"`
	Flags    int       `json:"flags"`
	Perms    string    `json:"permissions,omitempty"`
}

// stamp returns the platform's ISO 8601, with microseconds and an offset.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// A message is what a channel holds. Guarded by Server.mu; its slices are
// replaced, never changed in place. The field names are those of the state file.
type message struct {
	ID          ID
	Type        int
	Author      ID
	Webhook     string `json:",omitempty"` // the name under which a webhook wrote
	Content     string
	At          time.Time
	Edited      time.Time                  `json:",omitzero"`
	Edits       int                        `json:",omitempty"`
	Mentions    []ID                       `json:",omitempty"`
	Everyone    bool                       `json:",omitempty"`
	Flags       int                        `json:",omitempty"`
	Nonce       json.RawMessage            `json:",omitempty"`
	Ref         *reference                 `json:",omitempty"`
	Components  json.RawMessage            `json:",omitempty"`
	Embeds      json.RawMessage            `json:",omitempty"`
	Attachments []Attachment               `json:",omitempty"`
	Reactions   []Reaction                 `json:",omitempty"`
	Source      *source                    `json:",omitempty"` // the interaction it answers
	To          ID                         `json:",omitzero"`  // ephemeral: the only person who sees it
	Extra       map[string]json.RawMessage `json:",omitempty"`
}

// A reference is the message that a reply answers ([message] "Message Reference
// Structure").
type reference struct {
	Type    int `json:"type"`
	Message ID  `json:"message_id,omitzero"`
	Channel ID  `json:"channel_id"`
	Guild   ID  `json:"guild_id,omitzero"`
}

// A source is the interaction that a message answers ([message] "Message
// Interaction Metadata Object").
type source struct {
	ID   ID     `json:"id"`
	Type int    `json:"type"`
	Name string `json:"-"`
	User ID     `json:"-"`
}

// An Attachment is a file in a message. Its bytes are served under URL and
// forgotten at a restart, or when 64 MiB of newer files came.
type Attachment struct {
	ID       ID     `json:"id"`
	Filename string `json:"filename"`
	Size     int    `json:"size"`
	Type     string `json:"content_type,omitempty"`
	URL      string `json:"url"`
	Proxy    string `json:"proxy_url"`
}

// A Reaction is one emoji on a message and who put it there.
type Reaction struct {
	Emoji string `json:"emoji"`
	By    []ID   `json:"by"`
}
