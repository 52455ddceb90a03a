package inbound

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// The types below are the few fields we read of the Bot API's objects; field
// names are the platform's. Ids are int64, so that none loses a digit.

type update struct {
	ID              int64         `json:"update_id"`
	Message         *message      `json:"message"`
	EditedMessage   *message      `json:"edited_message"`
	ChannelPost     *message      `json:"channel_post"`
	EditedPost      *message      `json:"edited_channel_post"`
	CallbackQuery   *callback     `json:"callback_query"`
	MessageReaction *reaction     `json:"message_reaction"`
	MyChatMember    *memberChange `json:"my_chat_member"`
	ChatMember      *memberChange `json:"chat_member"`
}

type user struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
}

type chat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"` // private, group, supergroup, channel
	Title string `json:"title"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	User   *user  `json:"user"`
}

type message struct {
	ID              int64    `json:"message_id"`
	Thread          int64    `json:"message_thread_id"`
	IsTopic         bool     `json:"is_topic_message"`
	From            *user    `json:"from"`
	SenderChat      *chat    `json:"sender_chat"`
	Chat            chat     `json:"chat"`
	Date            int64    `json:"date"`
	EditDate        int64    `json:"edit_date"`
	ReplyTo         *replied `json:"reply_to_message"`
	MediaGroup      string   `json:"media_group_id"`
	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`
	MigrateTo       int64    `json:"migrate_to_chat_id"`
	MigrateFrom     int64    `json:"migrate_from_chat_id"`

	Quote    lenient[*passage]  `json:"quote"`
	External lenient[*external] `json:"external_reply"`
	Forward  passed[origin]     `json:"forward_origin"`
	ViaBot   passed[user]       `json:"via_bot"`
	media
}

// An external is a message of another chat or topic that a message replies to (Bot API,
// ExternalReplyInfo). Of its text there is only the passage in quote.
type external struct {
	Origin origin `json:"origin"`
	media
}

type replied struct {
	ID           int64   `json:"message_id"`
	From         *user   `json:"from"`
	SenderChat   *chat   `json:"sender_chat"`
	Text         string  `json:"text"`
	Caption      string  `json:"caption"`
	TopicCreated present `json:"forum_topic_created"`

	Forward passed[origin] `json:"forward_origin"`
	ViaBot  passed[user]   `json:"via_bot"`
	media
}

type passage struct {
	Text string `json:"text"`
}

// A passed is who made the content of a message, which its sender only passed on: the origin of
// a forwarded one, or the inline bot from which its user chose it. The zero value is that of any
// other message. What cannot be decoded is one too.
type passed[T any] struct {
	is bool
	by T
}

func (p *passed[T]) UnmarshalJSON(b []byte) error {
	if p.is = !bytes.Equal(b, []byte("null")); p.is {
		_ = json.Unmarshal(b, &p.by) // it has no name then
	}
	return nil
}

// passedOn reports whether the sender of m did not write it.
func (m *message) passedOn() bool {
	_, passed := passedBy(m.Forward, m.ViaBot)
	return passed
}

// passedBy returns who made the content of a message that its sender only passed on, if that
// is known, and whether it is one.
func passedBy(forward passed[origin], viaBot passed[user]) (name string, passed bool) {
	switch {
	case forward.is:
		return forward.by.name(), true
	case viaBot.is:
		return viaBot.by.peer().Name, true
	}
	return "", false
}

// An origin has who wrote a forwarded message first (Bot API, MessageOrigin).
type origin struct {
	User       *user  `json:"sender_user"`
	HiddenName string `json:"sender_user_name"`
	SenderChat *chat  `json:"sender_chat"`
	Chat       *chat  `json:"chat"`
}

// name returns who wrote the message first; hostile text.
func (f *origin) name() string {
	switch {
	case f.User != nil:
		return f.User.peer().Name
	case f.SenderChat != nil:
		return core.CleanName(f.SenderChat.Title)
	case f.Chat != nil:
		return core.CleanName(f.Chat.Title)
	}
	return core.CleanName(f.HiddenName)
}

