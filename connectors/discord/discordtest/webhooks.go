package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
)

const hookFlags = SuppressEmbeds | SuppressNotifications | Ephemeral

// respond executes a callback of a kind.
func (s *Server) respond(i *interaction, kind int, data *form) (*message, *apiError) {
	in := s.channels[i.channel]
	switch kind {
	case 4:
		d, fault := hookDraft(data, true)
		if fault != nil {
			return nil, fault
		}
		m := s.answer(i, d)
		s.turn(i, StateAnswered)
		return m, nil
	case 5: // "the only valid message flag you may use is EPHEMERAL"
		i.deferred = true
		m := s.answer(i, draft{flags: data.integer("flags")&Ephemeral | Loading})
		s.turn(i, StateThinking)
		return m, nil
	case 8:
		for _, raw := range data.array("choices") {
			c := &form{}
			json.Unmarshal(raw, &c.fields)
			i.choices = append(i.choices, c.text("value"))
		}
		s.turn(i, StateAnswered)
		return nil, nil
	case 9:
		modal, fault := readModal(data)
		if fault != nil {
			return nil, fault
		}
		i.modal = modal
		s.turn(i, StateModal)
		return nil, nil
	}
	m := in.index[i.message] // 6 and 7: the message that the component is on
	if m == nil {
		return nil, errUnknownMessage
	}
	if kind == 7 {
		d, fault := hookDraft(data, false)
		if fault != nil {
			return nil, fault
		}
		if fault := s.change(in, m, d, false); fault != nil {
			return nil, fault
		}
		s.edited(in, m)
	}
	i.response = m.ID
	s.turn(i, map[int]string{6: StateQuiet, 7: StateAnswered}[kind])
	return m, nil
}

// hookDraft reads a message of an interaction; its errors are under "data".
func hookDraft(data *form, whole bool) (draft, *apiError) {
	d := readDraft(data, hookMention(), hookFlags)
	if data.errs != nil {
		f := &form{}
		f.adopt("data", data)
		return d, f.check()
	}
	if whole && d.empty() {
		return d, errEmpty
	}
	return d, nil
}

// answer posts the message that answers an interaction.
func (s *Server) answer(i *interaction, d draft) *message {
	in := s.channels[i.channel]
	m := &message{ID: s.newID(), Author: i.bot.account.ID, At: s.clock.Now(), Flags: d.flags, Source: &source{i.id, i.kind, i.name, i.user}}
	if d.flags&Ephemeral != 0 {
		m.To = i.user
	}
	if i.kind == kindCommand {
		m.Type = typeCommand
	}
	if i.kind == kindComponent {
		m.Type, m.Ref = typeReply, &reference{Message: i.message, Channel: in.id, Guild: in.guild}
		d.mentions.replied = false
	}
	s.fill(in, m, d, false)
	if i.response == 0 {
		i.response = m.ID
	}
	s.post(in, m)
	return m
}

// hooked finds the interaction behind a webhook route: 50027 for a token that
// is wrong or older than 15 minutes, 10015 before the first response ([practice]).
func (s *Server) hooked(c *call) (*interaction, *apiError) {
	app, err := ParseID(c.args["app"])
	if err != nil || s.byBot[app] == nil {
		return nil, errUnknownWebhook
	}
	i := s.tokens[c.args["token"]]
	if i == nil {
		return nil, errWebhookToken
	}
	c.bot = i.bot
	switch {
	case i.bot.account.ID != app || c.now.Sub(i.at) >= tokenLife:
		return nil, errWebhookToken
	case i.state == StateWaiting || i.state == StateFailed:
		return nil, errUnknownWebhook
	}
	return i, nil
}

func (s *Server) hookedMessage(c *call) (*interaction, *channel, *message, *apiError) {
	i, fault := s.hooked(c)
	if fault != nil {
		return nil, nil, nil, fault
	}
	id := i.response
	if name := c.args["message"]; name != "@original" {
		id, _ = ParseID(name)
		if id != i.response && !slices.Contains(i.followups, id) {
			return nil, nil, nil, errUnknownMessage
		}
	}
	in := s.channels[i.channel]
	m := in.index[id]
	if m == nil {
		return nil, nil, nil, errUnknownMessage
	}
	return i, in, m, nil
}

func (s *Server) getResponse(c *call) (any, *apiError) {
	i, in, m, fault := s.hookedMessage(c)
	if fault != nil {
		return nil, fault
	}
	return s.wire(in, m, i.bot, true), nil
}

// editResponse implements [interactions] "Edit Original Interaction Response" and
// "Edit Followup Message". The first edit after a deferral ends the loading.
func (s *Server) editResponse(c *call) (any, *apiError) {
	i, in, m, fault := s.hookedMessage(c)
	if fault != nil {
		return nil, fault
	}
	d := readDraft(c.f, hookMention(), hookFlags)
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	return s.rewrite(c, i, in, m, d)
}

func (s *Server) rewrite(c *call, i *interaction, in *channel, m *message, d draft) (any, *apiError) {
	if fault := s.change(in, m, d, false); fault != nil {
		return nil, fault
	}
	c.made = m.ID
	m.Flags &^= Loading
	s.edited(in, m)
	if i.deferred && m.ID == i.response {
		i.deferred = false
		s.turn(i, StateAnswered)
	}
	return s.wire(in, m, i.bot, true), nil
}

func (s *Server) deleteResponse(c *call) (any, *apiError) {
	_, in, m, fault := s.hookedMessage(c)
	if fault != nil {
		return nil, fault
	}
	s.deleted(in, m)
	c.made, c.status = m.ID, http.StatusNoContent
	return nil, nil
}

// createFollowup implements [interactions] "Create Followup Message"; directly after a
// deferral it "will function as Edit Original Interaction Response".
func (s *Server) createFollowup(c *call) (any, *apiError) {
	i, fault := s.hooked(c)
	if fault != nil {
		return nil, fault
	}
	d := readDraft(c.f, hookMention(), hookFlags)
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	if d.empty() {
		return nil, errEmpty
	}
	in := s.channels[i.channel]
	if m := in.index[i.response]; i.deferred && m != nil {
		return s.rewrite(c, i, in, m, d)
	}
	m := s.answer(i, d)
	c.made = m.ID
	i.followups = append(i.followups, m.ID)
	return s.wire(in, m, i.bot, true), nil
}
