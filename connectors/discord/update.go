package discord

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// The types below are the few fields we read of the platform's objects; field
// names are the platform's. discordgo's own types refuse a whole message for
// one component of a kind that they don't know, so they are not used here.
// Parts that may grow new forms (components, embeds, polls) are looked at by
// presence alone.

type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
	System     bool   `json:"system"`
}

type member struct {
	User *user  `json:"user"`
	Nick string `json:"nick"`
}

type message struct {
	ID           string                `json:"id"`
	Channel      string                `json:"channel_id"`
	Guild        string                `json:"guild_id"`
	Author       *user                 `json:"author"`
	Member       *member               `json:"member"`
	Content      string                `json:"content"`
	Timestamp    stamp                 `json:"timestamp"`
	Edited       stamp                 `json:"edited_timestamp"`
	Type         int                   `json:"type"`
	Flags        int64                 `json:"flags"`
	Webhook      string                `json:"webhook_id"`
	Mentions     lenient[[]user]       `json:"mentions"`
	MentionRoles lenient[[]string]     `json:"mention_roles"`
	Attachments  lenient[[]attachment] `json:"attachments"`
	Stickers     lenient[[]named]      `json:"sticker_items"`
	Poll         lenient[*poll]        `json:"poll"`
	Embeds       filled                `json:"embeds"`
	Components   filled                `json:"components"`
	Reference    lenient[*reference]   `json:"message_reference"`
	Referenced   lenient[*message]     `json:"referenced_message"`
	Snapshots    lenient[[]snapshot]   `json:"message_snapshots"`
}

type attachment struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	Type string `json:"content_type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

type poll struct {
	Question struct {
		Text string `json:"text"`
	} `json:"question"`
	Answers []struct {
		Media struct {
			Text string `json:"text"`
		} `json:"poll_media"`
	} `json:"answers"`
}

type named struct {
	Name string `json:"name"`
}

type reference struct {
	Type    int    `json:"type"` // 0 reply, 1 forward
	Message string `json:"message_id"`
}

type snapshot struct {
	Message struct {
		Content     string                `json:"content"`
		Attachments lenient[[]attachment] `json:"attachments"`
	} `json:"message"`
}

type interaction struct {
	ID          string   `json:"id"`
	Application string   `json:"application_id"`
	Type        int      `json:"type"` // 2 command, 3 component, 4 autocomplete, 5 modal
	Token       string   `json:"token"`
	Channel     string   `json:"channel_id"`
	Guild       string   `json:"guild_id"`
	Member      *member  `json:"member"`
	User        *user    `json:"user"`
	Message     *message `json:"message"`
	Data        struct {
		CustomID   string               `json:"custom_id"`
		Values     []string             `json:"values"`
		Components lenient[[]submitted] `json:"components"` // of a modal
		Name       string               `json:"name"`       // of a command
		Options    []struct {
			Value   json.RawMessage `json:"value"`
			Focused bool            `json:"focused"`
		} `json:"options"`
	} `json:"data"`
}

type reaction struct {
	User    string  `json:"user_id"`
	Channel string  `json:"channel_id"`
	Message string  `json:"message_id"`
	Guild   string  `json:"guild_id"`
	Member  *member `json:"member"`
	Emoji   struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"emoji"`
}

type channel struct {
	ID        string            `json:"id"`
	Guild     string            `json:"guild_id"`
	Parent    string            `json:"parent_id"`
	Type      int               `json:"type"`
	Name      string            `json:"name"`
	Applied   lenient[[]string] `json:"applied_tags"`   // of a post in a forum, by id
	Available lenient[[]tag]    `json:"available_tags"` // of a forum
}

type tag struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type role struct {
	ID   string `json:"id"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

type guild struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Joined      stamp              `json:"joined_at"` // by the bot
	Unavailable bool               `json:"unavailable"`
	Channels    lenient[[]channel] `json:"channels"`
	Threads     lenient[[]channel] `json:"threads"`
	Roles       lenient[[]role]    `json:"roles"`
}

type ready struct {
	User        user   `json:"user"`
	Session     string `json:"session_id"`
	URL         string `json:"resume_gateway_url"`
	Application struct {
		ID string `json:"id"`
	} `json:"application"`
	Guilds lenient[[]guild] `json:"guilds"` // all that the bot is in, by id; nil: it does not say
}

type lenient[T any] = connectors.Lenient[T]

// filled is true for a list with something in it.
type filled bool

func (f *filled) UnmarshalJSON(b []byte) error {
	*f = len(b) > 2 && b[0] == '['
	return nil
}

// A stamp is a time as the platform writes it; what is none is "".
type stamp string

func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*s = stamp(text)
	}
	return nil
}

func (s stamp) time(otherwise time.Time) time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return otherwise
	}
	return t.UTC()
}

func (u *user) peer() core.Peer {
	name := u.GlobalName
	if name == "" {
		name = u.Username
	}
	return core.Peer{Platform: Platform, ID: u.ID, Name: core.CleanName(name), Bot: u.Bot, Shared: u.System || !isID(u.ID) || slices.Contains(serviceAccounts, u.ID)}
}

// serviceAccounts are Discord's own: Clyde, and its messages to all.
var serviceAccounts = []string{"1", "643945264868098049"}
