package discordtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/discord/discordtest"
)

func TestWhoMayCallIsChecked(t *testing.T) {
	o := world(t, noFlood)
	o.must("GET", "users/@me", nil, nil)
	o.refused("GET", "nothing", nil, 404, 0, "404: Not Found")
	o.refused("PUT", "users/@me", nil, 405, 0, "405: Method Not Allowed")
	for _, auth := range []string{"", o.Token(), "Bearer " + o.Token(), "Bot wrong"} {
		o.header = http.Header{"Authorization": {auth}}
		o.refused("GET", "users/@me", nil, 401, 0, "401: Unauthorized")
	}
	o.header = http.Header{"User-Agent": {"Go-http-client/1.1"}}
	o.refused("GET", "users/@me", nil, 403, 40333, "internal network error")
	o.header = nil
	o.Bot().Revoke()
	o.must("GET", "users/@me", nil, nil)
	old := o.Token()
	o.Bot().Revoke()
	o.header = http.Header{"Authorization": {"Bot " + old}}
	o.refused("GET", "users/@me", nil, 401, 0, "401: Unauthorized")
	res, err := http.Get(o.URL() + "/api/v5/users/@me")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode/100 == 2 {
		t.Error("an old API version is served")
	}
}

func TestBodiesAreChecked(t *testing.T) {
	o := world(t, noFlood)
	o.refused("POST", messages(o.general), []byte("{"), 400, 50109, "The request body contains invalid JSON.")
	o.refused("POST", messages(o.general), []byte(""), 400, 50109, "The request body contains invalid JSON.")
	o.header = http.Header{"Content-Type": {"text/plain"}}
	o.wrong("POST", messages(o.general), m{"content": "x"}, "", "CONTENT_TYPE_INVALID",
		`Expected "Content-Type" header to be one of {'application/x-www-form-urlencoded', 'application/json', 'multipart/form-data'}.`)
}

func button(id string) m { return m{"type": 2, "style": 1, "label": "Go", "custom_id": id} }

func row(list ...any) m { return m{"type": 1, "components": list} }

func TestCreateMessageRefusesWrongForms(t *testing.T) {
	o := world(t, noFlood)
	six := []any{button("1"), button("2"), button("3"), button("4"), button("5"), button("6")}
	for _, c := range []struct {
		name              string
		p                 m
		field, code, text string
	}{
		{"2001", m{"content": strings.Repeat("x", 2001)}, "content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."},
		{"2001 emoji", m{"content": strings.Repeat("😀", 2001)}, "content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."},
		{"content type", m{"content": m{}}, "content", "STRING_TYPE_CONVERT", `Could not interpret "{}" as string.`},
		{"long nonce", m{"content": "x", "nonce": strings.Repeat("1", 26)}, "nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer characters long."},
		{"nonce type", m{"content": "x", "nonce": true}, "nonce", "NONCE_TYPE_INVALID_TYPE", "This field must be a string or integer."},
		{"mention kind", m{"content": "x", "allowed_mentions": m{"parse": []string{"all"}}}, "allowed_mentions.parse.0", "BASE_TYPE_CHOICES", "Value must be one of {'users', 'roles', 'everyone'}."},
		{"both", m{"content": "x", "allowed_mentions": m{"parse": []string{"users"}, "users": []string{"1"}}}, "allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", `parse:["users"] and users: [ids...] are mutually exclusive.`},
		{"reply to nothing", m{"content": "x", "message_reference": m{"message_id": "7"}}, "message_reference", "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "Unknown message"},
		{"reply without id", m{"content": "x", "message_reference": m{}}, "message_reference.message_id", "BASE_TYPE_REQUIRED", "This field is required"},
		{"11 embeds", m{"embeds": make([]m, 11)}, "embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length."},
		{"six rows", m{"content": "x", "components": []m{row(button("1")), row(button("2")), row(button("3")), row(button("4")), row(button("5")), row(button("6"))}}, "components", "BASE_TYPE_MAX_LENGTH", "Must be 5 or fewer in length."},
		{"bare button", m{"content": "x", "components": []m{button("1")}}, "components.0", "UNION_TYPE_CHOICES", `Value of field "type" must be one of (1).`},
		{"empty row", m{"content": "x", "components": []m{row()}}, "components.0.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."},
		{"six buttons", m{"content": "x", "components": []m{row(six...)}}, "components.0.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."},
		{"no custom id", m{"content": "x", "components": []m{row(m{"type": 2, "style": 1, "label": "a"})}}, "components.0.components.0.custom_id", "BASE_TYPE_REQUIRED", "This field is required"},
		{"101", m{"content": "x", "components": []m{row(button(strings.Repeat("x", 101)))}}, "components.0.components.0.custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."},
		{"label", m{"content": "x", "components": []m{row(m{"type": 2, "style": 1, "label": strings.Repeat("x", 81), "custom_id": "a"})}}, "components.0.components.0.label", "BASE_TYPE_MAX_LENGTH", "Must be 80 or fewer in length."},
		{"style", m{"content": "x", "components": []m{row(m{"type": 2, "style": 9, "label": "a", "custom_id": "a"})}}, "components.0.components.0.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}."},
		{"twice", m{"content": "x", "components": []m{row(button("a")), row(button("a"))}}, "components.1.components.0.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"},
		{"26 options", m{"content": "x", "components": []m{row(m{"type": 3, "custom_id": "s", "options": make([]m, 26)})}}, "components.0.components.0.options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length."},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *o
			p.T = t
			p.wrong("POST", messages(o.general), c.p, c.field, c.code, c.text)
		})
	}
	if n := len(o.History(o.general)); n != 0 {
		t.Errorf("%d messages came of wrong forms", n)
	}
	got := o.send(o.general, m{"content": strings.Repeat("😀", 2000)})
	if len([]rune(got.Content)) != 2000 {
		t.Error("2,000 code points do not fit")
	}
	o.wrong("POST", "channels/general/messages", m{"content": "x"}, "channel_id", "NUMBER_TYPE_COERCE", `Value "general" is not snowflake.`)
}

