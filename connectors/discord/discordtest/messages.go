package discordtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A wireMessage is a message object as one bot sees it ([message] "Message Structure").
type wireMessage struct {
	Type        int              `json:"type"`
	ID          ID               `json:"id"`
	Channel     ID               `json:"channel_id"`
	Author      wireUser         `json:"author"`
	Content     string           `json:"content"`
	Timestamp   string           `json:"timestamp"`
	Edited      *string          `json:"edited_timestamp"`
	TTS         bool             `json:"tts"`
	Everyone    bool             `json:"mention_everyone"`
	Mentions    []any            `json:"mentions"`
	Roles       []ID             `json:"mention_roles"`
	Attachments []Attachment     `json:"attachments"`
	Embeds      json.RawMessage  `json:"embeds"`
	Components  json.RawMessage  `json:"components"`
	Reactions   []wireReaction   `json:"reactions,omitempty"`
	Nonce       json.RawMessage  `json:"nonce,omitempty"`
	Pinned      bool             `json:"pinned"`
	Webhook     ID               `json:"webhook_id,omitzero"`
	App         ID               `json:"application_id,omitzero"`
	Flags       int              `json:"flags"`
	Ref         *reference       `json:"message_reference,omitempty"`
	Referenced  *json.RawMessage `json:"referenced_message,omitempty"` // "null": deleted
	Source      *wireSource      `json:"interaction_metadata,omitempty"`
	Guild       ID               `json:"guild_id,omitzero"` // events only
	Member      *wireMember      `json:"member,omitempty"`
	ChannelType *int             `json:"channel_type,omitempty"`
	extra       map[string]json.RawMessage
}

type wireSource struct {
	ID   ID       `json:"id"`
	Type int      `json:"type"`
	Name string   `json:"name,omitempty"`
	User wireUser `json:"user"`
}

type wireReaction struct {
	Count int            `json:"count"`
	Me    bool           `json:"me"`
	Emoji map[string]any `json:"emoji"`
}

// MarshalJSON adds the extra fields.
func (w wireMessage) MarshalJSON() ([]byte, error) {
	type plain wireMessage
	b, err := json.Marshal(plain(w))
	if err != nil || len(w.extra) == 0 {
		return b, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for k, v := range w.extra {
		all[k] = v
	}
	return json.Marshal(all)
}

var emptyList = json.RawMessage("[]")

func listOr(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return emptyList
	}
	return v
}

// readable reports whether b may read the content of m: it has the intent, wrote
// it, is in a DM with its author, or is mentioned ([gateway] "Message Content
// Intent"; a mention of everyone does not count).
func (s *Server) readable(c *channel, m *message, b *bot, content bool) bool {
	return content || m.Author == b.account.ID || c.kind == DM || slices.Contains(m.Mentions, b.account.ID)
}

// wire returns m as b sees it; content reports whether b has the intent.
func (s *Server) wire(c *channel, m *message, b *bot, content bool) *wireMessage {
	w := &wireMessage{Type: m.Type, ID: m.ID, Channel: c.id, Author: s.author(m), Timestamp: stamp(m.At), Everyone: m.Everyone, Mentions: []any{}, Roles: []ID{},
		Attachments: []Attachment{}, Embeds: emptyList, Components: emptyList, Nonce: m.Nonce, Flags: m.Flags, Ref: m.Ref}
	if m.Webhook != "" {
		w.Webhook = m.Author
	}
	if !m.Edited.IsZero() {
		at := stamp(m.Edited)
		w.Edited = &at
	}
	for _, id := range m.Mentions {
		w.Mentions = append(w.Mentions, s.account(id).wire())
	}
	for _, r := range m.Reactions {
		w.Reactions = append(w.Reactions, wireReaction{len(r.By), slices.Contains(r.By, b.account.ID), emoji(r.Emoji)})
	}
	if m.Source != nil {
		w.App = m.Author
		w.Source = &wireSource{m.Source.ID, m.Source.Type, m.Source.Name, s.account(m.Source.User).wire()}
	}
	if s.readable(c, m, b, content) {
		w.Content, w.Embeds, w.Components, w.extra = m.Content, listOr(m.Embeds), listOr(m.Components), m.Extra
		if m.Attachments != nil {
			w.Attachments = m.Attachments
		}
	}
	w.Referenced = s.referenced(m, b, content)
	return w
}

