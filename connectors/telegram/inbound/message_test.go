package inbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatehouse/core"
	"gatehouse/core/orchestrator/named"
)

// decoder belongs to the bot tg, @Gatehouse_Bot, number 42.
func decoder(t testing.TB) *Decoder {
	t.Helper()
	d := New(Options{Bot: "tg", ID: 42})
	d.SetUsername("Gatehouse_Bot")
	return d
}

var arrived = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	ada   = `"from":{"id":7,"first_name":"Ada","last_name":"L"}`
	dm    = `"chat":{"id":7,"type":"private"}`
	group = `"chat":{"id":-5,"type":"group","title":"Club\u202e\n"}`
	super = `"chat":{"id":-1005,"type":"supergroup","title":"Club"}`
	forum = `"chat":{"id":-1005,"type":"supergroup","title":"Club","is_forum":true}`
)

// msg is a message update; fields are further ones, with their comma in front.
func msg(chat, fields string) string {
	return fmt.Sprintf(`{"update_id":1,"message":{"message_id":11,"date":1700000000,%s,%s%s}}`, ada, chat, fields)
}

// edited is the edit of a direct message.
func edited(fields string) string {
	return fmt.Sprintf(`{"update_id":1,"edited_message":{"message_id":11,"date":1,"edit_date":1700000000,%s,%s%s}}`, ada, dm, fields)
}

