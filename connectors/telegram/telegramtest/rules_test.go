package telegramtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

func TestTokensAreChecked(t *testing.T) {
	o := world(t)
	for _, c := range []struct {
		token string
		code  int
		text  string
	}{
		{"garbage", 404, "Not Found"},
		{"123:short", 404, "Not Found"},
		{"7000000001:" + strings.Repeat("x", 35), 401, "Unauthorized"},
	} {
		r := o.callAs(c.token, "getMe", nil)
		if r.ErrorCode != c.code || r.Description != c.text || r.status != c.code {
			t.Errorf("token %q: got %d %q", c.token, r.ErrorCode, r.Description)
		}
	}
	o.refused("makeCoffee", nil, 404, "Not Found: method not found")
	old := o.Token()
	fresh := o.Bot().Revoke()
	if r := o.callAs(old, "getMe", nil); r.ErrorCode != 401 || r.Description != "Unauthorized" {
		t.Errorf("revoked token: %d %q", r.ErrorCode, r.Description)
	}
	if r := o.callAs(fresh, "getMe", nil); !r.OK {
		t.Errorf("new token: %d %q", r.ErrorCode, r.Description)
	}
}

func TestParametersComeInFourWaysAndMethodsInAnyCase(t *testing.T) {
	o := world(t, noFlood)
	id := o.first.Chat
	check := func(how string, res *http.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(how, err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != 200 || !bytes.Contains(b, []byte(`"text":"`+how+`"`)) {
			t.Errorf("%s: %d %s", how, res.StatusCode, b)
		}
	}
	base := o.URL() + "/bot" + o.Token()
	chat := jsonOf(id)
	res, err := http.Get(base + "/SENDmessage?chat_id=" + chat + "&text=query")
	check("query", res, err)
	res, err = http.PostForm(base+"/sendmessage", url.Values{"chat_id": {chat}, "text": {"form"}})
	check("form", res, err)
	res, err = http.Post(base+"/sendMessage", "application/json", strings.NewReader(`{"chat_id":`+chat+`,"text":"json","reply_markup":{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}}`))
	check("json", res, err)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	w.WriteField("chat_id", chat)
	w.WriteField("text", "multipart")
	w.Close()
	res, err = http.Post(base+"/sendMessage", w.FormDataContentType(), &body)
	check("multipart", res, err)
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestSendMessageRefusesWhatThePlatformRefuses(t *testing.T) {
	o := world(t, noFlood)
	stranger := o.NewUser("Never met")
	group := o.NewGroup(telegramtest.Supergroup, "Club", o.ada, stranger)
	chat := o.first.Chat
	for _, c := range []struct {
		name string
		p    m
		code int
		text string
	}{
		{"no chat", m{"text": "x"}, 400, "Bad Request: chat_id is empty"},
		{"unknown chat", m{"chat_id": 424242, "text": "x"}, 400, "Bad Request: chat not found"},
		{"unknown group", m{"chat_id": -424242, "text": "x"}, 400, "Bad Request: chat not found"},
		{"never written", m{"chat_id": stranger.ID(), "text": "x"}, 403, "Forbidden: bot can't initiate conversation with a user"},
		{"no text", m{"chat_id": chat}, 400, "Bad Request: message text is empty"},
		{"white space", m{"chat_id": chat, "text": " \n "}, 400, "Bad Request: text must be non-empty"},
		{"4097", m{"chat_id": chat, "text": strings.Repeat("x", 4097)}, 400, "Bad Request: message is too long"},
		{"2049 emoji are 4098 units", m{"chat_id": chat, "text": strings.Repeat("😀", 2049)}, 400, "Bad Request: message is too long"},
		{"a megabyte", m{"chat_id": chat, "text": strings.Repeat("x", 1<<20)}, 400, "Bad Request: text is too long"},
		{"parse mode", m{"chat_id": chat, "text": "x", "parse_mode": "BBCode"}, 400, "Bad Request: unsupported parse_mode"},
		{"thread in private", m{"chat_id": chat, "text": "x", "message_thread_id": 7}, 400, "Bad Request: message thread not found"},
		{"reply to nothing", m{"chat_id": chat, "text": "x", "reply_parameters": m{"message_id": 999}}, 400, "Bad Request: message to be replied not found"},
		{"reply without id", m{"chat_id": chat, "text": "x", "reply_parameters": m{"quote": "hello"}}, 400, `Bad Request: can't find field "message_id"`},
		{"reply no object", m{"chat_id": chat, "text": "x", "reply_parameters": "7"}, 400, "Bad Request: object expected as reply parameters"},
		{"quote of other words", m{"chat_id": chat, "text": "x", "reply_parameters": m{"message_id": o.first.ID, "quote": "good-bye"}}, 400, "Bad Request: QUOTE_TEXT_INVALID"},
		{"markup text", m{"chat_id": chat, "text": "x", "reply_markup": "{"}, 400, "Bad Request: can't parse reply keyboard markup JSON object"},
		{"markup array", m{"chat_id": chat, "text": "x", "reply_markup": []int{1}}, 400, "Bad Request: object expected as reply markup"},
		{"rows", m{"chat_id": chat, "text": "x", "reply_markup": m{"inline_keyboard": []any{m{}}}}, 400, `Bad Request: field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays`},
		{"bare button", m{"chat_id": chat, "text": "x", "reply_markup": keyboard(m{"text": "a"})}, 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"no label", m{"chat_id": chat, "text": "x", "reply_markup": keyboard(m{"text": "", "callback_data": "a"})}, 400, "Bad Request: inline keyboard button text must be non-empty"},
		{"65 bytes", m{"chat_id": chat, "text": "x", "reply_markup": keyboard(m{"text": "a", "callback_data": strings.Repeat("d", 65)})}, 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"33 Cyrillic letters are 66 bytes", m{"chat_id": chat, "text": "x", "reply_markup": keyboard(m{"text": "a", "callback_data": strings.Repeat("я", 33)})}, 400, "Bad Request: BUTTON_DATA_INVALID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := *o
			o.T = t
			o.refused("sendMessage", c.p, c.code, c.text)
		})
	}
	o.must("sendMessage", m{"chat_id": chat, "text": strings.Repeat("😀", 2048)}, nil)
	o.must("sendMessage", m{"chat_id": chat, "text": "x", "reply_markup": keyboard(m{"text": "a", "callback_data": strings.Repeat("d", 64)})}, nil)
	o.must("sendMessage", m{"chat_id": chat, "text": "x", "reply_parameters": m{"message_id": 999, "allow_sending_without_reply": true}}, nil)
	o.must("sendMessage", m{"chat_id": group.ID(), "text": "a thread where there are no topics is ignored", "message_thread_id": 7}, nil)
}

func keyboard(b m) m { return m{"inline_keyboard": []any{[]any{b}}} }

func TestEntitiesAreCheckedInUTF16Units(t *testing.T) {
	o := world(t, noFlood)
	chat := o.first.Chat
	bold := func(offset, length int) []m { return []m{{"type": "bold", "offset": offset, "length": length}} }
	for _, c := range []struct {
		name     string
		text     string
		entities any
		want     string
	}{
		{"inside a pair", "a😀b", bold(2, 2), "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 5"},
		{"ends inside a pair", "a😀b", bold(0, 2), "Bad Request: entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 5"},
		{"beyond the end", "a😀b", bold(0, 5), "Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 5"},
		{"begins at the end", "abc", bold(3, 1), "Bad Request: entity begins after the end of the text at UTF-16 offset 3"},
		{"negative offset", "abc", bold(-1, 1), "Bad Request: receive an entity with incorrect offset -1"},
		{"negative length", "abc", bold(0, -1), "Bad Request: receive an entity with incorrect length -1"},
		{"no object", "abc", []int{1}, "Bad Request: can't parse MessageEntity: expected an Object"},
		{"no offset", "abc", []m{{"type": "bold", "length": 1}}, `Bad Request: can't parse MessageEntity: Can't find field "offset"`},
		{"unknown type", "abc", []m{{"type": "blink", "offset": 0, "length": 1}}, "Bad Request: can't parse MessageEntity: Unsupported type specified"},
		{"relative link", "abc", []m{{"type": "text_link", "offset": 0, "length": 1, "url": "#top"}}, "Bad Request: entity URL '#top' is invalid: URL host is empty"},
		{"mail link", "abc", []m{{"type": "text_link", "offset": 0, "length": 1, "url": "file:///etc/passwd"}}, "Bad Request: entity URL 'file:///etc/passwd' is invalid: Unsupported URL protocol"},
		{"link to localhost", "abc", []m{{"type": "text_link", "offset": 0, "length": 1, "url": "http://localhost:1"}}, "Bad Request: entity URL 'http://localhost:1' is invalid: Wrong HTTP URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := *o
			o.T = t
			o.refused("sendMessage", m{"chat_id": chat, "text": c.text, "entities": c.entities}, 400, c.want)
		})
	}
	var got sent
	o.must("sendMessage", m{"chat_id": chat, "text": "  a😀b\r c  ", "entities": []m{{"type": "bold", "offset": 3, "length": 2}, {"type": "italic", "offset": 7, "length": 2}}}, &got)
	if got.Text != "a😀b c" || got.Entities[0]["offset"] != 1.0 || got.Entities[0]["length"] != 2.0 || got.Entities[1]["offset"] != 4.0 {
		t.Errorf("trimmed and cleaned: %q %v", got.Text, got.Entities)
	}
	o.must("sendMessage", m{"chat_id": chat, "text": "see https://example.com/a. or /help @gatehouse_bot"}, &got)
	var kinds []string
	for _, e := range got.Entities {
		kinds = append(kinds, e["type"].(string))
	}
	if strings.Join(kinds, " ") != "url bot_command mention" || got.Entities[0]["length"] != 21.0 {
		t.Errorf("found entities: %v", got.Entities)
	}
}