// referenced returns the answered message, without the one that it answers itself
// ([message] note 4: null when it was deleted).
func (s *Server) referenced(m *message, b *bot, content bool) *json.RawMessage {
	if m.Ref == nil || m.Type != typeReply && m.Type != typeStarter {
		return nil
	}
	raw := json.RawMessage("null")
	if in := s.channels[m.Ref.Channel]; in != nil {
		if to := in.index[m.Ref.Message]; to != nil {
			shown := *to
			if shown.Type == typeReply {
				shown.Type = typeDefault
			}
			w := s.wire(in, &shown, b, content)
			w.Type = to.Type
			raw, _ = json.Marshal(w)
		}
	}
	return &raw
}

// author returns the account, or the webhook ([message] note 1).
func (s *Server) author(m *message) wireUser {
	if m.Webhook != "" {
		return wireUser{ID: m.Author, Username: m.Webhook, Discriminator: "0000", Bot: true}
	}
	return s.account(m.Author).wire()
}

// event returns m in a gateway event: with its guild and the author's membership
// ([events] "Message Create Extra Fields"; neither on an ephemeral message).
func (s *Server) event(c *channel, m *message, b *bot, content bool) *wireMessage {
	w := s.wire(c, m, b, content)
	kind := c.kind
	w.ChannelType = &kind
	if g := s.guilds[c.guild]; g != nil && m.To == 0 {
		w.Guild = c.guild
		if m.Webhook == "" {
			w.Member = s.member(g, m.Author, false)
		}
		for i, id := range m.Mentions {
			w.Mentions[i] = mentioned{s.account(id).wire(), s.member(g, id, false)}
		}
	}
	return w
}

type mentioned struct {
	wireUser
	Member *wireMember `json:"member,omitempty"`
}

func (s *Server) member(g *guild, id ID, user bool) *wireMember {
	since, ok := g.members[id]
	if !ok {
		return nil
	}
	w := &wireMember{Roles: []ID{}, JoinedAt: stamp(since)}
	if user {
		u := s.account(id).wire()
		w.User = &u
	}
	return w
}

func emoji(name string) map[string]any { return map[string]any{"id": nil, "name": name} }

// readIn finds the channel of a request that the bot sees: 10003 for one that
// does not exist or is another user's DM, 50001 for one out of its sight.
func (s *Server) readIn(c *call) (*channel, *apiError) {
	ch := s.channels[c.id("channel")]
	switch {
	case ch == nil || ch.kind == DM && ch.bot != c.bot.account.ID:
		return nil, errUnknownChannel
	case !s.can(c.bot, ch, ViewChannel):
		return nil, errMissingAccess
	}
	return ch, nil
}

// find finds a message that the bot can see.
func (s *Server) find(c *call) (*channel, *message, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, nil, fault
	}
	m := ch.index[c.id("message")]
	if m == nil || m.To != 0 { // ephemeral messages are reached by their interaction only
		return nil, nil, errUnknownMessage
	}
	return ch, m, nil
}

// restContent is whether REST shows what messages say: by the portal's switch,
// not by a session's intents ([gateway] "HTTP Restrictions").
func (b *bot) restContent() bool { return b.allowed&IntentContent != 0 }

func (s *Server) getMessage(c *call) (any, *apiError) {
	ch, m, fault := s.find(c)
	switch {
	case fault != nil:
		return nil, fault
	case !s.can(c.bot, ch, ReadHistory):
		return nil, errMissingAccess
	}
	return s.wire(ch, m, c.bot, c.bot.restContent()), nil
}

