package inbound

import (
	"encoding/json"
	"fmt"
	"testing"

	"gatehouse/core"
)

// Updates that no one person sent (Bot API: User.is_bot, Message.sender_chat,
// service messages), as private and as group messages.
func TestInbound_WhatNoPersonSentIsMarked(t *testing.T) {
	b := decoder(t)
	user := func(id int64, isBot bool) string {
		return fmt.Sprintf(`"from":{"id":%d,"is_bot":%v,"first_name":"X"}`, id, isBot)
	}
	private := func(id int64) string { return fmt.Sprintf(`"chat":{"id":%d,"type":"private"}`, id) }
	var senders []string
	for _, id := range []int64{777000, 1087968824, 136817688, 1271266957, 489000, 42777, 0, -5, -1001234567890} {
		senders = append(senders, user(id, false)+","+private(id), user(id, true)+","+super)
	}
	senders = append(senders,
		user(8, true)+","+private(8), user(8, true)+","+group,
		user(8, false)+","+private(9),
		user(8, false)+`,"sender_chat":{"id":-1007,"type":"channel","title":"News"},`+super,
		super, private(8),
		`"sender_chat":{"id":-1007,"type":"channel","title":"News"},`+super,
	)
	for _, s := range senders {
		for name, raw := range map[string]string{
			"message": `{"update_id":1,"message":{"message_id":11,"date":1,` + s + `,"text":"hello"}}`,
			"command": `{"update_id":1,"message":{"message_id":11,"date":1,` + s + `,"text":"/start","entities":[{"type":"bot_command","offset":0,"length":6}]}}`,
			"edit":    `{"update_id":1,"edited_message":{"message_id":11,"date":1,"edit_date":2,` + s + `,"text":"hello"}}`,
			"post":    `{"update_id":1,"channel_post":{"message_id":11,"date":1,` + s + `,"text":"hello"}}`,
		} {
			in, _ := b.Decode(json.RawMessage(raw), arrived)
			if in.From.Person() && in.Malformed == "" {
				t.Errorf("%s by %s is of a person: %+v", name, s, in.From)
			}
		}
	}
	for _, field := range []string{`"new_chat_members":[{"id":8,"first_name":"New"}]`, `"left_chat_member":{"id":8,"first_name":"Gone"}`, `"pinned_message":{"message_id":3,"date":1,` + dm + `}`,
		`"new_chat_title":"T"`, `"group_chat_created":true`, `"video_chat_started":{}`, `"forum_topic_created":{"name":"T"}`, `"message_auto_delete_timer_changed":{"message_auto_delete_time":1}`,
		`"write_access_allowed":{}`, `"boost_added":{"boost_count":1}`, `"gift":{}`, `"users_shared":{"request_id":1,"users":[]}`} {
		for _, chat := range []string{dm, group} {
			if in, _ := b.Decode(json.RawMessage(msg(chat, ","+field)), arrived); in.Kind != core.KindService {
				t.Errorf("%s in %s is a %s", field, chat, in.Kind)
			}
		}
	}
}
