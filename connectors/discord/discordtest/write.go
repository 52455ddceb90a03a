package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxContent = 2000 // [message] "Create Message": characters; counted in code points
	maxNonce   = 25
	maxEmbeds  = 10
	maxFiles   = 10
)

// A draft is what a request wants a message to be.
type draft struct {
	content    string
	hasContent bool
	flags      int
	components json.RawMessage
	hasRows    bool
	embeds     json.RawMessage
	hasEmbeds  bool
	mentions   allowed
	keep       []ID // attachments of an edited message that stay; nil: all
	attached   bool
	files      []upload
}

// readDraft reads the fields that create, edit and interactions share. The
// platform trims contents ([message]: "may strip certain characters").
func readDraft(f *form, mentions allowed, flags int) draft {
	d := draft{content: f.text("content"), hasContent: hasKey(f, "content"), hasRows: hasKey(f, "components"), hasEmbeds: hasKey(f, "embeds"), files: f.files}
	f.limit("content", d.content, maxContent)
	d.content = strings.TrimSpace(d.content)
	d.mentions = f.allowedMentions(mentions)
	d.flags = f.integer("flags") & flags // "unsupported flag changes are currently ignored without error"
	if f.integer("flags")&componentsV2 != 0 {
		f.wrong("flags", "NOT_SIMULATED", "Components V2 are not simulated.")
	}
	d.components = f.rows()
	if embeds := f.array("embeds"); len(embeds) > 0 {
		d.embeds = f.fields["embeds"]
		if len(embeds) > maxEmbeds {
			f.tooLong("embeds", maxEmbeds)
		}
	}
	if len(d.files) > maxFiles {
		f.tooLong("files", maxFiles)
	}
	if hasKey(f, "attachments") {
		d.attached = true
		for i, raw := range f.array("attachments") {
			part := &form{}
			json.Unmarshal(raw, &part.fields)
			id := part.id("id")
			if part.errs != nil || !part.has("id") {
				f.required("attachments." + strconv.Itoa(i) + ".id")
			}
			d.keep = append(d.keep, id)
		}
	}
	return d
}

func hasKey(f *form, key string) bool { _, ok := f.fields[key]; return ok }

func (d draft) empty() bool {
	return d.content == "" && len(d.files) == 0 && len(d.embeds) == 0 && len(d.components) == 0
}

// createMessage implements [message] "Create Message".
func (s *Server) createMessage(c *call) (any, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, fault
	}
	d := readDraft(c.f, everyMention(), SuppressEmbeds|SuppressNotifications)
	key := c.f.nonce()
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	if fault := s.mayWrite(c.bot, ch); fault != nil {
		return nil, fault
	}
	if len(d.files) > 0 && !s.can(c.bot, ch, AttachFiles) { // [permissions] "Allows for uploading images and files"
		return nil, errPermissions
	}
	if key != "" && c.f.boolean("enforce_nonce", false) {
		if m, known, fault := s.sentBefore(c, key); known {
			return m, fault
		}
	}
	if d.empty() {
		return nil, errEmpty
	}
	m := &message{ID: s.newID(), Author: c.bot.account.ID, At: c.now, Nonce: c.f.fields["nonce"], Flags: d.flags}
	if fault := s.refer(c, ch, m); fault != nil {
		return nil, fault
	}
	if !s.revive(ch) && !s.can(c.bot, ch, ManageThreads) { // [threads] "Locked Threads"
		return nil, errLocked
	}
	s.fill(ch, m, d, s.can(c.bot, ch, MentionEveryone))
	s.remember(c, key, ch, m)
	s.post(ch, m)
	c.made = m.ID
	return s.wire(ch, m, c.bot, true), nil
}

// mayWrite checks where and to whom a bot may write. A user who wrote first
// has the application among their own; others need a guild in common
// ([codes] 50278).
func (s *Server) mayWrite(b *bot, ch *channel) *apiError {
	perm := SendMessages
	if ch.thread() {
		perm = SendInThreads // [threads] "Permissions"
	}
	switch {
	case ch.kind == Forum:
		return errNonText // [threads] "Messages cannot be sent directly in forum channels."
	case ch.kind == DM && ch.closed:
		return errCannotSend
	case ch.kind == DM && !ch.opened && !s.mutual(b.account.ID, ch.user):
		return errNoMutual
	case !s.can(b, ch, perm):
		return errPermissions
	}
	return nil
}