func TestEmptyMessagesAreRefused(t *testing.T) {
	o := world(t, noFlood)
	for _, p := range []m{{}, {"content": ""}, {"content": " \n\t "}, {"content": nil, "embeds": []m{}}} {
		o.refused("POST", messages(o.general), p, 400, 50006, "Cannot send an empty message")
	}
	if got := o.send(o.general, m{"content": "  hello \n"}); got.Content != "hello" {
		t.Errorf("the content is not trimmed: %q", got.Content)
	}
	mine := o.send(o.general, m{"content": "x"})
	o.refused("PATCH", messages(o.general)+"/"+mine.ID.String(), m{"content": ""}, 400, 50006, "Cannot send an empty message")
}

func TestWhereABotMayWrite(t *testing.T) {
	o := world(t, noFlood)
	say := m{"content": "x"}
	o.refused("POST", "channels/42/messages", say, 404, 10003, "Unknown Channel")
	forum := o.guild.NewForum("questions")
	o.refused("POST", messages(forum), say, 400, 50008, "Cannot send messages in a non-text channel")
	bot := o.Bot()
	o.guild.Permit(bot, o.general, discordtest.DefaultPermissions&^discordtest.SendMessages)
	o.refused("POST", messages(o.general), say, 403, 50013, "Missing Permissions")
	o.refused("POST", "channels/"+o.general.String()+"/typing", nil, 403, 50013, "Missing Permissions")
	o.guild.Permit(bot, o.general, 0)
	o.refused("POST", messages(o.general), say, 403, 50001, "Missing Access")
	o.refused("GET", messages(o.general), nil, 403, 50001, "Missing Access")
	o.guild.Permit(bot, o.general, discordtest.ViewChannel|discordtest.SendMessages)
	hers, err := o.ada.Say(o.general, "hi")
	if err != nil {
		t.Fatal(err)
	}
	o.refused("POST", messages(o.general), m{"content": "x", "message_reference": m{"message_id": hers.ID}}, 403, 160002, "Cannot reply without permission to read message history")
	var page []sent
	if o.must("GET", messages(o.general), nil, &page); len(page) != 0 {
		t.Error("without READ_MESSAGE_HISTORY there are messages")
	}
	o.guild.Permit(bot, o.general, discordtest.DefaultPermissions)
	o.guild.RemoveBot(bot)
	o.refused("POST", messages(o.general), say, 403, 50001, "Missing Access")
	o.refused("GET", "guilds/"+o.guild.ID().String(), nil, 403, 50001, "Missing Access")
	o.refused("GET", "guilds/7", nil, 404, 10004, "Unknown Guild")
}

