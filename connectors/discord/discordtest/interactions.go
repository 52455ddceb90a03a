package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

const (
	answerWithin = 3 * time.Second  // [interactions] "Interaction Callback"
	tokenLife    = 15 * time.Minute // the same
)

// Kinds of interactions ([interactions] "Interaction Type").
const (
	kindCommand   = 2
	kindComponent = 3
	kindComplete  = 4
	kindModal     = 5
)

// An interaction is what a user did and what the bot made of it. Guarded by
// Server.mu.
type interaction struct {
	id, user, channel ID
	bot               *bot
	kind              int
	token             string
	at                time.Time
	name              string // command
	message           ID     // component: where it is
	state             string
	deferred          bool // a callback of type 5 waits for its text
	response          ID   // the message that answers it
	followups         []ID
	modal             *Modal
	choices           []string // offered for a half typed option
}

// States of an interaction, as the user sees it.
const (
	StateWaiting  = "waiting"
	StateFailed   = "failed"   // "This interaction failed", "The application did not respond"
	StateThinking = "thinking" // deferred: a loading message is there
	StateAnswered = "answered"
	StateQuiet    = "quiet" // acknowledged without a visible change
	StateModal    = "modal" // a dialog is open
)

// An Interaction is how far something that a user did has come.
type Interaction struct {
	ID      ID       `json:"id"`
	User    ID       `json:"user"`
	Channel ID       `json:"channel"`
	State   string   `json:"state"`
	Message ID       `json:"message,omitzero"` // of the answer
	Modal   *Modal   `json:"modal,omitempty"`
	Choices []string `json:"choices,omitempty"` // offered for a half typed option
}

func (i *interaction) view() *Interaction {
	return &Interaction{i.id, i.user, i.channel, i.state, i.response, i.modal, i.choices}
}

// Interaction returns the state of one; false when it is none of the last 10,000.
func (s *Server) Interaction(id ID) (Interaction, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interactions[id]
	if i == nil {
		return Interaction{}, false
	}
	return *i.view(), true
}

// Press uses the button, or with values the select menu, that carries customID,
// and returns the interaction's id. How it ends comes as a Change. NotFound
// where there is no such button, or the user does not see it; Invalid for
// values that the menu does not have.
func (u *User) Press(in, message ID, customID string, values ...string) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.visible(u, in)
	if err != nil {
		return 0, err
	}
	m := c.index[message]
	if m == nil || s.byBot[m.Author] == nil || m.To != 0 && m.To != u.id {
		return 0, core.Errorf(core.NotFound, "message %s is no bot's", message)
	}
	button := usable(buttons(m.Components), customID)
	if button == nil {
		return 0, core.Errorf(core.NotFound, "message %s has no button %q", message, customID)
	}
	if !button.takes(values) {
		return 0, core.Errorf(core.Invalid, "the app lets nobody choose %q there", values)
	}
	data := map[string]any{"custom_id": customID, "component_type": button.Type, "id": 1}
	if button.Type != buttonType {
		data["values"] = values
	}
	i := s.begin(s.byBot[m.Author], u, c, kindComponent)
	i.message = m.ID
	s.deliver(i, data, m)
	return i.id, nil
}

// Slash uses a command of the first bot with options by name. NotFound where
// the bot has no such command.
func (u *User) Slash(in ID, name string, options map[string]any) (ID, error) {
	return u.SlashOf(u.s.Bot(), in, name, options)
}

// SlashOf is Slash of another bot.
func (u *User) SlashOf(b Bot, in ID, name string, options map[string]any) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.visible(u, in)
	if err != nil {
		return 0, err
	}
	list := slices.Concat(b.b.commands[c.guild], b.b.commands[0])
	at := slices.IndexFunc(list, func(cmd command) bool { return cmd.Name == name && cmd.Type == 1 && b.b.offers(cmd, u, c) })
	if at < 0 {
		return 0, core.Errorf(core.NotFound, "the bot has no command /%s here", name)
	}
	data := map[string]any{"id": list[at].ID, "name": name, "type": 1}
	if given := optionValues(list[at], options); len(given) > 0 {
		data["options"] = given
	}
	i := s.begin(b.b, u, c, kindCommand)
	i.name = name
	s.deliver(i, data, nil)
	return i.id, nil
}

