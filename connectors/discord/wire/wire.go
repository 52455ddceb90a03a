// Package wire holds the few fields of Discord's objects that the connector reads or
// writes. JSON names are the platform's
// (https://discord.com/developers/docs/reference).
package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/core"
)

// discordgo's own types refuse a whole message for one component of an unknown kind,
// so they are not used for reading. Parts that may get new forms (components, embeds,
// polls) are only checked for presence.

// A User is a user object.
type User struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
	System     bool   `json:"system"`
}

// A Member is a guild member object.
type Member struct {
	User *User  `json:"user"`
	Nick string `json:"nick"`
}

// A Message is a message object.
type Message struct {
	ID           string                `json:"id"`
	Channel      string                `json:"channel_id"`
	Guild        string                `json:"guild_id"`
	Author       *User                 `json:"author"`
	Member       *Member               `json:"member"`
	Content      string                `json:"content"`
	Timestamp    Stamp                 `json:"timestamp"`
	Edited       Stamp                 `json:"edited_timestamp"`
	Type         int                   `json:"type"`
	Flags        int64                 `json:"flags"`
	Webhook      string                `json:"webhook_id"`
	Mentions     Lenient[[]User]       `json:"mentions"`
	MentionRoles Lenient[[]string]     `json:"mention_roles"`
	Attachments  Lenient[[]Attachment] `json:"attachments"`
	Stickers     Lenient[[]Named]      `json:"sticker_items"`
	Poll         Lenient[*Poll]        `json:"poll"`
	Embeds       Filled                `json:"embeds"`
	Components   Filled                `json:"components"`
	Reference    Lenient[*Reference]   `json:"message_reference"`
	Referenced   Lenient[*Message]     `json:"referenced_message"`
	Snapshots    Lenient[[]Snapshot]   `json:"message_snapshots"`
}

// An Attachment is a file of a message.
type Attachment struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	Type string `json:"content_type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

// A Poll is a poll object.
type Poll struct {
	Question struct {
		Text string `json:"text"`
	} `json:"question"`
	Answers []struct {
		Media struct {
			Text string `json:"text"`
		} `json:"poll_media"`
	} `json:"answers"`
}

// A Named is an object of which only the name is read.
type Named struct {
	Name string `json:"name"`
}

// A Reference names the message that a message replies to or forwards.
type Reference struct {
	Type    int    `json:"type"` // 0 reply, 1 forward
	Message string `json:"message_id"`
}

// A Snapshot is the content of a forwarded message.
type Snapshot struct {
	Message struct {
		Content     string                `json:"content"`
		Attachments Lenient[[]Attachment] `json:"attachments"`
	} `json:"message"`
}

// An Interaction is a used command, pressed button, chosen menu entry, submitted form or
// completion request.
type Interaction struct {
	ID          string   `json:"id"`
	Application string   `json:"application_id"`
	Type        int      `json:"type"` // 2 command, 3 component, 4 autocomplete, 5 modal
	Token       string   `json:"token"`
	Channel     string   `json:"channel_id"`
	Guild       string   `json:"guild_id"`
	Member      *Member  `json:"member"`
	User        *User    `json:"user"`
	Message     *Message `json:"message"`

	Context Lenient[int] `json:"context"` // where it was used; PrivateChannel is not answered
	Data    struct {
		CustomID   string               `json:"custom_id"`
		Values     []string             `json:"values"`
		Components Lenient[[]Submitted] `json:"components"` // of a modal
		Name       string               `json:"name"`       // of a command
		Options    []struct {
			Value   json.RawMessage `json:"value"`
			Focused bool            `json:"focused"`
		} `json:"options"`
	} `json:"data"`
}

// PrivateChannel is the context of an interaction in a group direct message, or in a
// direct message between users (Interaction Context Types).
const PrivateChannel = 2

// A Reaction is an emoji set or removed under a message.
type Reaction struct {
	User    string  `json:"user_id"`
	Channel string  `json:"channel_id"`
	Message string  `json:"message_id"`
	Guild   string  `json:"guild_id"`
	Member  *Member `json:"member"`
	Emoji   struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"emoji"`
}

// A Channel is a channel or thread object.
type Channel struct {
	ID        string            `json:"id"`
	Guild     string            `json:"guild_id"`
	Parent    string            `json:"parent_id"`
	Type      int               `json:"type"`
	Name      string            `json:"name"`
	Applied   Lenient[[]string] `json:"applied_tags"`   // of a post in a forum, by id
	Available Lenient[[]Tag]    `json:"available_tags"` // of a forum
}