func TestEditsRefuseWhatThePlatformRefuses(t *testing.T) {
	o := world(t, noFlood)
	chat := o.first.Chat
	var mine sent
	o.must("sendMessage", m{"chat_id": chat, "text": "one", "reply_markup": keyboard(m{"text": "a", "callback_data": "b"})}, &mine)
	const same = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"
	o.refused("editMessageText", m{"chat_id": chat, "message_id": mine.MessageID, "text": "one", "reply_markup": keyboard(m{"text": "a", "callback_data": "b"})}, 400, same)
	o.refused("editMessageText", m{"chat_id": chat, "message_id": 999, "text": "two"}, 400, "Bad Request: message to edit not found")
	o.refused("editMessageText", m{"chat_id": chat, "message_id": o.first.ID, "text": "two"}, 400, "Bad Request: message can't be edited")
	o.refused("editMessageText", m{"text": "two"}, 400, "Bad Request: message identifier is not specified")
	o.refused("editMessageText", m{"chat_id": chat, "message_id": mine.MessageID}, 400, "Bad Request: message text is empty")
	o.refused("editMessageText", m{"chat_id": chat, "message_id": mine.MessageID, "text": strings.Repeat("x", 4097)}, 400, "Bad Request: message is too long")
	var edited sent
	o.must("editMessageText", m{"chat_id": chat, "message_id": mine.MessageID, "text": "one"}, &edited)
	if edited.EditDate == 0 {
		t.Error("an edit has a date")
	}
	history := o.History(o.ada.DM())
	if last := history[len(history)-1]; len(last.Buttons) != 0 || last.Edits != 1 {
		t.Errorf("an edit without reply_markup takes the buttons away: %+v", last)
	}
	o.refused("editMessageReplyMarkup", m{"chat_id": chat, "message_id": mine.MessageID}, 400, same)
	o.must("editMessageReplyMarkup", m{"chat_id": chat, "message_id": mine.MessageID, "reply_markup": keyboard(m{"text": "a", "callback_data": "b"})}, nil)
	o.refused("deleteMessage", m{"chat_id": chat, "message_id": 999}, 400, "Bad Request: message to delete not found")
	o.must("deleteMessage", m{"chat_id": chat, "message_id": mine.MessageID}, nil)
	o.refused("editMessageText", m{"chat_id": chat, "message_id": mine.MessageID, "text": "two"}, 400, "Bad Request: message to edit not found")
}