// HalfType half types an option of a command of the first bot, and returns the id
// of the interaction that asks what it may become; the choices are in its
// state. NotFound where no such option can be completed.
func (u *User) HalfType(in ID, name, option, typed string) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.visible(u, in)
	if err != nil {
		return 0, err
	}
	b := s.bots[0]
	list := slices.Concat(b.commands[c.guild], b.commands[0])
	at := slices.IndexFunc(list, func(cmd command) bool { return cmd.Name == name && cmd.Type == 1 && b.offers(cmd, u, c) })
	if at < 0 || !completes(list[at], option) {
		return 0, core.Errorf(core.NotFound, "nothing of /%s %s is completed", name, option)
	}
	i := s.begin(b, u, c, kindComplete)
	i.name = name
	s.deliver(i, map[string]any{"id": list[at].ID, "name": name, "type": 1,
		"options": []any{map[string]any{"name": option, "type": 3, "value": typed, "focused": true}}}, nil)
	return i.id, nil
}

func completes(cmd command, option string) bool {
	var def struct {
		Options []struct {
			Name string `json:"name"`
			Auto bool   `json:"autocomplete"`
		} `json:"options"`
	}
	json.Unmarshal(cmd.Fields, &def)
	for _, o := range def.Options {
		if o.Name == option {
			return o.Auto
		}
	}
	return false
}

// optionValues gives options the types under which they were registered.
func optionValues(cmd command, values map[string]any) []map[string]any {
	var def struct {
		Options []struct {
			Name string `json:"name"`
			Type int    `json:"type"`
		} `json:"options"`
	}
	json.Unmarshal(cmd.Fields, &def)
	var out []map[string]any
	for _, o := range def.Options {
		if v, ok := values[o.Name]; ok {
			out = append(out, map[string]any{"name": o.Name, "type": o.Type, "value": v})
		}
	}
	return out
}

// begin notes an interaction; the oldest one makes room.
func (s *Server) begin(b *bot, u *User, c *channel, kind int) *interaction {
	if len(s.recent) >= maxInteractions {
		delete(s.tokens, s.interactions[s.recent[0]].token)
		delete(s.interactions, s.recent[0])
		s.recent = s.recent[1:]
	}
	i := &interaction{id: s.newID(), user: u.id, channel: c.id, bot: b, kind: kind, token: s.secret(64), at: s.clock.Now(), state: StateWaiting}
	s.interactions[i.id], s.tokens[i.token] = i, i
	s.recent = append(s.recent, i.id)
	c.opened = c.opened || c.kind == DM && c.bot == b.account.ID
	s.emit(Change{Kind: ChangeInteraction, Channel: c.id, Interaction: i.view()})
	late := s.clock.After(answerWithin)
	s.Go(func() {
		select {
		case <-late:
			s.mu.Lock()
			defer s.mu.Unlock()
			if i.state == StateWaiting {
				s.turn(i, StateFailed)
			}
		case <-s.Closing():
		}
	})
	return i
}

func (s *Server) turn(i *interaction, state string) {
	i.state = state
	s.emit(Change{Kind: ChangeInteraction, Channel: i.channel, Interaction: i.view()})
}

// deliver sends INTERACTION_CREATE; it needs no intent ([gateway] "List of
// Intents": "Any events not listed … will always be sent").
func (s *Server) deliver(i *interaction, data map[string]any, m *message) {
	c := s.channels[i.channel]
	s.dispatch(i.bot, "INTERACTION_CREATE", c.guild, 0, func(bool) any {
		w := map[string]any{"id": i.id, "application_id": i.bot.account.ID, "type": i.kind, "token": i.token, "version": 1, "data": data,
			"channel_id": c.id, "channel": s.wireChannel(c, i.bot), "locale": "en-US", "entitlements": []any{}, "attachment_size_limit": maxFile,
			"app_permissions": strconv.FormatUint(s.permissions(i.bot, c), 10)}
		if g := s.guilds[c.guild]; g != nil {
			member := s.member(g, i.user, true)
			member.Perms = strconv.FormatUint(DefaultPermissions, 10)
			w["guild_id"], w["guild_locale"], w["member"], w["context"] = c.guild, "en-US", member, 0
			w["guild"] = map[string]any{"id": c.guild, "locale": "en-US", "features": []string{}}
			w["authorizing_integration_owners"] = map[string]any{"0": c.guild}
		} else {
			w["user"], w["context"] = s.account(i.user).wire(), c.context()
			w["authorizing_integration_owners"] = map[string]any{"0": "0"}
			if c.kind == GroupDM {
				w["authorizing_integration_owners"] = map[string]any{"1": i.user}
			}
		}
		if m != nil {
			w["message"] = s.wire(c, m, i.bot, true)
		}
		return w
	})
}

