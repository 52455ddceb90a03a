package telegramtest

import (
	"cmp"
	"slices"
	"strings"
)

// An access is what a method wants to do in a chat ([server] AccessRights).
type access int

const (
	read access = iota
	write
)

// reach finds the chat of chat_id and checks that the bot may do what it wants
// there ([server] check_chat, check_chat_access).
func (s *Server) reach(c *call, want access) (*chat, *apiError) {
	raw := strings.TrimSpace(c.p["chat_id"])
	if raw == "" {
		return nil, bad("chat_id is empty")
	}
	id := c.p.id("chat_id")
	if id > 0 {
		return s.reachPerson(c, id, want)
	}
	room := s.chats[Conversation{Chat: id}]
	if room == nil || room.members[c.bot.account.ID] == "" {
		return nil, bad("chat not found")
	}
	if room.migrated != 0 && want == write {
		e := bad("group chat was upgraded to a supergroup chat")
		e.migrateTo = room.migrated
		return nil, e
	}
	switch status := room.members[c.bot.account.ID]; {
	case status == "kicked" && (want == write || room.kind == "supergroup"):
		return nil, denied("bot was kicked from the " + room.kind + " chat")
	case status == "left" && (want == write || room.kind == "supergroup"):
		return nil, denied("bot is not a member of the " + room.kind + " chat")
	}
	return room, nil
}

// reachPerson returns reach for a private chat. A user that the bot never met is
// no chat; one it only knows from a group can't be written to first ([td]
// process_send_message_fail_error; [features]: a bot can't start a conversation).
func (s *Server) reachPerson(c *call, id int64, want access) (*chat, *apiError) {
	private := s.chats[Conversation{c.bot.account.ID, id}]
	switch {
	case id == c.bot.account.ID || s.byBot[id] != nil:
		return nil, denied("bot can't send messages to bots") // USER_IS_BOT
	case private == nil && (s.users[id] == nil || !s.acquainted(c.bot, id)):
		return nil, bad("chat not found")
	case private == nil || !private.started && !private.blocked:
		return nil, denied("bot can't initiate conversation with a user")
	case private.blocked && want == write:
		return nil, denied("bot was blocked by the user") // USER_IS_BLOCKED
	}
	return private, nil
}

// acquainted reports whether b shares a group with a user.
func (s *Server) acquainted(b *bot, id int64) bool {
	for _, c := range s.chats { // only for a chat that does not exist: not a path of load
		if c.group() && c.members[id] != "" && present(c.members[b.account.ID]) {
			return true
		}
	}
	return false
}

// topic checks message_thread_id ([server] check_message_topic): in a forum it
// must be a topic, and not General; in a private chat without topics there is
// none; in other groups it is ignored.
func topic(c *chat, p params) (int, *apiError) {
	thread := int(max(p.id("message_thread_id"), 0))
	if thread == 0 {
		return 0, nil
	}
	if c.forum && c.topics[thread] == "" || !c.group() {
		return 0, bad("message thread not found")
	}
	if !c.forum {
		return 0, nil
	}
	return thread, nil
}

// content reads text, parse_mode and entities for sendMessage and
// editMessageText ([server] get_input_message_text, [td] MessageContent.cpp).
func content(p params) (string, []Entity, *apiError) {
	if p["text"] == "" {
		return "", nil, bad("message text is empty")
	}
	text, entities, err := formatted(p["text"], p["parse_mode"], p["entities"])
	switch {
	case err != nil:
		return "", nil, err
	case strings.TrimSpace(text) == "":
		return "", nil, bad("text must be non-empty") // [td] fix_formatted_text
	case units(text) > maxText:
		return "", nil, bad("message is too long")
	}
	return text, entities, nil
}

// sendMessage implements [api] sendMessage. The order of the checks is the server's:
// the parameters, the chat, the topic, the answered message, the pace.
func (s *Server) sendMessage(c *call) (any, *apiError) {
	text, entities, err := content(c.p)
	if err != nil {
		return nil, err
	}
	return s.post(c, wireMessage{Text: text, Entities: entities}, nil)
}

// post returns what sendMessage and uploads do with a message whose content is fine:
// the other parameters, the chat, the topic, the answered message, the pace, and
// before it is shown last, where not nil.
func (s *Server) post(c *call, w wireMessage, last func(*wireMessage) *apiError) (any, *apiError) {
	to, err := parseReply(c.p)
	if err != nil {
		return nil, err
	}
	markup, err := parseMarkup(c.p["reply_markup"])
	if err != nil {
		return nil, err
	}
	room, err := s.reach(c, write)
	if err != nil {
		return nil, err
	}
	thread, err := topic(room, c.p)
	if err != nil {
		return nil, err
	}
	from := c.bot.account
	w.From, w.Chat, w.Date, w.ReplyMarkup = &from, s.wireChat(room), c.now.Unix(), markup
	m := &message{shown: c.now, wire: w}
	if err := s.answerTo(room, &m.wire, thread, to); err != nil {
		return nil, err
	}
	if err := s.flood(c.bot, room, c.now); err != nil {
		return nil, err
	}
	if last != nil {
		if err := last(&m.wire); err != nil {
			return nil, err
		}
	}
	if room.moderated { // [server] Client.cpp, delete_message: "sent message was deleted before added to the chat"
		return nil, &apiError{code: 500, text: "Internal Server Error: sent message was immediately deleted and can't be returned"}
	}
	m.shown = s.clock.Now()
	s.settle(room, c.bot, m.wire.ThreadID)
	room.lastBot = c.bot.account.ID
	s.add(room, m)
	return &m.wire, nil
}