func TestABlockedOrKickedBotIsForbidden(t *testing.T) {
	o := world(t, noFlood)
	o.updates(m{"offset": -1})
	o.ada.Block()
	o.refused("sendMessage", m{"chat_id": o.ada.ID(), "text": "x"}, 403, "Forbidden: bot was blocked by the user")
	o.refused("sendChatAction", m{"chat_id": o.ada.ID(), "action": "typing"}, 403, "Forbidden: bot was blocked by the user")
	o.ada.Unblock()
	o.must("sendMessage", m{"chat_id": o.ada.ID(), "text": "x"}, nil)
	for _, c := range []struct {
		kind telegramtest.GroupKind
		word string
	}{{telegramtest.Basic, "group"}, {telegramtest.Supergroup, "supergroup"}} {
		g := o.NewGroup(c.kind, "Club", o.ada)
		g.SetBot(o.Bot(), o.ada, "kicked")
		o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x"}, 403, "Forbidden: bot was kicked from the "+c.word+" chat")
		g.SetBot(o.Bot(), o.ada, "left")
		o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x"}, 403, "Forbidden: bot is not a member of the "+c.word+" chat")
	}
	members := 0
	for _, u := range o.updates(m{"offset": 0}) {
		if u.Member != nil {
			members++
		}
	}
	if members != 8 {
		t.Errorf("%d my_chat_member updates, want block, unblock and three per group", members)
	}
}