// createResponse implements [interactions] "Create Interaction Response". The id and
// the token are the authorisation. After 3 seconds without one "the token will
// be invalidated"; a second one is refused.
func (s *Server) createResponse(c *call) (any, *apiError) {
	id, _ := ParseID(c.args["interaction"])
	i := s.interactions[id]
	if i == nil || i.token != c.args["token"] {
		return nil, errInteraction
	}
	c.bot = i.bot
	switch {
	case i.state == StateFailed, i.state == StateWaiting && c.now.Sub(i.at) > answerWithin:
		return nil, errInteraction
	case i.state != StateWaiting:
		return nil, errAcknowledged
	}
	kind := c.f.integer("type")
	data := c.f.object("data")
	if data == nil {
		data = &form{}
	}
	data.files = c.f.files
	s.checkResponse(c.f, i, kind)
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	m, fault := s.respond(i, kind, data)
	if fault != nil {
		return nil, fault
	}
	if c.query.Get("with_response") != "true" && c.query.Get("with_response") != "1" {
		c.status = http.StatusNoContent
		return nil, nil
	}
	return i.callback(s, m, kind), nil
}

// checkResponse: [interactions] "Interaction Callback Type" and its notes.
func (s *Server) checkResponse(f *form, i *interaction, kind int) {
	switch {
	case !f.has("type"):
		f.required("type")
	case i.kind == kindComplete && kind == 8:
		f.completions()
	case i.kind == kindComplete: // "Autocomplete interactions … respond with type 8"; the code is ours
		f.wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "An autocomplete interaction takes choices alone.")
	case !slices.Contains([]int{4, 5, 6, 7, 9}, kind): // 1, 8, 10 and 12 have no use here
		f.choices("type", "4, 5, 6, 7, 9")
	case (kind == 6 || kind == 7) && i.message == 0: // "Only valid for component-based interactions"; the code is ours
		f.wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "This response type is only valid for component interactions.")
	case kind == 9 && i.kind == kindModal:
		f.wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "A modal can't answer a modal.")
	case (kind == 4 || kind == 7 || kind == 9) && !f.has("data"):
		f.required("data")
	}
}

// completions: [interactions] "Autocomplete": at most 25 choices, names of 1 to
// 100 characters, values of at most 100.
func (f *form) completions() {
	data := f.object("data")
	if data == nil {
		f.required("data")
		return
	}
	list := data.array("choices")
	if len(list) > 25 {
		f.tooLong("data.choices", 25)
	}
	for n, raw := range list {
		at := "data.choices." + strconv.Itoa(n)
		c := &form{}
		json.Unmarshal(raw, &c.fields)
		if l := utf8.RuneCountInString(c.text("name")); l < 1 || l > 100 {
			f.badLength(at+".name", 1, 100)
		}
		if l := utf8.RuneCountInString(c.text("value")); l > 100 {
			f.badLength(at+".value", 0, 100)
		}
	}
}

// callback implements [interactions] "Interaction Callback Response Object".
func (i *interaction) callback(s *Server, m *message, kind int) any {
	out := map[string]any{"interaction": map[string]any{"id": i.id, "type": i.kind, "response_message_id": i.response, "response_message_loading": i.deferred}}
	if m != nil && (kind == 4 || kind == 7) {
		out["resource"] = map[string]any{"type": kind, "message": s.wire(s.channels[i.channel], m, i.bot, true)}
	}
	return out
}
