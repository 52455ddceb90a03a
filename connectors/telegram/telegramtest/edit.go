package telegramtest

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// own finds the message of message_id that the bot may edit ([server]
// check_message; [td] can_edit_message: bots edit their own messages only).
func (s *Server) own(c *call, what string) (*chat, *message, *apiError) {
	room, err := s.reach(c, write)
	if err != nil {
		return nil, nil, err
	}
	m := room.index[int(c.p.id("message_id"))]
	if m == nil {
		return nil, nil, bad("message to " + what + " not found")
	}
	if m.wire.From == nil || m.wire.From.ID != c.bot.account.ID || m.service != "" {
		return nil, nil, bad("message can't be " + what + "ed")
	}
	return room, m, nil
}

// notModified is [server] fail_query_with_error, MESSAGE_NOT_MODIFIED.
const notModified = "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// editText implements [api] editMessageText. Without reply_markup the buttons go.
func (s *Server) editText(c *call) (any, *apiError) {
	text, entities, err := content(c.p)
	if err != nil {
		return nil, err
	}
	markup, err := parseMarkup(c.p["reply_markup"])
	if err != nil {
		return nil, err
	}
	if c.p["chat_id"] == "" && c.p.id("message_id") == 0 {
		return nil, bad("message identifier is not specified") // [server] get_inline_message_id
	}
	room, m, err := s.own(c, "edit")
	if err != nil {
		return nil, err
	}
	if m.wire.Text == "" {
		return nil, bad("there is no text in the message to edit") // [td] edit_message_text
	}
	if m.wire.Text == text && sameEntities(m.wire.Entities, entities) && reflect.DeepEqual(m.wire.ReplyMarkup, markup) {
		return nil, bad(notModified)
	}
	if err := s.flood(c.bot, room, c.now); err != nil {
		return nil, err
	}
	m.wire.Text, m.wire.Entities, m.wire.ReplyMarkup = text, entities, markup
	s.edited(room, m)
	return &m.wire, nil
}

func sameEntities(a, b []Entity) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// editMarkup implements [api] editMessageReplyMarkup.
func (s *Server) editMarkup(c *call) (any, *apiError) {
	markup, err := parseMarkup(c.p["reply_markup"])
	if err != nil {
		return nil, err
	}
	room, m, err := s.own(c, "edit")
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(m.wire.ReplyMarkup, markup) {
		return nil, bad(notModified)
	}
	if err := s.flood(c.bot, room, c.now); err != nil {
		return nil, err
	}
	m.wire.ReplyMarkup = markup
	s.edited(room, m)
	return &m.wire, nil
}

// deleteMessage implements [api] deleteMessage: bots delete their own messages (and in
// private chats incoming ones) while they are younger than 48 hours.
func (s *Server) deleteMessage(c *call) (any, *apiError) {
	room, err := s.reach(c, write)
	if err != nil {
		return nil, err
	}
	m := room.index[int(c.p.id("message_id"))]
	if m == nil {
		return nil, bad("message to delete not found")
	}
	mine := m.wire.From != nil && m.wire.From.ID == c.bot.account.ID
	if !mine && room.group() || c.now.Sub(m.shown) >= 2*keepUpdates {
		return nil, bad("message can't be deleted")
	}
	delete(room.index, m.wire.MessageID)
	for i := len(room.messages) - 1; i >= 0; i-- { // recent messages first; at most maxHistory
		if room.messages[i] == m {
			room.messages = append(room.messages[:i], room.messages[i+1:]...)
			break
		}
	}
	s.emit(Change{Kind: ChangeDelete, Conversation: room.at, Thread: m.wire.ThreadID, MessageID: m.wire.MessageID})
	return true, nil
}

// answerCallback implements [api] answerCallbackQuery: once, in time, with at most 200
// characters.
func (s *Server) answerCallback(c *call) (any, *apiError) {
	id, _ := strconv.ParseInt(c.p["callback_query_id"], 10, 64)
	q := c.bot.queries[id]
	if q == nil || c.now.Sub(q.at) > s.opt.QueryTimeout {
		return nil, bad("query is too old and response timeout expired or query ID is invalid") // QUERY_ID_INVALID
	}
	if units(c.p["text"]) > 200 {
		return nil, bad("MESSAGE_TOO_LONG")
	}
	delete(c.bot.queries, id)
	s.emit(Change{Kind: ChangeAnswer, Conversation: q.in, Answer: &Answer{
		Query: strconv.FormatInt(id, 10), User: q.user, Text: c.p["text"], Alert: c.p.boolean("show_alert"),
	}})
	return true, nil
}

// The emoji that [api] ReactionTypeEmoji lists.
const reactionEmoji = " ❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡 "

// setReaction implements [api] setMessageReaction: "Bots can't use paid reactions …
// up to one reaction per message".
func (s *Server) setReaction(c *call) (any, *apiError) {
	var wanted []wireReaction
	if raw := c.p["reaction"]; raw != "" {
		if !json.Valid([]byte(raw)) {
			return nil, bad("can't parse reaction types JSON object") // [server] get_reaction_types
		}
		if json.Unmarshal([]byte(raw), &wanted) != nil {
			return nil, bad("expected an Array of ReactionType")
		}
	}
	room, err := s.reach(c, read)
	if err != nil {
		return nil, err
	}
	m := room.index[int(c.p.id("message_id"))]
	if m == nil {
		return nil, bad("message to react not found")
	}
	emoji := make([]string, len(wanted))
	for i, r := range wanted {
		emoji[i] = strings.TrimSuffix(r.Emoji, "\ufe0f")
		if r.Type != "emoji" || r.Emoji == "" || !strings.Contains(reactionEmoji, " "+emoji[i]+" ") {
			return nil, bad("REACTION_INVALID")
		}
	}
	if len(emoji) > 1 {
		return nil, bad("REACTIONS_TOO_MANY")
	}
	s.react(room, m, c.bot.account.ID, emoji)
	return true, nil
}