func TestAMigratedGroupNamesItsNewID(t *testing.T) {
	o := world(t, noFlood)
	g := o.NewGroup(telegramtest.Basic, "Club", o.ada)
	super := g.Migrate(o.ada)
	r := o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x"}, 400, "Bad Request: group chat was upgraded to a supergroup chat")
	if r.Parameters.MigrateTo != super.ID() || super.ID() > -1_000_000_000_000 {
		t.Errorf("migrate_to_chat_id %d, want %d", r.Parameters.MigrateTo, super.ID())
	}
	o.must("sendMessage", m{"chat_id": super.ID(), "text": "x"}, nil)
	b, _ := json.Marshal(rawUpdates(o))
	for _, want := range []string{`"migrate_to_chat_id":` + jsonOf(super.ID()), `"migrate_from_chat_id":` + jsonOf(g.ID())} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no update has %s", want)
		}
	}
}

func rawUpdates(o *one) []json.RawMessage {
	var raw []json.RawMessage
	o.clock.Advance(4 * time.Second)
	o.must("getUpdates", m{}, &raw)
	return raw
}

func TestForumTopics(t *testing.T) {
	o := world(t, noFlood)
	g := o.NewGroup(telegramtest.Forum, "Club", o.ada)
	thread := g.NewTopic(o.ada, "Books")
	o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x", "message_thread_id": thread + 100}, 400, "Bad Request: message thread not found")
	o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x", "message_thread_id": 1}, 400, "Bad Request: message thread not found")
	o.must("sendChatAction", m{"chat_id": g.ID(), "action": "typing", "message_thread_id": 1}, nil)
	var got sent
	o.must("sendMessage", m{"chat_id": g.ID(), "text": "x", "message_thread_id": thread}, &got)
	if got.ThreadID != thread {
		t.Errorf("thread %d, want %d", got.ThreadID, thread)
	}
	got = sent{}
	o.must("sendMessage", m{"chat_id": g.ID(), "text": "General is sent without one"}, &got)
	if got.ThreadID != 0 {
		t.Errorf("General has thread %d", got.ThreadID)
	}
	in, err := o.ada.Post(g.Conversation(), telegramtest.Outgoing{Text: "in the topic", Thread: thread})
	if err != nil || in.Thread != thread || in.ReplyTo != 0 {
		t.Errorf("a person's message in a topic: %+v, %v", in, err)
	}
	us := o.updates(nil)
	last := us[len(us)-1].Message
	if last.ThreadID != thread || last.ReplyTo == nil || last.ReplyTo.MessageID != thread {
		t.Errorf("the bot sees it answer the topic's first message: %+v", last)
	}
	g.DeleteTopic(thread)
	o.refused("sendMessage", m{"chat_id": g.ID(), "text": "x", "message_thread_id": thread}, 400, "Bad Request: message thread not found")
}

