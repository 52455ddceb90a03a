package discordtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
)

// allowed is what a message may mention ([message] "Allowed Mentions Object").
type allowed struct {
	parse   []string
	users   []ID
	replied bool
}

// everyMention returns the default of regular messages, and what users do.
func everyMention() allowed {
	return allowed{parse: []string{"users", "roles", "everyone"}, replied: true}
}

// hookMention returns the default of interactions and webhooks.
func hookMention() allowed { return allowed{parse: []string{"users"}, replied: true} }

// allowedMentions reads the field and notes what is wrong in it.
func (f *form) allowedMentions(otherwise allowed) allowed {
	sub := f.object("allowed_mentions")
	if sub == nil {
		return otherwise
	}
	a := allowed{replied: sub.boolean("replied_user", false)}
	for i, raw := range sub.array("parse") {
		var kind string
		json.Unmarshal(raw, &kind)
		if !slices.Contains([]string{"users", "roles", "everyone"}, kind) {
			sub.choices("parse."+strconv.Itoa(i), "'users', 'roles', 'everyone'")
		}
		a.parse = append(a.parse, kind)
	}
	for _, key := range []string{"users", "roles"} {
		list := sub.array(key)
		if len(list) > 100 {
			sub.tooLong(key, 100)
		}
		if len(list) > 0 && slices.Contains(a.parse, key) { // [docs] and [practice]
			f.wrong("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", `parse:["`+key+`"] and `+key+`: [ids...] are mutually exclusive.`)
		}
		for i, raw := range list {
			id := sub.snowflake(key+"."+strconv.Itoa(i), strings.Trim(string(raw), `"`))
			if key == "users" {
				a.users = append(a.users, id)
			}
		}
	}
	f.adopt("allowed_mentions", sub)
	return a
}

var userMention = core.Pattern(`<@!?([0-9]{1,20})>`)

// mention sets the mentions of m: those in its text that a allows, and the
// author of the answered message. "@everyone" needs the permission too.
func (s *Server) mention(m *message, c *channel, a allowed, everyone bool) {
	m.Mentions, m.Everyone = nil, false
	for _, found := range userMention().FindAllStringSubmatch(m.Content, 100) {
		id, err := ParseID(found[1])
		known := s.users[id] != nil || s.byBot[id] != nil
		if err == nil && known && !slices.Contains(m.Mentions, id) && (slices.Contains(a.parse, "users") || slices.Contains(a.users, id)) {
			m.Mentions = append(m.Mentions, id)
		}
	}
	if everyone && c.kind != DM && slices.Contains(a.parse, "everyone") {
		m.Everyone = strings.Contains(m.Content, "@everyone") || strings.Contains(m.Content, "@here")
	}
	if m.Type != typeReply || m.Ref == nil || !a.replied {
		return
	}
	if to := c.index[m.Ref.Message]; to != nil && to.Webhook == "" && !slices.Contains(m.Mentions, to.Author) {
		m.Mentions = append(m.Mentions, to.Author)
	}
}
