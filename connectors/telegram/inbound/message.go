package inbound

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"gatehouse/connectors"
	"gatehouse/core"
)

// inbound translates a decoded update. Every kind gives exactly one Inbound.
func (d *Decoder) translate(u *update, raw json.RawMessage, now time.Time) core.Inbound {
	switch {
	case u.Message != nil:
		return d.fromMessage(u.Message, raw, now)
	case u.ChannelPost != nil:
		return d.fromMessage(u.ChannelPost, raw, now)
	case u.EditedMessage != nil:
		return d.fromEdit(u.EditedMessage, now)
	case u.EditedPost != nil:
		return d.fromEdit(u.EditedPost, now)
	case u.CallbackQuery != nil:
		return fromCallback(u.CallbackQuery, now)
	case u.MessageReaction != nil:
		return fromReaction(u.MessageReaction, now)
	case u.MyChatMember != nil:
		in := fromMember(u.MyChatMember, "my_chat_member", now)
		if in.Chat != "" {
			in.Standing = u.MyChatMember.standing()
		}
		return in
	case u.ChatMember != nil:
		return fromMember(u.ChatMember, "chat_member", now)
	}
	// A kind we did not ask for: kept as a key only, so that it is not seen twice.
	return core.Inbound{Kind: core.KindService, At: now, Text: "unknown update", From: core.Peer{Platform: Platform}}
}

// address returns where a message of c in thread belongs. Only a forum's messages
// carry is_topic_message: elsewhere message_thread_id numbers a chain of
// replies, which is no place of its own. General has no thread (or number 1,
// which sending refuses).
func address(c chat, thread int64, isTopic bool) core.Address {
	id := strconv.FormatInt(c.ID, 10)
	a := core.Address{Chat: id}
	if c.Type != "private" {
		a.Place = id
	}
	if isTopic && thread > 1 {
		a.Thread = strconv.FormatInt(thread, 10)
		a.Chat += "/" + a.Thread
	}
	return a
}

func (d *Decoder) fromMessage(m *message, raw json.RawMessage, now time.Time) core.Inbound {
	in := core.Inbound{
		Kind:      core.KindMessage,
		Address:   address(m.Chat, m.Thread, m.IsTopic),
		MessageID: strconv.FormatInt(m.ID, 10),
		From:      m.sender(),
		At:        at(m.Date, now),
		Album:     m.MediaGroup,
		PlaceName: core.CleanName(m.Chat.Title),
	}
	if m.ReplyTo != nil && !m.topicRoot() {
		in.ReplyTo = strconv.FormatInt(m.ReplyTo.ID, 10)
	}
	description, kind := m.description(), m.unread()
	in.Files = m.files(d.o.Hears)
	if m.Text == "" && m.Caption == "" && kind == "" && description == "" && len(in.Files) == 0 {
		if what := service(m, raw); what != "" {
			in.Kind, in.Text = core.KindService, what
			if m.MigrateTo != 0 {
				in.MovedTo = strconv.FormatInt(m.MigrateTo, 10)
			}
			return in
		}
		kind = "message of a kind unknown here"
	}
	text, entities := m.content()
	in.Text, in.Long = text, len(text) >= cutText && utf16Length(text) >= cutText
	in.Addressed = m.Chat.Type == "private" || d.repliesToUs(m) || d.mentions(text, entities)
	in.Called = d.called(&in, entities)
	if name, rest, ours := d.command(m); ours {
		in.Kind, in.Command, in.Text, in.Addressed = core.KindCommand, name, rest, true
	}
	in.Quote = m.quoted(d.o.ID)
	d.addContent(&in, description, kind)
	if in.Kind == core.KindMessage {
		in.Files = append(in.Files, m.referred(d.o.ID)...)
	}
	return in
}

// addContent adds to a message's text the description of its other content, or a note
// about content of a kind that cannot be read.
func (d *Decoder) addContent(in *core.Inbound, description, kind string) {
	switch {
	case description != "":
		in.Text = strings.TrimSpace(in.Text + "\n\n" + description)
	case kind != "" && (in.Text != "" || in.Command != ""):
		in.Text = strings.TrimSpace(in.Text + "\n\n[sent with a " + kind + ", which cannot be read here]")
	case kind != "" && in.Addressed:
		in.Unsupported = kind
	case in.Addressed && in.Text == "" && !d.o.Hears && len(in.Files) == 1 && in.Files[0].Voice:
		in.Unsupported = "voice message"
	}
}

// cutText is the length in UTF-16 units from which on the sender's app may have split a
// text: at 4096, or at a space before that.
const cutText = 3800