func TestFloodControl(t *testing.T) {
	o := world(t)
	chat := o.first.Chat
	for range 3 {
		o.must("sendMessage", m{"chat_id": chat, "text": "x"}, nil)
	}
	r := o.refused("sendMessage", m{"chat_id": chat, "text": "x"}, 429, "Too Many Requests: retry after 1")
	if r.Parameters.RetryAfter != 1 || r.header.Get("Retry-After") != "1" {
		t.Errorf("retry_after %d, header %q", r.Parameters.RetryAfter, r.header.Get("Retry-After"))
	}
	o.clock.Advance(time.Second)
	o.must("sendMessage", m{"chat_id": chat, "text": "x"}, nil)
	o.SetFlood(false)
	o.must("sendMessage", m{"chat_id": chat, "text": "x"}, nil)
	o.SetFlood(true)

	g := o.NewGroup(telegramtest.Supergroup, "Club", o.ada)
	for range 20 {
		o.clock.Advance(1000 * time.Millisecond)
		if r := o.call("sendMessage", m{"chat_id": g.ID(), "text": "x"}); !r.OK {
			t.Fatal(r.Description)
		}
	}
	sent := 0
	for range 20 { // 20 more seconds at the pace of a chat: a group allows a third
		o.clock.Advance(time.Second)
		if o.call("sendMessage", m{"chat_id": g.ID(), "text": "x"}).OK {
			sent++
		}
	}
	if sent > 14 || sent < 6 {
		t.Errorf("%d of 20 messages passed a group's limit", sent)
	}
	ok := 0
	o.clock.Advance(time.Minute)
	people := make([]*telegramtest.User, 40)
	for i := range people {
		people[i] = o.NewUser("P")
		people[i].Send("hi")
	}
	for _, u := range people {
		if o.call("sendMessage", m{"chat_id": u.ID(), "text": "x"}).OK {
			ok++
		}
	}
	if ok != 30 {
		t.Errorf("%d of 40 messages to 40 people passed at once, want 30", ok)
	}
}

func TestDrafts(t *testing.T) {
	o := world(t)
	chat := o.first.Chat
	g := o.NewGroup(telegramtest.Supergroup, "Club", o.ada)
	o.refused("sendMessageDraft", m{"chat_id": chat, "text": "x", "draft_id": 0}, 400, "Bad Request: RANDOM_ID_EMPTY")
	o.refused("sendMessageDraft", m{"chat_id": g.ID(), "text": "x", "draft_id": 1}, 400, "Bad Request: TEXTDRAFT_PEER_INVALID")
	o.refused("sendMessageDraft", m{"chat_id": chat, "text": strings.Repeat("x", 4097), "draft_id": 1}, 400, "Bad Request: MESSAGE_TOO_LONG")
	for _, text := range []string{"", "On", "Once upon"} {
		o.must("sendMessageDraft", m{"chat_id": chat, "text": text, "draft_id": 1}, nil)
	}
	if d := o.Screen(o.ada.DM()).Drafts; len(d) != 1 || d[0].Text != "Once upon" {
		t.Errorf("drafts: %+v", d)
	}
	o.must("sendMessage", m{"chat_id": chat, "text": "Once upon a time"}, nil)
	if d := o.Screen(o.ada.DM()).Drafts; len(d) != 0 {
		t.Errorf("a message ends its draft: %+v", d)
	}
	o.must("sendMessageDraft", m{"chat_id": chat, "text": "forgotten", "draft_id": 2}, nil)
	o.clock.Advance(30 * time.Second)
	if d := o.Screen(o.ada.DM()).Drafts; len(d) != 0 {
		t.Errorf("a draft lives 30 s: %+v", d)
	}
	old := world(t, func(opt *telegramtest.Options) { opt.NoDrafts = true })
	old.refused("sendMessageDraft", m{"chat_id": old.first.Chat, "text": "x", "draft_id": 1}, 404, "Not Found: method not found")
}

