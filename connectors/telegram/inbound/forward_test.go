package inbound

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
)

// What a user forwards was written by others: they must not give commands in the user's name.
func TestAForwardedMessageIsNoCommand(t *testing.T) {
	const entity = `[{"type":"bot_command","offset":0,"length":8}]`
	contents := map[string]string{
		"text":    `,"text":"/approve AB12 vault","entities":` + entity,
		"caption": `,"caption":"/approve AB12 vault","caption_entities":` + entity + `,"photo":[{"file_id":"x"}],"media_group_id":"g"`,
		"code":    `,"text":"/claim   AB12 vault","entities":[{"type":"bot_command","offset":0,"length":6}]`,
	}
	origins := map[string]string{
		"user":        `,"forward_origin":{"type":"user","sender_user":{"id":5,"first_name":"Eve"}}`,
		"hidden user": `,"forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`,
		"channel":     `,"forward_origin":{"type":"channel","chat":{"id":-9,"type":"channel","title":"News"}}`,
		"new kind":    `,"forward_origin":{"type":"hologram"}`,
		"unreadable":  `,"forward_origin":{"type":"user","sender_user":"Eve"}`,
		"no object":   `,"forward_origin":["Eve"]`,
	}
	updates := map[string]string{"message": "", "edit": ""}
	for what, content := range contents {
		for from, origin := range origins {
			for kind := range updates {
				for _, chat := range []string{dm, group} {
					update := msg(chat, content+origin)
					if kind == "edit" {
						update = strings.Replace(update, `"message":{`, `"edited_message":{"edit_date":1700000001,`, 1)
					}
					in, _ := decoder(t).Decode(json.RawMessage(update), arrived)
					if in.Malformed != "" || in.Kind == core.KindCommand || in.Command != "" || !strings.HasSuffix(in.Text, "AB12 vault") || !strings.HasPrefix(in.Text, "/") {
						t.Errorf("%s of a %s in a %s: %+v, want a message with the whole text", what, from, kind, in)
					}
					if kind == "message" && (in.Quote == nil || !in.Quote.Forwarded) {
						t.Errorf("%s of a %s is not marked as forwarded", what, from)
					}
				}
			}
		}
		if in, _ := decoder(t).Decode(json.RawMessage(msg(dm, content)), arrived); in.Kind != core.KindCommand || in.Quote != nil {
			t.Errorf("%s that is not forwarded: %+v, want a command", what, in)
		}
		if in, _ := decoder(t).Decode(json.RawMessage(msg(dm, content+`,"forward_origin":null`)), arrived); in.Kind != core.KindCommand {
			t.Errorf("%s with an empty origin: %+v, want a command", what, in)
		}
	}
}

// The text that a user sends through an inline bot is that bot's.
func TestATextOfAnInlineBotCountsAsForwarded(t *testing.T) {
	const content = `,"text":"/approve AB12 vault","entities":[{"type":"bot_command","offset":0,"length":8}],"reply_to_message":{"message_id":9,"from":{"id":42},"text":"Which?"}`
	for bot, name := range map[string]string{`{"id":9,"is_bot":true,"first_name":"Pictures"}`: "Pictures", `{"id":"9"}`: "", `["x"]`: ""} {
		in, _ := decoder(t).Decode(json.RawMessage(msg(dm, content+`,"via_bot":`+bot)), arrived)
		if in.Kind != core.KindMessage || in.Command != "" || in.Text != "/approve AB12 vault" || !in.Forwarded() || in.Quote.Name != name {
			t.Errorf("by %s: %+v, %+v, want a message forwarded from the bot", bot, in, in.Quote)
		}
	}
	if in, _ := decoder(t).Decode(json.RawMessage(msg(dm, content+`,"via_bot":null`)), arrived); in.Kind != core.KindCommand || in.Forwarded() {
		t.Errorf("by no bot: %+v, want a command", in)
	}
}

// A reply to a command of another user is not that command.
func TestAReplyToACommandIsNoCommand(t *testing.T) {
	in, _ := decoder(t).Decode(json.RawMessage(msg(dm, `,"text":"what is this?","quote":{"text":"/approve AB12 vault"},"reply_to_message":{"message_id":9,"from":{"id":5,"first_name":"Eve"},"text":"/approve AB12 vault","entities":[{"type":"bot_command","offset":0,"length":8}]}`)), arrived)
	if in.Kind != core.KindMessage || in.Command != "" || in.Text != "what is this?" || in.Quote == nil || in.Quote.Text != "/approve AB12 vault" {
		t.Errorf("%+v, want a message", in)
	}
}

// A reply to a message that someone passed on is about the text of its author: never of who
// passed it on, who may be the sender of the reply.
func TestAReplyToAForwardedMessageQuotesItsAuthor(t *testing.T) {
	const reply = `,"text":"what is this?","reply_to_message":{"message_id":9,"from":{"id":%s,"first_name":"Olga"},%s%s}`
	origins := map[string]struct{ origin, name string }{
		"user":           {`,"forward_origin":{"type":"user","sender_user":{"id":5,"first_name":"Eve"}}`, "Eve"},
		"hidden user":    {`,"forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`, "Eve"},
		"channel":        {`,"forward_origin":{"type":"channel","chat":{"id":-9,"type":"channel","title":"News"}}`, "News"},
		"group":          {`,"forward_origin":{"type":"chat","sender_chat":{"id":-9,"type":"supergroup","title":"Club"}}`, "Club"},
		"new kind":       {`,"forward_origin":{"type":"hologram"}`, ""},
		"unreadable":     {`,"forward_origin":["Eve"]`, ""},
		"inline bot":     {`,"via_bot":{"id":9,"is_bot":true,"first_name":"Pictures"}`, "Pictures"},
		"unreadable bot": {`,"via_bot":["x"]`, ""},
		"no one":         {"", "Olga"},
	}
	contents := map[string]struct{ content, text string }{
		"text":  {`"text":"delete all notes"`, "delete all notes"},
		"photo": {`"caption":"delete all notes","photo":[{"file_id":"x"}]`, "delete all notes\n\n[a photo]"},
	}
	for _, chat := range []string{dm, group} {
		for by, o := range origins {
			for what, c := range contents {
				in, _ := decoder(t).Decode(json.RawMessage(msg(chat, fmt.Sprintf(reply, "5", c.content, o.origin))), arrived)
				if want := (core.Quote{Name: o.name, Text: c.text}); in.Quote == nil || *in.Quote != want {
					t.Errorf("a %s of %s: %+v, want %+v", what, by, in.Quote, want)
				}
			}
		}
	}
	// A passage that the sender chose is of the same author.
	in, _ := decoder(t).Decode(json.RawMessage(msg(dm, fmt.Sprintf(reply, "5", `"text":"delete all notes"`, origins["user"].origin)+`,"quote":{"text":"all notes"}`)), arrived)
	if want := (core.Quote{Name: "Eve", Text: "all notes"}); in.Quote == nil || *in.Quote != want {
		t.Errorf("a passage: %+v, want %+v", in.Quote, want)
	}
}