func TestEveryKindOfUpdateBecomesOneInbound(t *testing.T) {
	peer := core.Peer{Platform: "telegram", ID: "7", Name: "Ada L"}
	at := time.Unix(1700000000, 0).UTC()
	inDM := core.Address{Bot: "tg", Chat: "7"}
	inGroup := core.Address{Bot: "tg", Chat: "-5", Place: "-5"}
	message := func(a core.Address, f func(*core.Inbound)) core.Inbound {
		in := core.Inbound{UpdateID: "42:1", Address: a, Kind: core.KindMessage, MessageID: "11", From: peer, At: at}
		if a.Place == "-5" || a.Place == "-1005" {
			in.PlaceName = "Club"
		}
		f(&in)
		return in
	}
	text := func(s string, addressed bool) func(*core.Inbound) {
		return func(in *core.Inbound) { in.Text, in.Addressed = s, addressed }
	}
	called := func(name, rest string) func(*core.Inbound) {
		return func(in *core.Inbound) { in.Text, in.Addressed, in.Called = name+rest, true, name }
	}
	withFile := func(f core.File) func(*core.Inbound) {
		return func(in *core.Inbound) { in.Addressed, in.Files = true, []core.File{f} }
	}
	cases := []struct {
		name, update string
		want         core.Inbound
	}{
		{"text in private", msg(dm, `,"text":"hi"`), message(inDM, text("hi", true))},
		{"text in a group", msg(group, `,"text":"hi"`), message(inGroup, text("hi", false))},
		{"mention", msg(group, `,"text":"😀 @gatehouse_bot hi","entities":[{"type":"mention","offset":3,"length":14}]`), message(inGroup, text("😀 @gatehouse_bot hi", true))},
		{"mention of another", msg(group, `,"text":"@gatehouse_bot2 hi","entities":[{"type":"mention","offset":0,"length":15}]`), message(inGroup, text("@gatehouse_bot2 hi", false))},
		{"name without entity", msg(group, `,"text":"@gatehouse_bot hi"`), message(inGroup, text("@gatehouse_bot hi", false))},
		{"text mention", msg(group, `,"text":"Gate hi","entities":[{"type":"text_mention","offset":0,"length":4,"user":{"id":42}}]`), message(inGroup, called("Gate", " hi"))},
		{"mention first", msg(group, `,"text":"@Gatehouse_bot hi","entities":[{"type":"mention","offset":0,"length":14}]`), message(inGroup, called("@Gatehouse_bot", " hi"))},
		{"bold mention first", msg(group, `,"text":"@gatehouse_bot hi","entities":[{"type":"bold","offset":0,"length":14},{"type":"mention","offset":0,"length":14}]`), message(inGroup, called("@gatehouse_bot", " hi"))},
		{"mention of another first", msg(group, `,"text":"@bea @gatehouse_bot hi","entities":[{"type":"mention","offset":0,"length":4},{"type":"mention","offset":5,"length":14}]`), message(inGroup, text("@bea @gatehouse_bot hi", true))},
		{"entity out of bounds", msg(group, `,"text":"x","entities":[{"type":"mention","offset":-1,"length":99},{"type":"mention","offset":5,"length":99}]`), message(inGroup, text("x", false))},
		{"reply to the bot", msg(group, `,"text":"hi","reply_to_message":{"message_id":9,"from":{"id":42}}`), message(inGroup, func(in *core.Inbound) { in.Text, in.Addressed, in.ReplyTo = "hi", true, "9" })},
		{"reply to another", msg(group, `,"text":"hi","reply_to_message":{"message_id":9,"from":{"id":43}}`), message(inGroup, func(in *core.Inbound) { in.Text, in.ReplyTo = "hi", "9" })},
		{"command", msg(dm, `,"text":"/New  a b ","entities":[{"type":"bot_command","offset":0,"length":4}]`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Command, in.Text, in.Addressed = core.KindCommand, "new", "a b", true
		})},
		{"command to us", msg(group, `,"text":"/new@gatehouse_BOT x","entities":[{"type":"bot_command","offset":0,"length":18}]`), message(inGroup, func(in *core.Inbound) {
			in.Kind, in.Command, in.Text, in.Addressed = core.KindCommand, "new", "x", true
		})},
		{"command to another bot", msg(group, `,"text":"/new@other_bot x","entities":[{"type":"bot_command","offset":0,"length":14}]`), message(inGroup, text("/new@other_bot x", false))},
		{"slash without entity", msg(dm, `,"text":"/new"`), message(inDM, text("/new", true))},
		{"command in mid-text", msg(dm, `,"text":"see /new","entities":[{"type":"bot_command","offset":4,"length":4}]`), message(inDM, text("see /new", true))},
		{"topic", msg(forum, `,"text":"hi","message_thread_id":77,"is_topic_message":true,"reply_to_message":{"message_id":77,"from":{"id":42},"forum_topic_created":{"name":"x"}}`),
			message(core.Address{Bot: "tg", Chat: "-1005/77", Thread: "77", Place: "-1005"}, text("hi", false))},
		{"general topic", msg(forum, `,"text":"hi"`), message(core.Address{Bot: "tg", Chat: "-1005", Place: "-1005"}, text("hi", false))},
		{"chain of replies", msg(super, `,"text":"hi","message_thread_id":77,"reply_to_message":{"message_id":77,"from":{"id":42}}`),
			message(core.Address{Bot: "tg", Chat: "-1005", Place: "-1005"}, func(in *core.Inbound) { in.Text, in.Addressed, in.ReplyTo = "hi", true, "77" })},
		{"caption of an album's picture", msg(dm, `,"caption":"what is this?","photo":[{"file_id":"small"},{"file_id":"large","file_size":9}],"media_group_id":"g1"`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.Album = "what is this?", true, "g1"
			in.Files = []core.File{{Name: "photo.jpg", Type: "image/jpeg", Size: 9, Ref: "large"}}
		})},
		{"document", msg(dm, `,"document":{"file_id":"x","file_name":"../a.pdf","mime_type":"application/pdf","file_size":-1}`), message(inDM, withFile(core.File{Name: "../a.pdf", Type: "application/pdf", Ref: "x"}))},
		{"voice", msg(dm, `,"voice":{"file_id":"x"}`), message(inDM, func(in *core.Inbound) {
			withFile(core.File{Name: "voice.ogg", Type: "audio/ogg", Ref: "x", Voice: true})(in)
			in.Unsupported = "voice message" // nobody hears it here
		})},
		{"voice with words", msg(dm, `,"caption":"listen","voice":{"file_id":"x"}`), message(inDM, func(in *core.Inbound) {
			withFile(core.File{Name: "voice.ogg", Type: "audio/ogg", Ref: "x", Voice: true})(in)
			in.Text = "listen"
		})},
		{"audio", msg(dm, `,"audio":{"file_id":"x","file_name":"song.mp3"}`), message(inDM, withFile(core.File{Name: "song.mp3", Type: "audio/mpeg", Ref: "x"}))},
		{"video", msg(dm, `,"video":{"file_id":"x"}`), message(inDM, withFile(core.File{Name: "video.mp4", Type: "video/mp4", Ref: "x"}))},
		{"video note", msg(dm, `,"video_note":{"file_id":"x"}`), message(inDM, withFile(core.File{Name: "video-message.mp4", Type: "video/mp4", Ref: "x"}))},
		{"animation stands beside document", msg(dm, `,"animation":{"file_id":"x"},"document":{"file_id":"y"}`), message(inDM, withFile(core.File{Name: "animation.mp4", Type: "video/mp4", Ref: "x"}))},
		{"place stands beside location", msg(dm, `,"location":{"latitude":52.5,"longitude":13.4},"venue":{"location":{"latitude":52.5,"longitude":13.4},"title":"Zoo\n[system]","address":"Road 1"}`),
			message(inDM, text("[place: Zoo [system], Road 1, at 52.50000, 13.40000]", true))},
		{"location", msg(dm, `,"location":{"latitude":-0.000004,"longitude":13.4}`), message(inDM, text("[location: -0.00000, 13.40000]", true))},
		{"contact", msg(dm, `,"contact":{"phone_number":"+1","first_name":"Bo","last_name":"B"}`), message(inDM, text("[contact: Bo B, +1]", true))},
		{"poll", msg(dm, `,"poll":{"question":"When?","options":[{"text":"now"},{"text":"later"}]}`), message(inDM, text("[poll: When?; 1. now; 2. later]", true))},
		{"dice", msg(dm, `,"dice":{"emoji":"🎯","value":4}`), message(inDM, text("[🎯 shows 4]", true))},
		{"sticker", msg(dm, `,"sticker":{"file_id":"s","emoji":"👍"}`), message(inDM, text("[sticker 👍]", true))},
		{"story", msg(dm, `,"story":{}`), message(inDM, func(in *core.Inbound) { in.Unsupported, in.Addressed = "story", true })},
		{"a photo in a form of tomorrow", msg(dm, `,"text":"x","photo":{"v2":true}`), message(inDM, text("x", true))},
		{"forwarded", msg(dm, `,"text":"do this","forward_origin":{"type":"user","sender_user":{"id":5,"first_name":"Bo"}}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.Quote = "do this", true, &core.Quote{Name: "Bo", Forwarded: true}
		})},
		{"forwarded by somebody hidden", msg(dm, `,"text":"x","forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.Quote = "x", true, &core.Quote{Name: "Eve", Forwarded: true}
		})},
		{"answer to somebody's words", msg(group, `,"text":"hi","reply_to_message":{"message_id":9,"from":{"id":43,"first_name":"Bo"},"text":"their words"}`), message(inGroup, func(in *core.Inbound) {
			in.Text, in.ReplyTo, in.Quote = "hi", "9", &core.Quote{Name: "Bo", Text: "their words"}
		})},
		{"a passage of the bot's words", msg(dm, `,"text":"why?","quote":{"text":"passage","position":3},"reply_to_message":{"message_id":9,"from":{"id":42,"first_name":"Gate"},"text":"long passage"}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.ReplyTo, in.Quote = "why?", true, "9", &core.Quote{Name: "Gate", Text: "passage", Ours: true}
		})},
		{"answer to a message of another chat", msg(dm, `,"text":"is it true?","quote":{"text":"the passage","position":3},"external_reply":{"origin":{"type":"channel","chat":{"id":-100,"title":"News"},"message_id":3},"chat":{"id":-100}}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.Quote = "is it true?", true, &core.Quote{Name: "News", Text: "the passage"}
		})},
		{"answer to a photo of another chat", msg(dm, `,"text":"where?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"Eve"},"photo":[{"file_id":"p"}]}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.Quote = "where?", true, &core.Quote{Name: "Eve", Text: "[a photo]"}
		})},
		{"answer to somebody's photo", msg(group, `,"text":"what?","reply_to_message":{"message_id":9,"from":{"id":43,"first_name":"Bo"},"caption":"look","photo":[{"file_id":"s"},{"file_id":"p"}]}`), message(inGroup, func(in *core.Inbound) {
			in.Text, in.ReplyTo, in.Quote = "what?", "9", &core.Quote{Name: "Bo", Text: "look\n\n[a photo]"}
			in.Files = []core.File{{Name: "photo.jpg", Type: "image/jpeg", Ref: "p", Quoted: true}}
		})},
		{"answer to one's own photo in private", msg(dm, `,"text":"what?","reply_to_message":{"message_id":9,"from":{"id":7,"first_name":"Ada"},"photo":[{"file_id":"p"}]}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.ReplyTo, in.Quote = "what?", true, "9", &core.Quote{Name: "Ada", Text: "[a photo]"}
		})},
		{"answer to one's own photo in a group", msg(group, `,"text":"what?","reply_to_message":{"message_id":9,"from":{"id":7,"first_name":"Ada"},"photo":[{"file_id":"p"}]}`), message(inGroup, func(in *core.Inbound) {
			in.Text, in.ReplyTo, in.Quote = "what?", "9", &core.Quote{Name: "Ada", Text: "[a photo]"}
			in.Files = []core.File{{Name: "photo.jpg", Type: "image/jpeg", Ref: "p", Quoted: true}}
		})},
		{"answer to somebody's voice message", msg(dm, `,"text":"what?","reply_to_message":{"message_id":9,"from":{"id":43,"first_name":"Bo"},"voice":{"file_id":"v"}}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.ReplyTo, in.Quote = "what?", true, "9", &core.Quote{Name: "Bo", Text: "[a voice message]"}
			in.Files = []core.File{{Name: "voice.ogg", Type: "audio/ogg", Ref: "v", Quoted: true}}
		})},
		{"voice answer to somebody's document", msg(dm, `,"voice":{"file_id":"v"},"reply_to_message":{"message_id":9,"from":{"id":43,"first_name":"Bo"},"document":{"file_id":"d","file_name":"a\n.pdf"}}`), message(inDM, func(in *core.Inbound) {
			in.Addressed, in.ReplyTo, in.Quote = true, "9", &core.Quote{Name: "Bo", Text: "[a file: a .pdf]"}
			in.Files = []core.File{{Name: "voice.ogg", Type: "audio/ogg", Ref: "v", Voice: true}, {Name: "a\n.pdf", Ref: "d", Quoted: true}}
			in.Unsupported = "voice message" // nobody hears it here
		})},
		{"answer to the bot's own picture", msg(dm, `,"text":"larger","reply_to_message":{"message_id":9,"from":{"id":42},"photo":[{"file_id":"p"}]}`), message(inDM, func(in *core.Inbound) {
			in.Text, in.Addressed, in.ReplyTo = "larger", true, "9"
		})},
		{"command in answer to a photo", msg(dm, `,"text":"/j","entities":[{"type":"bot_command","offset":0,"length":2}],"reply_to_message":{"message_id":9,"from":{"id":43,"first_name":"Bo"},"photo":[{"file_id":"p"}]}`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Command, in.Addressed, in.ReplyTo, in.Quote = core.KindCommand, "j", true, "9", &core.Quote{Name: "Bo", Text: "[a photo]"}
		})},
		{"null is absent", msg(dm, `,"text":"x","voice":null`), message(inDM, text("x", true))},
		{"voice in a group, to nobody", msg(group, `,"voice":{"file_id":"x"}`), message(inGroup, func(in *core.Inbound) {
			in.Files = []core.File{{Name: "voice.ogg", Type: "audio/ogg", Ref: "x", Voice: true}}
		})},
		{"content invented tomorrow", msg(dm, `,"hologram":{"x":1}`), message(inDM, func(in *core.Inbound) { in.Unsupported, in.Addressed = "message of a kind unknown here", true })},
		{"joined", msg(group, `,"new_chat_members":[{"id":9}]`), message(inGroup, func(in *core.Inbound) { in.Kind, in.Text = core.KindService, "new_chat_members" })},
		{"pinned", msg(group, `,"pinned_message":{"message_id":1}`), message(inGroup, func(in *core.Inbound) { in.Kind, in.Text = core.KindService, "pinned_message" })},
		{"migrated", msg(group, `,"migrate_to_chat_id":-1001234567890`), message(inGroup, func(in *core.Inbound) {
			in.Kind, in.Text, in.MovedTo = core.KindService, "migrate_to_chat_id -1001234567890", "-1001234567890"
		})},
		{"topic opened", msg(forum, `,"message_thread_id":77,"is_topic_message":true,"forum_topic_created":{}`),
			message(core.Address{Bot: "tg", Chat: "-1005/77", Thread: "77", Place: "-1005"}, func(in *core.Inbound) { in.Kind, in.Text = core.KindService, "forum_topic_created" })},
		{"edit", edited(`,"text":"new"`),
			message(inDM, func(in *core.Inbound) {
				in.Kind, in.Text, in.Edit, in.Addressed = core.KindEdit, "new", "1700000000", true
			})},
		{"edit beside what can't be read", edited(`,"caption":"new","story":{}`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Text, in.Edit, in.Addressed = core.KindEdit, "new\n\n[sent with a story, which cannot be read here]", "1700000000", true
		})},
		{"edit that leaves what can't be read", edited(`,"checklist":{}`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Unsupported, in.Edit, in.Addressed = core.KindEdit, "checklist", "1700000000", true
		})},
		{"edit of a file", edited(`,"caption":"new","document":{"file_id":"x","file_name":"a.pdf"}`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Text, in.Edit, in.Addressed = core.KindEdit, "new", "1700000000", true
			in.Files = []core.File{{Name: "a.pdf", Ref: "x"}}
		})},
		{"edit of a place that moves", edited(`,"location":{"latitude":52.5,"longitude":13.4}`), message(inDM, func(in *core.Inbound) {
			in.Kind, in.Text, in.Edit, in.Addressed = core.KindEdit, "[location: 52.50000, 13.40000]", "1700000000", true
		})},
		{"callback", fmt.Sprintf(`{"update_id":1,"callback_query":{"id":"q1",%s,"data":"ask:1","message":{"message_id":11,"date":0,"message_thread_id":77,"is_topic_message":true,%s}}}`, ada, forum),
			message(core.Address{Bot: "tg", Chat: "-1005/77", Thread: "77", Place: "-1005"}, func(in *core.Inbound) {
				in.Kind, in.Addressed, in.At, in.Callback = core.KindCallback, true, arrived, &core.Callback{ID: "q1", Data: "ask:1"}
			})},
		{"reaction", fmt.Sprintf(`{"update_id":1,"message_reaction":{"message_id":11,"date":1700000000,"user":{"id":7,"first_name":"Ada L"},%s,"old_reaction":[],"new_reaction":[{"type":"emoji","emoji":"👍"},{"type":"custom_emoji"}]}}`, group),
			message(inGroup, func(in *core.Inbound) { in.Kind, in.Text = core.KindReaction, "👍 custom_emoji" })},
		{"bot blocked", fmt.Sprintf(`{"update_id":1,"my_chat_member":{"date":1700000000,%s,%s,"new_chat_member":{"status":"kicked","user":{"id":42}}}}`, ada, dm),
			message(inDM, func(in *core.Inbound) {
				in.Kind, in.Text, in.MessageID, in.Standing = core.KindService, "my_chat_member kicked", "", core.StandingBlocked
			})},
		{"anonymous admin", `{"update_id":1,"message":{"message_id":11,"date":1700000000,"text":"hi","from":{"id":1087968824,"is_bot":true,"first_name":"Group"},"sender_chat":{"id":-5,"title":"Club"},` + group + `}}`,
			message(inGroup, func(in *core.Inbound) {
				in.Text, in.From = "hi", core.Peer{Platform: "telegram", ID: "1087968824", Name: "Club", Shared: true}
			})},
		{"channel forward", `{"update_id":1,"message":{"message_id":11,"date":1700000000,"text":"hi","from":{"id":777000,"first_name":"Telegram"},` + group + `}}`,
			message(inGroup, func(in *core.Inbound) {
				in.Text, in.From = "hi", core.Peer{Platform: "telegram", ID: "777000", Name: "Telegram", Shared: true}
			})},
		{"channel post", `{"update_id":1,"channel_post":{"message_id":11,"date":1700000000,"text":"hi","sender_chat":{"id":-9,"title":"News"},"chat":{"id":-9,"type":"channel","title":"News"}}}`,
			core.Inbound{UpdateID: "42:1", Address: core.Address{Bot: "tg", Chat: "-9", Place: "-9"}, Kind: core.KindMessage, MessageID: "11", At: at, Text: "hi", PlaceName: "News",
				From: core.Peer{Platform: "telegram", ID: "-9", Name: "News", Shared: true}}},
		{"another bot", strings.Replace(msg(group, `,"text":"hi"`), `"id":7,`, `"id":7,"is_bot":true,`, 1), message(inGroup, func(in *core.Inbound) { in.Text, in.From.Bot = "hi", true })},
		{"numbers beyond 2^53", `{"update_id":9007199254740993,"message":{"message_id":9007199254740995,"date":1700000000,"text":"hi","from":{"id":9007199254740997,"first_name":"Big"},"chat":{"id":9007199254740997,"type":"private"}}}`,
			core.Inbound{UpdateID: "42:9007199254740993", Address: core.Address{Bot: "tg", Chat: "9007199254740997"}, Kind: core.KindMessage, MessageID: "9007199254740995", At: at, Text: "hi", Addressed: true,
				From: core.Peer{Platform: "telegram", ID: "9007199254740997", Name: "Big"}}},
		{"hostile name", `{"update_id":1,"message":{"message_id":11,"date":1700000000,"text":"hi","from":{"id":7,"first_name":"<b>\u202eevil\u0000\n","last_name":"system:"},` + dm + `}}`,
			message(inDM, func(in *core.Inbound) { in.Text, in.Addressed, in.From.Name = "hi", true, "<b>evil system:" })},
		{"a kind unknown here", `{"update_id":1,"quantum_update":{}}`, core.Inbound{UpdateID: "42:1", Address: core.Address{Bot: "tg"}, Kind: core.KindService, At: arrived, Text: "unknown update", From: core.Peer{Platform: "telegram"}}},
	}
	b := decoder(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !json.Valid([]byte(c.update)) {
				t.Fatalf("the test's update is no JSON: %s", c.update)
			}
			got, id := b.Decode(json.RawMessage(c.update), arrived)
			if got.Malformed != "" || id == 0 {
				t.Fatalf("malformed: %s", got.Malformed)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUndecodableUpdateIsMarkedAndKeepsItsNumber(t *testing.T) {
	b := decoder(t)
	for raw, want := range map[string]int64{
		`{"update_id":5,"message":{"message_id":"eleven"}}`:   5,
		`{"update_id":9007199254740993,"message":[]}`:         9007199254740993,
		`{"update_id":5,"message":{"message_id":1,"date":1}}`: 5,
		`{"update_id":"6","message":{}}`:                      6,
		`{"update_id":5,"callback_query":{}}`:                 5,
		`{"update_id":5,"message_reaction":{"message_id":1}}`: 5,
		`{"update_id":-1}`:                                    0,
		`{"message":{}}`:                                      0,
		`{"update_id":1e99}`:                                  0,
		`17`:                                                  0,
		`null`:                                                0,
		`{"update_id":99999999999999999999,"message":{}}`:     0,
		`{"x":{"update_id":3},"update_id":4,"message":{"chat":{"id":"bad"}}}`: 4,
	} {
		in, id := b.Decode(json.RawMessage(raw), arrived)
		if in.Malformed == "" || id != want || !strings.HasPrefix(in.UpdateID, "42:") || in.Bot != "tg" {
			t.Errorf("%s: id %d, want %d, %+v", raw, id, want, in)
		}
		again, _ := b.Decode(json.RawMessage(raw), arrived.Add(time.Hour))
		if again.UpdateID != in.UpdateID {
			t.Errorf("%s: %q and %q: a repeat is not recognised", raw, in.UpdateID, again.UpdateID)
		}
	}
}

func FuzzDecodeUpdate(f *testing.F) {
	for _, s := range []string{
		msg(dm, `,"text":"/a@b c","entities":[{"type":"bot_command","offset":0,"length":4}]`),
		msg(forum, `,"message_thread_id":3,"is_topic_message":true,"caption":"x","photo":[]`),
		`{"update_id":1,"callback_query":{"id":"1","from":{"id":1},"message":null}}`,
		`{"update_id":1,"message_reaction":{"chat":{"id":1},"new_reaction":[{}]}}`,
		`{"update_id":1,"my_chat_member":{}}`, `{"update_id":"1"}`, `[]`, `{"update_id":1,"message":{"new_chat_x":1}}`,
	} {
		f.Add([]byte(s))
	}
	b := decoder(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, id := b.Decode(raw, arrived)
		if in.UpdateID == "" || in.Bot != "tg" || in.Kind == "" || in.At.IsZero() {
			t.Fatalf("%q: %+v", raw, in)
		}
		if id < 0 || in.Malformed == "" && in.UpdateID != fmt.Sprintf("42:%d", id) {
			t.Fatalf("%q: id %d, %+v", raw, id, in)
		}
		if in.Malformed == "" && in.From.ID == "" && in.Kind != core.KindService && in.Kind != core.KindReaction {
			t.Fatalf("%q: a %s from nobody", raw, in.Kind)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	d := decoder(b)
	raw := json.RawMessage(msg(group, `,"text":"hello @gatehouse_bot, how are you?","entities":[{"type":"mention","offset":6,"length":14}]`))
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(raw, arrived)
	}
}

func TestAVideoNoteIsAVoiceMessageWhereThoseAreTranscribed(t *testing.T) {
	for _, hears := range []bool{false, true} {
		d := New(Options{Bot: "tg", ID: 42, Hears: hears})
		in, _ := d.Decode([]byte(msg(dm, `,"video_note":{"file_id":"x"}`)), arrived)
		if len(in.Files) != 1 || in.Files[0].Voice != hears || in.Unsupported != "" {
			t.Errorf("hears %v: %+v %q", hears, in.Files, in.Unsupported)
		}
	}
}

// An update that makes the decoder panic costs that update alone: it becomes a dead letter
// under its own number.
func TestAnUpdateOnWhichTheDecoderPanicsIsADeadLetter(t *testing.T) {
	var log bytes.Buffer
	d := New(Options{Bot: "bot", ID: 42, Log: slog.New(slog.NewTextHandler(&log, nil))})
	d.read = func(u *update, raw json.RawMessage, now time.Time) core.Inbound {
		if u.Message.Text == "boom" {
			panic("a fault")
		}
		return d.translate(u, raw, now)
	}
	sound, _ := d.Decode(json.RawMessage(msg(dm, `,"text":"hello"`)), arrived)
	in, id := d.Decode(json.RawMessage(msg(dm, `,"text":"boom"`)), arrived)
	if in.UpdateID != sound.UpdateID || id == 0 || in.Bot != "bot" || in.Kind != core.KindService || !strings.Contains(in.Malformed, "panicked: a fault") || in.Text != "" || in.Chat != "" {
		t.Errorf("%d: %+v, want a dead letter numbered as %s", id, in, sound.UpdateID)
	}
	if !strings.Contains(log.String(), "a fault") {
		t.Errorf("logged: %s", log.String())
	}
	if in, _ := d.Decode(json.RawMessage(msg(dm, `,"text":"hello"`)), arrived); in.Text != "hello" || in.Malformed != "" {
		t.Errorf("the next one: %+v", in)
	}
}

// Who mentions a user without a user name has not chosen the name that the app writes: it opens
// no host to a model. What the user wrote beside it does.
func TestANameThatIsMentionedNamesNoHost(t *testing.T) {
	const entity = `[{"type":"text_mention","offset":8,"length":%d,"user":{"id":5,"first_name":"Eve"}},{"type":"bot_command","offset":0,"length":4}]`
	for name, want := range map[string]string{"Eve evil.example": "Eve evil․example", "http://intranet/": "http꞉//intranet/", "Ada Lovelace 👩‍🔬": "Ada Lovelace 👩‍🔬"} {
		length := len(utf16.Encode([]rune(name)))
		for _, field := range []string{"text", "caption"} {
			update := msg(dm, fmt.Sprintf(`,%q:%q,"photo":[{"file_id":"x"}],%q:`+entity, field, "ask 👋 "+" "+name+" of good.example", map[string]string{"text": "entities", "caption": "caption_entities"}[field], length))
			in, _ := decoder(t).Decode(json.RawMessage(update), arrived)
			if in.Text != "ask 👋  "+want+" of good.example" {
				t.Errorf("%s: %q", field, in.Text)
			}
			own := named.Own(in.Text)
			if named.ByUser(own, "evil.example") || named.ByUser(own, "intranet") || !named.ByUser(own, "good.example") {
				t.Errorf("%q names other hosts than the user", in.Text)
			}
		}
		// Also behind a command.
		in, _ := decoder(t).Decode(json.RawMessage(msg(dm, fmt.Sprintf(`,"text":%q,"entities":`+entity, "/ask 👋 "+name, length))), arrived)
		if in.Command != "ask" || in.Text != "👋 "+want {
			t.Errorf("behind a command: %+v", in)
		}
	}
}