func TestCallbackQueriesAreAnsweredOnceAndInTime(t *testing.T) {
	o := world(t, noFlood)
	const old = "Bad Request: query is too old and response timeout expired or query ID is invalid"
	var mine sent
	o.must("sendMessage", m{"chat_id": o.first.Chat, "text": "?", "reply_markup": keyboard(m{"text": "Yes", "callback_data": "ask:1"})}, &mine)
	if _, err := o.ada.Press(o.ada.DM(), mine.MessageID, "ask:2"); err == nil {
		t.Error("a button that is not there was pressed")
	}
	press := func() string {
		t.Helper()
		id, err := o.ada.Press(o.ada.DM(), mine.MessageID, "ask:1")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := press()
	us := o.updates(m{"offset": -1})
	if q := us[0].Query; q == nil || q.ID != id || q.Data != "ask:1" {
		t.Fatalf("callback query: %+v", us)
	}
	o.refused("answerCallbackQuery", m{"callback_query_id": "12"}, 400, old)
	o.refused("answerCallbackQuery", m{"callback_query_id": id, "text": strings.Repeat("x", 201)}, 400, "Bad Request: MESSAGE_TOO_LONG")
	var answers []telegramtest.Answer
	stop := o.Watch(func(c telegramtest.Change) {
		if c.Answer != nil {
			answers = append(answers, *c.Answer)
		}
	})
	o.must("answerCallbackQuery", m{"callback_query_id": id, "text": "Thanks", "show_alert": true}, nil)
	stop()
	if len(answers) != 1 || answers[0].Text != "Thanks" || !answers[0].Alert || answers[0].User != o.ada.ID() {
		t.Errorf("the person sees %+v", answers)
	}
	o.refused("answerCallbackQuery", m{"callback_query_id": id}, 400, old)
	id = press()
	o.clock.Advance(16 * time.Second)
	o.refused("answerCallbackQuery", m{"callback_query_id": id}, 400, old)
}

func TestFiles(t *testing.T) {
	o := world(t, noFlood)
	o.updates(m{"offset": -1})
	post := func(f telegramtest.File) (fileID string) {
		t.Helper()
		if _, err := o.ada.Post(o.ada.DM(), telegramtest.Outgoing{Text: "look", File: &f}); err != nil {
			t.Fatal(err)
		}
		raw := rawUpdates(o)
		var u struct {
			Message struct {
				Caption  string
				Document struct {
					FileID string `json:"file_id"`
				}
			}
		}
		if err := json.Unmarshal(raw[len(raw)-1], &u); err != nil || u.Message.Caption != "look" {
			t.Fatalf("%s: %v", raw[len(raw)-1], err)
		}
		return u.Message.Document.FileID
	}
	o.refused("getFile", m{}, 400, "Bad Request: file_id not specified")
	o.refused("getFile", m{"file_id": "nonsense"}, 400, "Bad Request: invalid file_id")
	big := post(telegramtest.File{Kind: "document", Name: "film.mkv", Size: 20<<20 + 1})
	o.refused("getFile", m{"file_id": big}, 400, "Bad Request: file is too big")
	small := post(telegramtest.File{Kind: "document", Name: "a.txt", Data: []byte("the content")})
	var f struct {
		Path string `json:"file_path"`
		Size int    `json:"file_size"`
	}
	o.must("getFile", m{"file_id": small}, &f)
	get := func() (int, string) {
		res, err := http.Get(o.URL() + "/file/bot" + o.Token() + "/" + f.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	if status, body := get(); status != 200 || body != "the content" || f.Size != 11 {
		t.Errorf("download: %d %q, size %d", status, body, f.Size)
	}
	o.clock.Advance(time.Hour)
	if status, body := get(); status != 404 || body != `{"ok":false,"error_code":404,"description":"Not Found"}` {
		t.Errorf("an hour later: %d %q", status, body)
	}
}

func TestCommandsReactionsAndChats(t *testing.T) {
	o := world(t, noFlood)
	many := make([]m, 101)
	for i := range many {
		many[i] = m{"command": "c", "description": "d"}
	}
	for _, c := range []struct {
		commands any
		want     string
	}{
		{many, "Bad Request: BOT_COMMANDS_TOO_MUCH"},
		{[]m{{"command": "Start", "description": "d"}}, "Bad Request: BOT_COMMAND_INVALID"},
		{[]m{{"command": "", "description": "d"}}, "Bad Request: command must be non-empty"},
		{[]m{{"command": "a"}}, "Bad Request: command description must be non-empty"},
		{[]m{{"command": strings.Repeat("a", 33), "description": "d"}}, "Bad Request: command length must not exceed 32"},
		{[]m{{"command": "a", "description": strings.Repeat("d", 257)}}, "Bad Request: command description length must not exceed 256"},
		{m{}, "Bad Request: expected an Array of BotCommand"},
		{"[", "Bad Request: can't parse commands JSON object"},
	} {
		o.refused("setMyCommands", m{"commands": c.commands}, 400, c.want)
	}
	o.must("setMyCommands", m{"commands": []m{{"command": "start", "description": "begin"}}}, nil)
	var list []telegramtest.Command
	o.must("getMyCommands", nil, &list)
	if len(list) != 1 || list[0].Command != "start" || o.Bot().Commands()[0].Description != "begin" {
		t.Errorf("commands: %v", list)
	}
	o.refused("sendChatAction", m{"chat_id": o.first.Chat, "action": "dance"}, 400, "Bad Request: wrong parameter action in request")
	o.must("sendChatAction", m{"chat_id": o.first.Chat, "action": "typing"}, nil)
	if ty := o.Screen(o.ada.DM()).Typing; len(ty) != 1 || ty[0].Action != "typing" {
		t.Errorf("typing: %+v", ty)
	}
	o.clock.Advance(5 * time.Second)
	if ty := o.Screen(o.ada.DM()).Typing; len(ty) != 0 {
		t.Errorf("typing shows for 5 s: %+v", ty)
	}
	react := func(e string) m {
		return m{"chat_id": o.first.Chat, "message_id": o.first.ID, "reaction": []m{{"type": "emoji", "emoji": e}}}
	}
	o.refused("setMessageReaction", react("🧨"), 400, "Bad Request: REACTION_INVALID")
	o.refused("setMessageReaction", m{"chat_id": o.first.Chat, "message_id": 99, "reaction": []m{}}, 400, "Bad Request: message to react not found")
	o.must("setMessageReaction", react("👍"), nil)
	if r := o.History(o.ada.DM())[0].Reactions; len(r) != 1 || r[0].Emoji[0] != "👍" {
		t.Errorf("reactions: %+v", r)
	}
	o.refused("getChat", m{"chat_id": 5}, 400, "Bad Request: chat not found")
	var chat struct{ Type string }
	o.must("getChat", m{"chat_id": o.first.Chat}, &chat)
	if chat.Type != "private" {
		t.Errorf("chat: %+v", chat)
	}
	o.refused("setWebhook", m{"url": "http://example.com"}, 400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
	var me struct {
		IsBot    bool `json:"is_bot"`
		Username string
	}
	o.must("getme", nil, &me)
	if !me.IsBot || me.Username != "gatehouse_bot" {
		t.Errorf("getMe: %+v", me)
	}
	if r := form("sendMessage", o, url.Values{"chat_id": {jsonOf(o.first.Chat)}, "text": {"*x*"}, "parse_mode": {"MarkdownV2"}}); r.OK {
		t.Error("markup was taken for text")
	}
}