func TestDirectMessagesNeedAReason(t *testing.T) {
	o := world(t, noFlood)
	var ch struct {
		ID   discordtest.ID `json:"id"`
		Type int            `json:"type"`
	}
	o.must("POST", "users/@me/channels", m{"recipient_id": o.ada.ID()}, &ch)
	if ch.ID != o.dm || ch.Type != discordtest.DM {
		t.Errorf("got %+v, want the DM that is there", ch)
	}
	o.send(o.dm, m{"content": "from a guild in common"})
	stranger := o.NewUser("Stranger")
	o.refused("POST", messages(stranger.DM()), m{"content": "x"}, 403, 50278, "Cannot send messages to this user due to having no mutual guilds")
	stranger.Send("hello")
	o.send(stranger.DM(), m{"content": "you wrote first"})
	stranger.CloseDMs()
	o.refused("POST", messages(stranger.DM()), m{"content": "x"}, 403, 50007, "Cannot send messages to this user")
	stranger.OpenDMs()
	hers := stranger.Send("mine")
	o.refused("DELETE", messages(stranger.DM())+"/"+hers.ID.String(), nil, 403, 50003, "Cannot execute action on a DM channel")
	o.refused("POST", "users/@me/channels", m{"recipient_id": "7"}, 400, 50033, "Invalid Recipient(s)")
	o.wrong("POST", "users/@me/channels", m{}, "recipient_id", "BASE_TYPE_REQUIRED", "This field is required")
	o.refused("GET", "users/7", nil, 404, 10013, "Unknown User")
}

func TestEditAndDelete(t *testing.T) {
	o := world(t, noFlood)
	mine := o.send(o.general, m{"content": "one", "components": []m{row(button("a"))}})
	at := messages(o.general) + "/" + mine.ID.String()
	var got sent
	o.must("PATCH", at, m{"content": "two"}, &got)
	if got.Content != "two" || got.Edited == nil || len(got.Components) != 1 {
		t.Errorf("after the edit: %+v", got)
	}
	o.must("PATCH", at, m{"components": []m{}}, &got)
	if got.Content != "two" || len(got.Components) != 0 {
		t.Errorf("after the second edit: %+v", got)
	}
	hers, _ := o.ada.Say(o.general, "hers")
	o.refused("PATCH", messages(o.general)+"/"+hers.ID.String(), m{"content": "x"}, 403, 50005, "Cannot edit a message authored by another user")
	o.refused("DELETE", messages(o.general)+"/"+hers.ID.String(), nil, 403, 50013, "Missing Permissions")
	o.guild.Permit(o.Bot(), 0, discordtest.DefaultPermissions|discordtest.ManageMessages)
	o.must("DELETE", messages(o.general)+"/"+hers.ID.String(), nil, nil)
	if r := o.must("DELETE", at, nil, nil); r.status != 204 || len(r.body) != 0 {
		t.Errorf("delete: %d %s", r.status, r.body)
	}
	o.refused("PATCH", at, m{"content": "x"}, 404, 10008, "Unknown Message")
	o.refused("DELETE", at, nil, 404, 10008, "Unknown Message")
	o.refused("GET", at, nil, 404, 10008, "Unknown Message")
}

func TestAnEnforcedNonceMakesOneMessage(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	p := m{"content": "once", "nonce": "abc", "enforce_nonce": true}
	first := o.send(o.general, p)
	if string(first.Nonce) != `"abc"` {
		t.Errorf("nonce: %s", first.Nonce)
	}
	p["content"] = "other words"
	if again := o.send(o.dm, p); again.ID != first.ID || again.Content != "once" {
		t.Errorf("got %+v, want the first message", again)
	}
	if n := len(o.History(o.general)); n != 1 {
		t.Errorf("%d messages", n)
	}
	k.message("MESSAGE_CREATE")
	k.quiet()
	if log := o.Requests(0, "createmessage"); len(log) != 2 || log[1].MessageID != first.ID {
		t.Errorf("the log: %+v", log)
	}
	if free := o.send(o.general, m{"content": "once", "nonce": "abc"}); free.ID == first.ID {
		t.Error("a nonce that is not enforced holds")
	}
	p["nonce"] = "gone"
	lost := o.send(o.general, p)
	o.must("DELETE", messages(o.general)+"/"+lost.ID.String(), nil, nil)
	o.refused("POST", messages(o.general), p, 404, 10008, "Unknown Message")
	o.clock.Advance(3 * time.Minute)
	if later := o.send(o.general, p); later.ID == lost.ID {
		t.Error("the nonce is known for ever")
	}
}