// getMessages pages through a channel: newest first, at most 100, and with
// "after" those that follow the id directly ([message] "Get Channel Messages").
// Without READ_MESSAGE_HISTORY "no messages will be returned".
func (s *Server) getMessages(c *call) (any, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, fault
	}
	if ch.kind == Forum {
		return nil, errNonText
	}
	q, fault := readPaging(c.query)
	if fault != nil {
		return nil, fault
	}
	page := []*wireMessage{}
	if !s.can(c.bot, ch, ReadHistory) {
		return page, nil
	}
	for _, m := range q.cut(ch.messages) {
		page = append(page, s.wire(ch, m, c.bot, c.bot.restContent()))
	}
	slices.Reverse(page)
	return page, nil
}

type paging struct {
	before, after, around ID
	forward               bool // "after" was given, 0 too
	limit                 int
}

func readPaging(v url.Values) (paging, *apiError) {
	f := &form{}
	q := paging{limit: 50}
	given := 0
	for key, to := range map[string]*ID{"before": &q.before, "after": &q.after, "around": &q.around} {
		if v.Has(key) {
			*to = f.snowflake(key, v.Get(key))
			given++
		}
	}
	q.forward = v.Has("after")
	if given > 1 { // "mutually exclusive, only one may be passed at a time"; the text is ours
		f.wrong("", "MUTUALLY_EXCLUSIVE", "before, after and around are mutually exclusive.")
	}
	if v.Has("limit") {
		n, err := strconv.Atoi(v.Get("limit"))
		switch {
		case err != nil:
			f.wrong("limit", "NUMBER_TYPE_COERCE", "Value "+strconv.Quote(v.Get("limit"))+" is not int.")
		case n < 1:
			f.wrong("limit", "NUMBER_TYPE_MIN", "int value should be greater than or equal to 1.")
		case n > 100:
			f.wrong("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
		}
		q.limit = n
	}
	return q, f.check()
}

// cut takes the page out of a history, both oldest first.
func (q paging) cut(all []*message) []*message {
	all = slices.DeleteFunc(slices.Clone(all), func(m *message) bool { return m.To != 0 })
	at := func(id ID) int {
		i, _ := slices.BinarySearchFunc(all, id, func(m *message, id ID) int { return cmp.Compare(m.ID, id) })
		return i
	}
	from, to := max(len(all)-q.limit, 0), len(all)
	switch {
	case q.forward:
		from = at(q.after + 1)
		to = min(from+q.limit, len(all))
	case q.before != 0:
		to = at(q.before)
		from = max(to-q.limit, 0)
	case q.around != 0:
		from = max(at(q.around)-q.limit/2, 0)
		to = min(from+q.limit, len(all))
	}
	return all[from:to]
}

// A storedFile is an attachment's bytes. Guarded by Server.mu.
type storedFile struct {
	path string
	kind string
	data []byte
}

// store keeps a file; the oldest ones make room.
func (s *Server) store(c *channel, name, kind string, data []byte) Attachment {
	name = strings.NewReplacer("/", "_", "?", "_", "#", "_", " ", "_").Replace(name)
	a := Attachment{ID: s.newID(), Filename: name, Size: len(data), Type: kind}
	path := "/attachments/" + c.id.String() + "/" + a.ID.String() + "/" + name
	a.URL = s.URL() + (&url.URL{Path: path}).EscapedPath()
	a.Proxy = a.URL
	s.files = append(s.files, &storedFile{path, kind, data})
	s.stored += len(data)
	for s.stored > maxStored {
		s.stored -= len(s.files[0].data)
		s.files = s.files[1:]
	}
	return a
}

// serveFile is the platform's CDN: no token, the URL is enough.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	entry := Request{At: s.clock.Now(), Verb: r.Method, Path: r.URL.Path[1:], Method: "file"}
	x, ok := s.Begin(w, r, "file", func(outcome string) {
		entry.Outcome = outcome
		s.record(entry)
	})
	if !ok {
		return
	}
	a := answer{Status: 404, Kind: "text/plain", Body: []byte("This content is no longer available.")}
	s.mu.Lock()
	for _, f := range s.files {
		if f.path == r.URL.Path {
			a = answer{Status: 200, Kind: f.kind, Body: f.data}
		}
	}
	s.mu.Unlock()
	entry.Status = a.Status
	x.End(a)
}