// nonce reads the field: a string or an integer of at most 25 characters
// ([docs#1158] for the texts).
func (f *form) nonce() string {
	if !f.has("nonce") {
		return ""
	}
	raw := f.fields["nonce"]
	var text string
	if json.Unmarshal(raw, &text) != nil {
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			f.wrong("nonce", "NONCE_TYPE_INVALID_TYPE", "This field must be a string or integer.")
			return ""
		}
		text = string(raw)
	}
	if utf8.RuneCountInString(text) > maxNonce {
		f.wrong("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer characters long.")
	}
	return text
}

// sentBefore finds the message that the bot sent with a nonce in the past few
// minutes, in whatever channel: "that message will be returned and no new
// message will be created" ([message] enforce_nonce). Deleted in the meantime it is
// unknown, and not made again ([docs#6647]).
func (s *Server) sentBefore(c *call, key string) (any, bool, *apiError) {
	n := c.bot.nonces[key]
	if n == nil || c.now.Sub(n.at) >= s.opt.NonceLife {
		return nil, false, nil
	}
	in := s.channels[n.channel]
	m := in.index[n.message]
	if m == nil {
		return nil, true, errUnknownMessage
	}
	c.made = m.ID
	return s.wire(in, m, c.bot, true), true, nil
}

func (s *Server) remember(c *call, key string, ch *channel, m *message) {
	if key == "" {
		return
	}
	b := c.bot
	for len(b.oldNonce) > 0 {
		first := b.nonces[b.oldNonce[0]]
		if first != nil && len(b.oldNonce) < maxNonces && c.now.Sub(first.at) < s.opt.NonceLife {
			break
		}
		delete(b.nonces, b.oldNonce[0])
		b.oldNonce = b.oldNonce[1:]
	}
	if b.nonces[key] == nil {
		b.oldNonce = append(b.oldNonce, key)
	}
	b.nonces[key] = &nonce{c.now, ch.id, m.ID}
}