// answerTo sets the topic and the message answered ([server] check_reply_parameters).
func (s *Server) answerTo(room *chat, w *wireMessage, thread int, to reply) *apiError {
	if thread != 0 {
		w.ThreadID, w.IsTopic = thread, true
		w.ReplyTo = answered(room.index[thread])
	}
	if to.message <= 0 {
		return nil
	}
	other := room.index[to.message]
	if other == nil {
		if to.lenient {
			return nil
		}
		return bad("message to be replied not found")
	}
	w.ReplyTo = answered(other)
	if to.quote != "" {
		whole := cmp.Or(other.wire.Text, other.wire.Caption)
		i := strings.Index(whole, to.quote)
		if i < 0 {
			return bad("QUOTE_TEXT_INVALID") // [api] ReplyParameters.quote: "must be an exact substring"
		}
		w.Quote = &wireQuote{Text: to.quote, Position: units(whole[:i]), IsManual: true}
	}
	if other.wire.ThreadID != 0 && room.forum && thread == 0 {
		w.ThreadID, w.IsTopic = other.wire.ThreadID, true // an answer lies where the answered message lies
	}
	return nil
}

// settle ends what a message of the bot ends: its typing status, and in its
// thread its drafts ([td] corefork.telegram.org/api/bots/ai: a live draft goes
// "when receiving a normal message within the same chat/bot forum topic").
func (s *Server) settle(room *chat, b *bot, thread int) {
	if _, on := room.typing[b.account.ID]; on {
		delete(room.typing, b.account.ID)
		s.emit(Change{Kind: ChangeTyping, Conversation: room.at, Thread: thread, Typing: &Typing{Bot: b.account.ID}})
	}
	n := len(room.drafts)
	room.drafts = slices.DeleteFunc(room.drafts, func(d *draft) bool { return d.thread == thread })
	if len(room.drafts) != n {
		s.emit(Change{Kind: ChangeDraft, Conversation: room.at, Thread: thread})
	}
}

// actions are the values of sendChatAction ([server] get_chat_action).
var actions = []string{"cancel", "typing", "record_video", "upload_video", "record_audio", "record_voice", "upload_audio", "upload_voice",
	"upload_photo", "upload_document", "choose_sticker", "pick_up_location", "find_location", "record_video_note", "upload_video_note"}

// chatAction implements [api] sendChatAction. Unlike sendMessage it takes the General
// topic's id in a forum ([server] process_send_chat_action_query passes it on).
func (s *Server) chatAction(c *call) (any, *apiError) {
	action := strings.ToLower(c.p["action"])
	if !slices.Contains(actions, action) {
		return nil, bad("wrong parameter action in request")
	}
	room, err := s.reach(c, write)
	if err != nil {
		return nil, err
	}
	thread := int(max(c.p.id("message_thread_id"), 0))
	if !room.forum || thread != generalTopic {
		if thread, err = topic(room, c.p); err != nil {
			return nil, err
		}
	}
	t := Typing{Bot: c.bot.account.ID, Action: action, Thread: thread, Until: c.now.Add(typingLife)}
	if action == "cancel" {
		t = Typing{Bot: t.Bot}
		delete(room.typing, t.Bot)
	} else {
		if room.typing == nil {
			room.typing = map[int64]Typing{}
		}
		room.typing[t.Bot] = t
	}
	s.emit(Change{Kind: ChangeTyping, Conversation: room.at, Thread: thread, Typing: &t})
	return true, nil
}

// sendDraft implements [api] sendMessageDraft: a partial message in a private chat,
// 0-4096 characters (an empty one is a placeholder), under a draft_id that is
// not zero, gone 30 seconds after its last change. In a group the platform
// answers TEXTDRAFT_PEER_INVALID. The text for a zero draft_id is our guess.
func (s *Server) sendDraft(c *call) (any, *apiError) {
	text, entities, err := formatted(c.p["text"], c.p["parse_mode"], c.p["entities"])
	if err != nil {
		return nil, err
	}
	room, err := s.reach(c, write)
	if err != nil {
		return nil, err
	}
	id := c.p.id("draft_id")
	switch {
	case room.group():
		return nil, bad("TEXTDRAFT_PEER_INVALID")
	case id == 0:
		return nil, bad("RANDOM_ID_EMPTY")
	case units(text) > maxText:
		return nil, bad("MESSAGE_TOO_LONG")
	}
	thread, err := topic(room, c.p)
	if err != nil {
		return nil, err
	}
	if err := s.floodDraft(room, c.now); err != nil {
		return nil, err
	}
	s.draft(room, &draft{id: id, thread: thread, text: text, entities: entities, at: s.clock.Now()})
	return true, nil
}

func (s *Server) draft(room *chat, d *draft) {
	room.drafts = slices.DeleteFunc(room.drafts, func(o *draft) bool {
		return o.id == d.id && o.thread == d.thread || d.at.Sub(o.at) >= draftLife
	})
	if len(room.drafts) >= maxDrafts {
		room.drafts = room.drafts[1:]
	}
	room.drafts = append(room.drafts, d)
	view := d.view()
	s.emit(Change{Kind: ChangeDraft, Conversation: room.at, Thread: d.thread, Draft: &view, At: d.at})
}