func TestMentionsAreThoseAllowed(t *testing.T) {
	o := world(t, noFlood)
	text := "@everyone " + o.ada.Mention()
	for _, c := range []struct {
		name string
		p    m
		who  int
		all  bool
	}{
		{"default", m{"content": text}, 1, false},
		{"none", m{"content": text, "allowed_mentions": m{"parse": []string{}}}, 0, false},
		{"listed", m{"content": text, "allowed_mentions": m{"users": []any{o.ada.ID()}}}, 1, false},
	} {
		if got := o.send(o.general, c.p); len(got.Mentions) != c.who || got.Everyone != c.all {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	o.guild.Permit(o.Bot(), o.general, discordtest.DefaultPermissions|discordtest.MentionEveryone)
	if got := o.send(o.general, m{"content": text}); !got.Everyone {
		t.Error("a careless bot with the permission wakes nobody")
	}
	hers, _ := o.ada.Say(o.general, "question")
	ref := m{"message_id": hers.ID}
	if got := o.send(o.general, m{"content": "a", "message_reference": ref}); len(got.Mentions) != 1 || got.Type != 19 || got.Referenced == nil || got.Referenced.ID != hers.ID {
		t.Errorf("a reply: %+v", got)
	}
	if got := o.send(o.general, m{"content": "a", "message_reference": ref, "allowed_mentions": m{"parse": []string{}}}); len(got.Mentions) != 0 {
		t.Errorf("a quiet reply mentions: %+v", got)
	}
	if got := o.send(o.general, m{"content": "a", "message_reference": m{"message_id": "7", "fail_if_not_exists": false}}); got.Type != 0 {
		t.Errorf("a reply to nothing: %+v", got)
	}
	o.wrong("POST", messages(o.dm), m{"content": "x", "message_reference": m{"message_id": hers.ID, "channel_id": o.general}}, "message_reference",
		"REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL", "Cannot reply to a message in a different channel")
}

func TestPagesOfHistory(t *testing.T) {
	o := world(t, noFlood)
	var ids []discordtest.ID
	for i := range 250 {
		v := o.ada.Send(fmt.Sprint(i))
		ids = append(ids, v.ID)
	}
	page := func(query string) (out []string) {
		var list []sent
		o.must("GET", messages(o.dm)+"?"+query, nil, &list)
		for _, v := range list {
			out = append(out, v.Content)
		}
		return out
	}
	check := func(query string, n int, first, last string) {
		t.Helper()
		got := page(query)
		if len(got) != n || n > 0 && (got[0] != first || got[n-1] != last) {
			t.Errorf("%s: %d, %v", query, len(got), got)
		}
	}
	check("", 50, "249", "200")
	check("limit=100", 100, "249", "150")
	check("after=0&limit=3", 3, "2", "0") // the oldest first, newest on top
	check("limit=2&after="+ids[10].String(), 2, "12", "11")
	check("limit=2&before="+ids[10].String(), 2, "9", "8")
	check("after="+ids[249].String(), 0, "", "")
	o.wrong("GET", messages(o.dm)+"?limit=101", nil, "limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
	o.wrong("GET", messages(o.dm)+"?limit=0", nil, "limit", "NUMBER_TYPE_MIN", "int value should be greater than or equal to 1.")
	o.wrong("GET", messages(o.dm)+"?after=x", nil, "after", "NUMBER_TYPE_COERCE", `Value "x" is not snowflake.`)
	o.refused("GET", messages(o.dm)+"?after=1&before=2", nil, 400, 50035, "Invalid Form Body")
}

func TestThreadsAndPosts(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	question, _ := o.ada.Say(o.general, "question")
	k.message("MESSAGE_CREATE")
	thread, err := o.ada.StartThread(o.general, question.ID, "answers")
	if err != nil || thread != question.ID {
		t.Fatalf("a thread of a message has its id: %s, %v", thread, err)
	}
	var c struct {
		ID     discordtest.ID `json:"id"`
		Type   int            `json:"type"`
		Parent discordtest.ID `json:"parent_id"`
		New    bool           `json:"newly_created"`
	}
	json.Unmarshal(k.event("THREAD_CREATE").D, &c)
	if c.ID != thread || c.Type != 11 || c.Parent != o.general || !c.New {
		t.Errorf("THREAD_CREATE: %+v", c)
	}
	if got := k.message("MESSAGE_CREATE"); got.Type != 21 || got.Channel != thread {
		t.Errorf("starter: %+v", got)
	}
	if got := k.message("MESSAGE_UPDATE"); got.Flags&discordtest.HasThread == 0 {
		t.Errorf("the message with the thread: %+v", got)
	}
	o.send(thread, m{"content": "in the thread"})
	k.message("MESSAGE_CREATE")
	forum := o.guild.NewForum("help")
	k.event("CHANNEL_CREATE")
	post, err := o.ada.NewPost(forum, "My problem", discordtest.Outgoing{Text: "it broke"})
	if err != nil {
		t.Fatal(err)
	}
	k.event("THREAD_CREATE")
	if got := k.message("MESSAGE_CREATE"); got.ID != post || got.Channel != post {
		t.Errorf("the first message of a post has its id: %+v", got)
	}
	mine := o.send(post, m{"content": "try again"})
	k.message("MESSAGE_CREATE")
	if err := o.Archive(post, false); err != nil {
		t.Fatal(err)
	}
	o.refused("PATCH", messages(post)+"/"+mine.ID.String(), m{"content": "x"}, 400, 50083, "Thread is archived")
	o.send(post, m{"content": "revives it"})
	o.Archive(post, true)
	o.refused("POST", messages(post), m{"content": "x"}, 400, 160005, "Thread is locked")
	if _, err := o.ada.Say(post, "x"); err == nil {
		t.Error("people write in locked threads")
	}
	var active struct{ Threads []struct{ ID discordtest.ID } }
	o.must("GET", "guilds/"+o.guild.ID().String()+"/threads/active", nil, &active)
	if len(active.Threads) != 1 || active.Threads[0].ID != thread {
		t.Errorf("active threads: %+v", active)
	}
	o.refused("POST", messages(o.general)+"/"+question.ID.String()+"/threads", m{"name": "again"}, 400, 160004, "A thread has already been created for this message")
}

func TestFilesComeAsParts(t *testing.T) {
	o := world(t, noFlood)
	upload := func(size int) reply {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		w.WriteField("payload_json", `{"content":"see"}`)
		part, _ := w.CreateFormFile("files[0]", "a b.txt")
		part.Write(bytes.Repeat([]byte("x"), size))
		w.Close()
		o.header = http.Header{"Content-Type": {w.FormDataContentType()}}
		defer func() { o.header = nil }()
		return o.call("POST", messages(o.general), b.Bytes())
	}
	var got sent
	json.Unmarshal(upload(5).body, &got)
	if got.Content != "see" || len(got.Attachments) != 1 || got.Attachments[0].Size != 5 {
		t.Fatalf("got %+v", got)
	}
	res, err := http.Get(got.Attachments[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "xxxxx" {
		t.Errorf("got %q", b)
	}
	if r := upload(10<<20 + 1); r.status != 413 || r.Code != 40005 || r.Message != "Request entity too large" {
		t.Errorf("too large: %d %s", r.status, r.body)
	}
}

func TestReactionsAndTyping(t *testing.T) {
	o := world(t, noFlood)
	hers, _ := o.ada.Say(o.general, "hi")
	at := messages(o.general) + "/" + hers.ID.String() + "/reactions/"
	o.must("PUT", at+"%F0%9F%91%8D/@me", nil, nil)
	if v, _ := o.Message(o.general, hers.ID); len(v.Reactions) != 1 || v.Reactions[0].Emoji != "👍" {
		t.Errorf("reactions: %+v", v.Reactions)
	}
	o.refused("PUT", at+"thumbs/@me", nil, 400, 10014, "Unknown Emoji")
	o.must("DELETE", at+"%F0%9F%91%8D/@me", nil, nil)
	if r := o.must("POST", "channels/"+o.general.String()+"/typing", nil, nil); r.status != 204 {
		t.Errorf("typing: %d", r.status)
	}
	if s := o.Screen(o.general); len(s.Typing) != 1 {
		t.Error("nobody types")
	}
	o.clock.Advance(10 * time.Second)
	if s := o.Screen(o.general); len(s.Typing) != 0 {
		t.Error("typing lasts longer than 10 seconds")
	}
	o.must("POST", "channels/"+o.general.String()+"/typing", nil, nil)
	o.send(o.general, m{"content": "done"})
	if s := o.Screen(o.general); len(s.Typing) != 0 {
		t.Error("a message does not end typing")
	}
}

func TestRateLimits(t *testing.T) {
	o := world(t)
	for i := range 5 {
		r := o.must("POST", messages(o.general), m{"content": "x"}, nil)
		if got := r.header.Get("X-Ratelimit-Remaining"); got != fmt.Sprint(4-i) || r.header.Get("X-Ratelimit-Limit") != "5" || r.header.Get("X-Ratelimit-Bucket") == "" {
			t.Errorf("headers: %v", r.header)
		}
	}
	o.clock.Advance(1500 * time.Millisecond)
	r := o.refused("POST", messages(o.general), m{"content": "x"}, 429, 0, "You are being rate limited.")
	if r.Retry != 3.5 || r.Global || r.header.Get("Retry-After") != "4" || r.header.Get("X-Ratelimit-Scope") != "user" || r.header.Get("X-Ratelimit-Reset-After") != "3.500" {
		t.Errorf("429: %v %v", r.header, r)
	}
	o.must("POST", messages(o.dm), m{"content": "another channel"}, nil)
	o.must("GET", messages(o.general), nil, nil)
	o.clock.Advance(3500 * time.Millisecond)
	o.must("POST", messages(o.general), m{"content": "x"}, nil)
	o.clock.Advance(time.Minute)
	for i := range 50 {
		o.must("GET", "channels/"+o.guild.NewChannel(fmt.Sprint("c", i)).String(), nil, nil)
	}
	r = o.refused("GET", "channels/"+o.dm.String(), nil, 429, 0, "You are being rate limited.")
	if !r.Global || r.header.Get("X-Ratelimit-Global") != "true" || r.header.Get("X-Ratelimit-Scope") != "global" {
		t.Errorf("global 429: %v", r.header)
	}
	o.clock.Advance(time.Second)
	o.Bot().Exhaust("createMessage", o.dm, 7*time.Second)
	if r := o.refused("POST", messages(o.dm), m{"content": "x"}, 429, 0, "You are being rate limited."); r.Retry != 7 {
		t.Errorf("exhausted: %v", r.Retry)
	}
}

func TestManyInvalidRequestsShutOut(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 requests")
	}
	o := world(t)
	o.header = http.Header{"Authorization": {"Bot wrong"}}
	for range 10_000 {
		o.call("GET", "users/@me", nil)
	}
	o.header = nil
	o.must("GET", "users/@me", nil, nil)
	o.header = http.Header{"Authorization": {"Bot wrong"}}
	o.call("GET", "users/@me", nil)
	o.header = nil
	r := o.call("GET", "users/@me", nil)
	if r.status != 429 || json.Valid(r.body) || r.header.Get("Retry-After") != "600" {
		t.Errorf("got %d %v %q", r.status, r.header, r.body)
	}
	o.clock.Advance(10 * time.Minute)
	o.must("GET", "users/@me", nil, nil)
}

func TestCommandsAreCounted(t *testing.T) {
	o := world(t, noFlood)
	at := "applications/" + o.Bot().ID().String() + "/commands"
	list := func(prefix string, n int) (out []m) {
		for i := range n {
			out = append(out, m{"name": fmt.Sprint(prefix, i), "description": "d"})
		}
		return out
	}
	o.must("PUT", at, list("a", 100), nil)
	o.must("PUT", at, list("a", 100), nil) // the same: none created
	o.must("PUT", at, list("b", 100), nil)
	o.refused("PUT", at, list("c", 1), 400, 30034, "Max number of daily application command creates has been reached (200)")
	if got := o.Bot().Commands(0); len(got) != 100 || got[0] != "b0" {
		t.Errorf("commands: %v", got)
	}
	o.clock.Advance(24 * time.Hour)
	o.must("PUT", at, list("c", 1), nil)
	o.wrong("PUT", at, []m{{"name": "Ask", "description": "d"}}, "0.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	o.wrong("PUT", at, []m{{"name": "ask"}}, "0.description", "BASE_TYPE_REQUIRED", "This field is required")
	o.wrong("PUT", at, []m{{"name": "ask", "description": strings.Repeat("x", 101)}}, "0.description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	o.refused("PUT", "applications/7/commands", []m{}, 404, 10002, "Unknown Application")
}
