package inbound

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// contentless lists fields of Message that are not content.
var contentless = map[string]bool{
	"message_id": true, "message_thread_id": true, "from": true, "sender_chat": true, "sender_boost_count": true,
	"sender_business_bot": true, "date": true, "business_connection_id": true, "chat": true, "forward_origin": true,
	"forward_from": true, "forward_date": true, "forward_from_chat": true, "forward_sender_name": true,
	"is_topic_message": true, "is_automatic_forward": true, "reply_to_message": true, "external_reply": true,
	"quote": true, "reply_to_story": true, "via_bot": true, "edit_date": true, "has_protected_content": true,
	"is_from_offline": true, "is_paid_post": true, "media_group_id": true, "author_signature": true,
	"paid_star_count": true, "effect_id": true, "reply_markup": true, "link_preview_options": true, "direct_messages_topic": true,
}

// services are the fields of Message that announce an event instead of
// carrying content (Bot API, Message). Names that end in * are prefixes.
var services = []string{"new_chat_*", "left_chat_*", "delete_chat_photo", "group_chat_created", "supergroup_chat_created",
	"channel_chat_created", "message_auto_delete_timer_changed", "migrate_*", "pinned_message", "invoice", "successful_payment",
	"refunded_payment", "users_shared", "chat_shared", "user_shared", "gift*", "unique_gift", "connected_website", "write_access_allowed",
	"passport_data", "proximity_alert_triggered", "boost_added", "chat_background_set", "checklist_tasks_*", "direct_message_price_changed",
	"forum_topic_*", "general_forum_topic_*", "giveaway*", "paid_message_price_changed", "suggested_post_*", "video_chat_*", "web_app_data", "chat_owner_*"}

// service names the event of a message without content: the field's name,
// with the other chat's number for a migration. "" when it is no known event.
// It reads the message once more, as map: events are rare.
func service(m *message, raw json.RawMessage) string {
	switch {
	case m.MigrateTo != 0:
		return "migrate_to_chat_id " + strconv.FormatInt(m.MigrateTo, 10)
	case m.MigrateFrom != 0:
		return "migrate_from_chat_id " + strconv.FormatInt(m.MigrateFrom, 10)
	}
	var u struct {
		Message map[string]json.RawMessage `json:"message"`
		Post    map[string]json.RawMessage `json:"channel_post"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return ""
	}
	fields := u.Message
	if fields == nil {
		fields = u.Post
	}
	for name := range fields {
		if contentless[name] {
			continue
		}
		for _, s := range services {
			prefix, open := strings.CutSuffix(s, "*")
			if name == s || open && strings.HasPrefix(name, prefix) {
				return name
			}
		}
	}
	return ""
}

// year10000 is the first second that neither JSON nor a stamp can represent: an update
// with a later time could never be stored.
const year10000 = 253402300800

// at returns the platform's time in seconds, or ours where it has none.
func at(seconds int64, now time.Time) time.Time {
	if seconds <= 0 || seconds >= year10000 {
		return now
	}
	return time.Unix(seconds, 0).UTC()
}