// A Tag is a tag of a forum.
type Tag struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// A Role is a role of a guild.
type Role struct {
	ID   string `json:"id"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

// A Guild is a server.
type Guild struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Joined      Stamp              `json:"joined_at"` // when the bot joined
	Unavailable bool               `json:"unavailable"`
	Channels    Lenient[[]Channel] `json:"channels"`
	Threads     Lenient[[]Channel] `json:"threads"`
	Roles       Lenient[[]Role]    `json:"roles"`
}

// A Ready is the first event of a session.
type Ready struct {
	User        User   `json:"user"`
	Session     string `json:"session_id"`
	URL         string `json:"resume_gateway_url"`
	Application struct {
		ID string `json:"id"`
	} `json:"application"`
	Guilds Lenient[[]Guild] `json:"guilds"` // all guilds of the bot, by id; nil: not reported
}

// A Lenient is a field whose value is zero if it cannot be decoded.
type Lenient[T any] = connectors.Lenient[T]

// Filled is true for a list that is not empty.
type Filled bool

// UnmarshalJSON never returns an error.
func (f *Filled) UnmarshalJSON(b []byte) error {
	*f = len(b) > 2 && b[0] == '['
	return nil
}

// A Stamp is a time as the platform writes it, or "" if it is not a string.
type Stamp string

// UnmarshalJSON never returns an error.
func (s *Stamp) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*s = Stamp(text)
	}
	return nil
}

// Time returns s in UTC, or otherwise if s is not a time in RFC 3339.
func (s Stamp) Time(otherwise time.Time) time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return otherwise
	}
	return t.UTC()
}

// Peer returns the user as a sender. System accounts and ids that are not a snowflake
// are marked Shared.
func (u *User) Peer() core.Peer {
	name := u.GlobalName
	if name == "" {
		name = u.Username
	}
	return core.Peer{Platform: Platform, ID: u.ID, Name: core.CleanName(name), Bot: u.Bot, Shared: u.System || !IsID(u.ID) || slices.Contains(serviceAccounts, u.ID)}
}

// serviceAccounts are Discord's own: Clyde, and its announcements.
var serviceAccounts = []string{"1", "643945264868098049"}

// Platform is the platform's name in every address, row and label.
const Platform = "discord"

// IsID reports whether s is a snowflake: the digits of a positive number.
func IsID(s string) bool {
	if s == "" || len(s) > 20 || s[0] == '0' {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// Epoch is the time of snowflake 0, in milliseconds since 1970.
const Epoch = 1420070400000

// Made returns when the object with a snowflake was made (Reference, Snowflakes).
func Made(id string) time.Time {
	n, _ := strconv.ParseUint(id, 10, 64)
	return time.UnixMilli(int64(n>>22) + Epoch)
}

// Channel types (Channel Types).
const (
	typeAnnouncementThread = 10
	typePrivateThread      = 12
	typeForum              = 15
	typeMedia              = 16
)

// IsThread reports whether c is a thread with a known parent channel.
func (c Channel) IsThread() bool {
	return c.Type >= typeAnnouncementThread && c.Type <= typePrivateThread && IsID(c.Parent)
}

// HoldsPosts reports whether c is a forum or media channel.
func (c Channel) HoldsPosts() bool { return c.Type == typeForum || c.Type == typeMedia }

// Who returns the user of an interaction, or nil.
func (i *Interaction) Who() *User {
	if i.Member != nil && i.Member.User != nil {
		return i.Member.User
	}
	return i.User
}

// A Submitted is one component of a submitted form: a label that contains one, or an
// action row of the older form.
type Submitted struct {
	Component  FilledIn   `json:"component"`
	Components []FilledIn `json:"components"`
}

// A FilledIn is a text input with its value.
type FilledIn struct {
	CustomID string `json:"custom_id"`
	Value    string `json:"value"`
}

// A Body is the body of Create Message and Edit Message. discordgo's own type has no
// nonce.
type Body struct {
	Content         string                            `json:"content"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags            `json:"flags,omitempty"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	Components      []Row                             `json:"components"`
}

// A Row is an action row: buttons or one menu.
type Row struct {
	Type       discordgo.ComponentType `json:"type"`
	Components []any                   `json:"components"`
}

// NoMentions prevents every notification of mentioned users.
var NoMentions = &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