type callback struct {
	ID      string   `json:"id"`
	From    *user    `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type reaction struct {
	Chat  chat  `json:"chat"`
	ID    int64 `json:"message_id"`
	User  *user `json:"user"`
	Actor *chat `json:"actor_chat"`
	Date  int64 `json:"date"`
	New   []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	} `json:"new_reaction"`
}

type memberChange struct {
	Chat chat       `json:"chat"`
	From *user      `json:"from"`
	Date int64      `json:"date"`
	Old  membership `json:"old_chat_member"`
	New  membership `json:"new_chat_member"`
}

type membership struct {
	Status   string `json:"status"`            // creator, administrator, member, restricted, left, kicked
	IsMember bool   `json:"is_member"`         // of someone restricted
	MayWrite bool   `json:"can_send_messages"` // also
}

// in reports whether it is one of someone who is in the chat.
func (m membership) in() bool {
	return m.Status != "" && m.Status != "left" && m.Status != "kicked" && (m.Status != "restricted" || m.IsMember)
}

func (m membership) muted() bool { return m.Status == "restricted" && !m.MayWrite }

// standing returns what a change of the bot's own membership means, or "". For a private
// chat the platform reports only blocking and unblocking (Update, my_chat_member).

func (c *memberChange) standing() core.Standing {
	was, is := c.Old.in(), c.New.in()
	if c.Chat.Type == "private" {
		switch {
		case c.New.Status == "kicked":
			return core.StandingBlocked
		case is && c.Old.Status == "kicked":
			return core.StandingUnblocked
		}
		return ""
	}
	switch {
	case !is:
		return core.StandingRemoved
	case !was:
		return core.StandingAdded
	case c.New.muted() && !c.Old.muted():
		return core.StandingMuted
	case c.New.Status == "administrator" && c.Old.Status != "administrator":
		return core.StandingPromoted
	}
	return ""
}

// Decode converts one update, whatever it is, and returns its number, 0 when none can be
// read. One that cannot be decoded is marked Malformed, also if the decoder panics on it: it
// becomes a dead letter, and the offset moves on.
func (d *Decoder) Decode(raw json.RawMessage, now time.Time) (core.Inbound, int64) {
	in, id, err := d.decode(raw, now)
	if err == nil {
		in.UpdateID, in.Bot = d.key+":"+strconv.FormatInt(id, 10), d.o.Bot
		return in, id
	}
	in = core.Inbound{Kind: core.KindService, At: now, Malformed: "the update cannot be decoded: " + core.CutRunes(err.Error(), 200)}
	in.Bot, in.From.Platform = d.o.Bot, Platform
	if id = lenientID(raw); id > 0 {
		in.UpdateID = d.key + ":" + strconv.FormatInt(id, 10)
	} else {
		sum := sha256.Sum256(raw)
		in.UpdateID = d.key + ":sha256-" + hex.EncodeToString(sum[:8])
	}
	return in, id
}

func (d *Decoder) decode(raw json.RawMessage, now time.Time) (in core.Inbound, id int64, err error) {
	defer connectors.Recover(d.o.Log, d.o.Bot, "decode", &err)
	var u update
	if err = json.Unmarshal(raw, &u); err == nil {
		err = u.check()
	}
	if err != nil {
		return in, 0, err
	}
	return d.read(&u, raw, now), u.ID, nil
}

// check refuses an update without the numbers that everything hangs on.
func (u *update) check() error {
	if u.ID <= 0 {
		return errors.New("no update_id")
	}
	for _, m := range [...]*message{u.Message, u.EditedMessage, u.ChannelPost, u.EditedPost} {
		if m != nil && (m.Chat.ID == 0 || m.ID == 0) {
			return errors.New("a message without chat or number")
		}
	}
	switch {
	case u.CallbackQuery != nil && (u.CallbackQuery.ID == "" || u.CallbackQuery.From == nil):
		return errors.New("a callback query without id or sender")
	case u.MessageReaction != nil && u.MessageReaction.Chat.ID == 0:
		return errors.New("a reaction without chat")
	}
	return nil
}

var idField = core.Pattern(`"update_id"\s*:\s*"?([0-9]{1,19})"?\s*[,}]`)

// lenientID looks for the number of an update that does not decode.
func lenientID(raw []byte) int64 {
	var just struct {
		ID json.Number `json:"update_id"`
	}
	digits := ""
	if json.Unmarshal(raw, &just) == nil {
		digits = just.ID.String()
	} else if m := idField().FindSubmatch(raw); m != nil {
		digits = string(m[1])
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || id <= 0 {
		return 0
	}
	return id
}