// refer makes m a reply if the request has a reference ([message] "Message Reference").
func (s *Server) refer(c *call, ch *channel, m *message) *apiError {
	f := c.f
	sub := f.object("message_reference")
	if sub == nil {
		return f.check()
	}
	id, in, kind := sub.id("message_id"), sub.id("channel_id"), sub.integer("type")
	must := sub.boolean("fail_if_not_exists", true)
	if kind != 0 {
		sub.choices("type", "0") // forwards are not simulated
	}
	if !sub.has("message_id") {
		sub.required("message_id")
	}
	f.adopt("message_reference", sub)
	if fault := f.check(); fault != nil {
		return fault
	}
	if !s.can(c.bot, ch, ReadHistory) {
		return errNoHistory
	}
	to := ch.index[id]
	switch {
	case in != 0 && in != ch.id: // [practice]
		return invalid("message_reference", "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL", "Cannot reply to a message in a different channel")
	case to == nil && must:
		return invalid("message_reference", "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "Unknown message")
	case to == nil:
		return nil
	case to.Type == typeThreadCreated || to.Type == typeStarter: // "cannot be a system message"
		return invalid("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
	}
	m.Type, m.Ref = typeReply, &reference{Message: id, Channel: ch.id, Guild: ch.guild}
	return nil
}

// fill inserts a draft into a message that was empty.
func (s *Server) fill(ch *channel, m *message, d draft, everyone bool) {
	m.Content, m.Components, m.Embeds = d.content, d.components, d.embeds
	s.mention(m, ch, d.mentions, everyone)
	for _, f := range d.files {
		m.Attachments = append(m.Attachments, s.store(ch, f.name, f.kind, f.data))
	}
}

// change applies a draft to a message: only the fields in the request ([message]
// "Edit Message": all parameters are optional; mentions are found again).
func (s *Server) change(ch *channel, m *message, d draft, everyone bool) *apiError {
	next := *m
	if d.hasContent {
		next.Content = d.content
		s.mention(&next, ch, d.mentions, everyone)
	}
	if d.hasRows {
		next.Components = d.components
	}
	if d.hasEmbeds {
		next.Embeds = d.embeds
	}
	if d.attached {
		next.Attachments = slices.DeleteFunc(slices.Clone(m.Attachments), func(a Attachment) bool { return !slices.Contains(d.keep, a.ID) })
	}
	if next.Content == "" && len(next.Components) == 0 && len(next.Embeds) == 0 && len(next.Attachments) == 0 && len(d.files) == 0 {
		return errEmpty
	}
	for _, f := range d.files {
		next.Attachments = append(slices.Clone(next.Attachments), s.store(ch, f.name, f.kind, f.data))
	}
	*m = next
	return nil
}

// editMessage implements [message] "Edit Message".
func (s *Server) editMessage(c *call) (any, *apiError) {
	ch, m, fault := s.find(c)
	if fault != nil {
		return nil, fault
	}
	d := readDraft(c.f, everyMention(), SuppressEmbeds)
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	switch {
	case m.Author != c.bot.account.ID:
		return nil, errNotAuthor
	case m.Type == typeThreadCreated || m.Type == typeStarter:
		return nil, errSystemMessage
	case ch.archived: // [codes] 50083
		return nil, errArchived
	case ch.locked && !s.can(c.bot, ch, ManageThreads): // [threads] "Locked Threads"
		return nil, errLocked
	case ch.kind == DM && ch.closed:
		return nil, errCannotSend
	}
	if c.f.has("flags") {
		m.Flags = m.Flags&^SuppressEmbeds | d.flags
	}
	if fault := s.change(ch, m, d, s.can(c.bot, ch, MentionEveryone)); fault != nil {
		return nil, fault
	}
	s.edited(ch, m)
	c.made = m.ID
	return s.wire(ch, m, c.bot, true), nil
}

// deleteMessage implements [message] "Delete Message": another's message needs
// MANAGE_MESSAGES, and can't be deleted in a DM.
func (s *Server) deleteMessage(c *call) (any, *apiError) {
	ch, m, fault := s.find(c)
	if fault != nil {
		return nil, fault
	}
	mine := m.Author == c.bot.account.ID
	switch {
	case !mine && ch.kind == DM:
		return nil, errOnDM
	case !mine && !s.can(c.bot, ch, ManageMessages):
		return nil, errPermissions
	case m.Type == typeStarter: // [message] "Message Types": not deletable
		return nil, errSystemMessage
	case ch.archived:
		return nil, errArchived
	}
	s.deleted(ch, m)
	c.made, c.status = m.ID, http.StatusNoContent
	return nil, nil
}

// post adds a message and notifies the bots that see it. An ephemeral one is the
// business of the bot that wrote it alone.
func (s *Server) post(ch *channel, m *message) {
	s.add(ch, m)
	s.tellMessage(ch, m, "MESSAGE_CREATE")
}

// changed reports a message that is other than before, without an edit.
func (s *Server) changed(ch *channel, m *message) {
	s.Touch()
	s.emitMessage(ChangeEdit, ch, m, s.clock.Now())
	s.tellMessage(ch, m, "MESSAGE_UPDATE")
}

func (s *Server) edited(ch *channel, m *message) {
	m.Edited = s.clock.Now()
	m.Edits++
	s.changed(ch, m)
}

func (s *Server) deleted(ch *channel, m *message) {
	s.remove(ch, m)
	s.tell(ch, "MESSAGE_DELETE", s.intent(ch, IntentMessages, IntentDirect), func(*bot, bool) any {
		return struct {
			ID      ID `json:"id"`
			Channel ID `json:"channel_id"`
			Guild   ID `json:"guild_id,omitzero"`
		}{m.ID, ch.id, ch.guild}
	})
}

func (s *Server) tellMessage(ch *channel, m *message, event string) {
	intent := s.intent(ch, IntentMessages, IntentDirect)
	if m.To != 0 {
		if b := s.byBot[m.Author]; b != nil {
			s.dispatch(b, event, ch.guild, intent, func(content bool) any { return s.event(ch, m, b, content) })
		}
		return
	}
	s.tell(ch, event, intent, func(b *bot, content bool) any { return s.event(ch, m, b, content) })
}

// intent returns what an event in ch needs.
func (s *Server) intent(ch *channel, guild, direct int) int {
	if ch.kind == DM {
		return direct
	}
	return guild
}