func utf16Length(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// quoted returns what m is about: where it was forwarded from, or what it answers. The
// content that an inline bot has made counts as forwarded from it.
// Of an answer to the bot itself, which the conversation holds, only a passage
// that the user chose. Its media are named. An answer to what was passed on is about the
// text of whom it came from, not of the user who passed it on.
func (m *message) quoted(us int64) *core.Quote {
	if name, passed := passedBy(m.Forward, m.ViaBot); passed {
		return &core.Quote{Name: name, Forwarded: true}
	}
	passage := ""
	if m.Quote.V != nil {
		passage = m.Quote.V.Text
	}
	r := m.ReplyTo
	if e := m.External.V; e != nil && r == nil {
		return quote(core.Quote{Name: e.Origin.name()}, passage, e.shown())
	}
	if r == nil || m.topicRoot() {
		return nil
	}
	q := core.Quote{}
	by, passed := passedBy(r.Forward, r.ViaBot)
	switch {
	case passed:
		q.Name = by
	case r.SenderChat != nil:
		q.Name = core.CleanName(r.SenderChat.Title)
	case r.From != nil:
		q.Name, q.Ours = r.From.peer().Name, r.From.ID == us
	}
	if q.Ours {
		return quote(q, passage, "")
	}
	return quote(q, cmp.Or(passage, r.Text+r.Caption), r.shown())
}

// quote returns q with a text and a description of what is with it, or nil if there is
// neither.
func quote(q core.Quote, text, media string) *core.Quote {
	q.Text = core.CutRunes(strings.TrimSpace(text+"\n\n"+media), core.MaxQuote)
	if q.Text == "" {
		return nil
	}
	return &q
}

// referred returns the file of the message that m replies to: m's sender sees it in the same
// chat. It is not theirs, so that a voice message is not taken for what they said. The
// conversation has it of an answer to the bot itself, and in a private chat of one to the
// sender's own message.
func (m *message) referred(us int64) []core.File {
	r := m.ReplyTo
	if r == nil || m.passedOn() || m.topicRoot() || m.MediaGroup != "" || r.From != nil && (r.From.ID == us || m.Chat.Type == "private" && m.From != nil && r.From.ID == m.From.ID) {
		return nil
	}
	files := r.files(false)
	for i := range files {
		files[i].Quoted, files[i].Voice = true, false
	}
	return files
}

// content returns the message's own text, or the caption of its media. Names of users in it,
// which their owners have chosen, name no address of the web.
func (m *message) content() (string, []entity) {
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	for _, e := range entities {
		if from, to := span(text, e); e.Type == "text_mention" && to > from {
			text = text[:from] + connectors.NoAddress(text[from:to]) + text[to:]
		}
	}
	return text, entities
}

func (d *Decoder) fromEdit(m *message, now time.Time) core.Inbound {
	in := core.Inbound{
		Kind:      core.KindEdit,
		Address:   address(m.Chat, m.Thread, m.IsTopic),
		MessageID: strconv.FormatInt(m.ID, 10),
		Edit:      strconv.FormatInt(m.EditDate, 10),
		From:      m.sender(),
		At:        at(max(m.EditDate, m.Date), now),
		Album:     m.MediaGroup,
		PlaceName: core.CleanName(m.Chat.Title),
	}
	text, entities := m.content()
	in.Text = text
	in.Addressed = m.Chat.Type == "private" || d.repliesToUs(m) || d.mentions(text, entities)
	in.Called = d.called(&in, entities)
	if name, rest, ours := d.command(m); ours {
		in.Command, in.Text, in.Addressed = name, rest, true
	}
	in.Files = m.files(d.o.Hears)
	d.addContent(&in, m.description(), m.unread())
	if in.Command == "" {
		in.Files = append(in.Files, m.referred(d.o.ID)...)
	}
	return in
}

// fromCallback answers in the chat and thread of the message with the button.
// A button without a message (inline mode) is a service update.
func fromCallback(c *callback, now time.Time) core.Inbound {
	in := core.Inbound{Kind: core.KindService, From: c.From.peer(), At: now, Text: "callback without message"}
	if m := c.Message; m != nil && m.Chat.ID != 0 {
		in.Kind, in.Text, in.Addressed = core.KindCallback, "", true
		in.Address = address(m.Chat, m.Thread, m.IsTopic)
		in.MessageID = strconv.FormatInt(m.ID, 10)
		in.PlaceName = core.CleanName(m.Chat.Title)
		in.Callback = &core.Callback{ID: c.ID, Data: c.Data}
	}
	return in
}

// fromReaction keeps the current emoji, or "" when all were removed. The platform names
// no thread for a reaction.
func fromReaction(r *reaction, now time.Time) core.Inbound {
	in := core.Inbound{Kind: core.KindReaction, Address: address(r.Chat, 0, false), At: at(r.Date, now),
		MessageID: strconv.FormatInt(r.ID, 10), PlaceName: core.CleanName(r.Chat.Title)}
	switch {
	case r.Actor != nil:
		in.From = r.Actor.peer()
	case r.User != nil:
		in.From = r.User.peer()
	}
	var emoji []string
	for _, n := range r.New {
		if n.Type == "emoji" {
			emoji = append(emoji, n.Emoji)
		} else {
			emoji = append(emoji, n.Type)
		}
	}
	in.Text = strings.Join(emoji, " ")
	in.From.Platform = Platform
	return in
}

// fromMember reports what became of the bot or a member: "my_chat_member kicked".
func fromMember(c *memberChange, what string, now time.Time) core.Inbound {
	in := core.Inbound{Kind: core.KindService, At: at(c.Date, now), Text: what + " " + core.CleanName(c.New.Status), From: core.Peer{Platform: Platform}}
	if c.Chat.ID != 0 {
		in.Address = address(c.Chat, 0, false)
		in.PlaceName = core.CleanName(c.Chat.Title)
	}
	if c.From != nil {
		in.From = c.From.peer()
	}
	return in
}

// sender returns who wrote m. Someone who writes as a group or channel is no person.
func (m *message) sender() core.Peer {
	if m.From == nil {
		if m.SenderChat != nil {
			return m.SenderChat.peer()
		}
		return m.Chat.peer()
	}
	p := m.From.peer()
	if m.SenderChat != nil {
		p.Shared, p.Bot = true, false
		p.Name = core.CleanName(m.SenderChat.Title)
	}
	if m.Chat.Type == "private" && m.Chat.ID != m.From.ID && !p.Bot {
		p.Shared = true // a private chat has the number of the user in it
	}
	return p
}

func (c *chat) peer() core.Peer {
	return core.Peer{Platform: Platform, ID: strconv.FormatInt(c.ID, 10), Name: core.CleanName(c.Title), Shared: true}
}

func (u *user) peer() core.Peer {
	p := core.Peer{Platform: Platform, ID: strconv.FormatInt(u.ID, 10), Name: core.CleanName(u.FirstName + " " + u.LastName), Bot: u.IsBot}
	if p.Name == "" {
		p.Name = core.CleanName(u.Username)
	}
	if u.ID <= 0 || slices.Contains(serviceAccounts, u.ID) {
		p.Shared, p.Bot = true, false
	}
	return p
}

// topicRoot reports whether m "replies" only to the message that opened its
// topic, as every message there does that replies to nothing.
func (m *message) topicRoot() bool {
	return bool(m.ReplyTo.TopicCreated) || m.IsTopic && m.ReplyTo.ID == m.Thread
}

func (d *Decoder) repliesToUs(m *message) bool {
	return m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == d.o.ID && !m.topicRoot()
}

// mentions reports whether an entity names the bot. Text that merely looks
// like its name is none.
func (d *Decoder) mentions(text string, entities []entity) bool {
	for _, e := range entities {
		switch e.Type {
		case "mention":
			if name, ok := strings.CutPrefix(slice(text, e), "@"); ok && d.isUs(name) {
				return true
			}
		case "text_mention":
			if e.User != nil && e.User.ID == d.o.ID {
				return true
			}
		}
	}
	return false
}

// called returns the mention of the bot that a group's text begins with, "" if none. One in bold has two entities.
func (d *Decoder) called(in *core.Inbound, entities []entity) string {
	for i, e := range entities {
		if in.Group() && e.Offset == 0 && d.mentions(in.Text, entities[i:i+1]) {
			return slice(in.Text, e)
		}
	}
	return ""
}

func (d *Decoder) isUs(username string) bool {
	us := d.username.Load()
	return us != nil && *us != "" && strings.EqualFold(username, *us)
}

// command reads a command that opens the text: its name in lower case and its
// arguments. ours is false without one, for one addressed to another bot, and for a text
// that the sender did not write: a forwarded one, or one of an inline bot.
func (d *Decoder) command(m *message) (name, rest string, ours bool) {
	text, entities := m.content()
	if len(entities) == 0 || !strings.HasPrefix(text, "/") || m.passedOn() {
		return "", "", false
	}
	for _, e := range entities {
		if e.Type != "bot_command" || e.Offset != 0 {
			continue
		}
		whole := slice(text, e)
		name, to, addressed := strings.Cut(strings.TrimPrefix(whole, "/"), "@")
		if name == "" || addressed && !d.isUs(to) {
			return "", "", false
		}
		return strings.ToLower(name), strings.TrimSpace(text[len(whole):]), true
	}
	return "", "", false
}
