//go:build browser

package phones_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/web/webtest"
)

type scene struct {
	*testing.T
	stage
	tab *webtest.Tab
}

// say calls Telegram's Bot API as the bot would.
func (s *scene) say(method string, p map[string]any) {
	s.Helper()
	b, _ := json.Marshal(p)
	res, err := http.Post(s.telegram.URL()+"/bot"+s.telegram.Token()+"/"+method, "application/json", bytes.NewReader(b))
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		var v struct{ Description string }
		json.NewDecoder(res.Body).Decode(&v)
		s.Fatalf("%s: %d %s", method, res.StatusCode, v.Description)
	}
}

// shot keeps a picture where GATEHOUSE_TEST_SHOTS names a folder.
func (s *scene) shot(name string, width, height int64, scheme string) {
	s.Helper()
	if webtest.Shots() == "" {
		return
	}
	s.tab.Look(width, height, scheme)
	s.tab.Eventually(`[...document.querySelectorAll(".screen")].every((s) => { s.scrollTop = s.scrollHeight; return true; })`)
	s.tab.Keep("phones-"+name, s.tab.Picture())
}

func TestAPersonWritesAndSeesTheBotAnswer(t *testing.T) {
	stage := serve(t, phones.Options{Claim: func() string { return "K7WM3QXD" }, Panel: "http://127.0.0.1:3333/admin"})
	s, sim, web := &scene{t, stage, webtest.New(t)}, stage.telegram, stage.web
	users := map[string]*telegramtest.User{}
	for _, u := range sim.Users() {
		users[u.Account().FirstName] = u
	}
	ada, ben, olga := users["Ada"], users["Ben"], users["Olga"]
	phone := func(u *telegramtest.User, rest string) string {
		return "#phone-telegram-" + jsonOf(u.ID()) + " " + rest
	}

	s.tab.Look(1280, 860, "light")
	s.tab.Open(web.URL)
	s.tab.Visible(phone(ada, "textarea"))
	s.tab.Write(phone(ada, "textarea"), "Which book is about <b>whales</b>?\r")
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".own .text") + `")?.textContent === "Which book is about <b>whales</b>?"`)
	h := sim.History(ada.DM())
	if len(h) != 1 || h[0].Text != "Which book is about <b>whales</b>?" {
		t.Fatalf("the platform has %+v", h)
	}

	s.say("sendChatAction", map[string]any{"chat_id": ada.ID(), "action": "typing"})
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".bar-state") + `").textContent === "typing"`)
	s.say("sendMessageDraft", map[string]any{"chat_id": ada.ID(), "draft_id": 7, "text": "Moby-Dick, by Herman"})
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".draft .text") + `")?.textContent === "Moby-Dick, by Herman"`)
	answer := "Moby-Dick, by Herman Melville 🐋\n\nCall me Ishmael.\nsearch(\"whale\") found 3 passages in Public/moby-dick.md:\n$ grep -c whale *.md\n3\nThe ending: the whale wins."
	at := func(part string) int { return len([]rune(answer[:bytes.Index([]byte(answer), []byte(part))])) + 1 }
	s.say("sendMessage", map[string]any{"chat_id": ada.ID(), "text": answer, "entities": []map[string]any{
		{"type": "bold", "offset": 0, "length": 9},
		{"type": "blockquote", "offset": at("Call me"), "length": 16},
		{"type": "code", "offset": at("search("), "length": 15},
		{"type": "text_link", "offset": at("Public/"), "length": 19, "url": "https://example.com/moby-dick.md"},
		{"type": "pre", "offset": at("$ grep"), "length": 22, "language": "sh"},
		{"type": "spoiler", "offset": at("the whale wins"), "length": 14},
	}, "reply_markup": map[string]any{"inline_keyboard": [][]map[string]string{
		{{"text": "Another passage", "callback_data": "more"}, {"text": "Stop", "callback_data": "stop"}},
	}}})
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".row:not(.own) .text strong") + `")?.textContent === "Moby-Dick"`)
	s.tab.Eventually(`!document.querySelector("` + phone(ada, ".draft") + `")`)
	s.tab.Eventually(`document.querySelector("` + phone(ada, "pre") + `").dataset.language === "sh"`)
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".row:not(.own) .text") + `").textContent.replace(/\n/g, "") === ` + jsonOf(strings.ReplaceAll(answer, "\n", "")))
	s.tab.Click(phone(ada, ".spoiler"))

	s.tab.Click(phone(ada, ".key"))
	var query struct {
		Result []struct {
			ID    int                  `json:"update_id"`
			Query *struct{ ID string } `json:"callback_query"`
		}
	}
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".key") + `") !== null`)
	for try, offset := 0, -1; len(query.Result) == 0 || query.Result[0].Query == nil; try++ {
		if len(query.Result) > 0 {
			offset = query.Result[0].ID + 1 // waits for the press
		}
		res, err := http.Get(fmt.Sprintf("%s/bot%s/getUpdates?timeout=5&limit=1&offset=%d", sim.URL(), sim.Token(), offset))
		if err != nil || try == 20 {
			t.Fatal("the button was not pressed", err)
		}
		query.Result = nil
		json.NewDecoder(res.Body).Decode(&query)
		res.Body.Close()
	}
	s.say("answerCallbackQuery", map[string]any{"callback_query_id": query.Result[0].Query.ID, "text": "Looking for another one"})
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".toast") + `").textContent === "Looking for another one"`)

	// Olga takes the claim code from its chip, in one tap and Enter; no stranger has one.
	if with := webtest.Value[[]string](s.tab, `[...document.querySelectorAll(".phone")].filter((p) => [...p.querySelectorAll(".chip")].some((c) => c.textContent.startsWith("/claim"))).map((p) => p.id)`); len(with) != 1 || with[0] != "phone-telegram-"+jsonOf(olga.ID()) {
		t.Errorf("the claim code is offered to %q", with)
	}
	s.bring(`#telegram .jump:nth-child(3)`, phone(olga, ""))
	s.tab.Click(phone(olga, ".chip:nth-child(3)"))
	s.tab.Write(phone(olga, "textarea"), "\r")
	s.tab.Eventually(`document.querySelector("` + phone(olga, ".own .text") + `")?.textContent === "/claim K7WM3QXD"`)
	s.say("sendMessage", map[string]any{"chat_id": olga.ID(), "text": "This bot is yours now, Olga. Ada asks to be let in:\n“Which book is about whales?”\n\nCode 4NQT-88KC, valid for an hour. Or /approve here.",
		"reply_markup": map[string]any{"inline_keyboard": [][]map[string]string{{{"text": "Approve", "callback_data": "a"}, {"text": "Deny", "callback_data": "d"}}, {{"text": "Block", "callback_data": "b"}}}}})

	// The group: everybody sees it, with names.
	group := telegramtest.Conversation{}
	for _, c := range sim.Chats() {
		if c.Title == phones.GroupTitle {
			group = c.Conversation
		}
	}
	s.bring(`#telegram .jump:nth-child(2)`, phone(ben, ""))
	s.tab.Click(phone(ben, ".tab:nth-child(2)"))
	s.tab.Write(phone(ben, "textarea"), "@gatehouse_bot what are we reading next?\r")
	s.tab.Eventually(`[...document.querySelectorAll("` + phone(olga, ".badge") + `")].some((b) => Number(b.textContent) > 0)`)
	in := sim.History(group)
	s.say("sendMessage", map[string]any{"chat_id": group.Chat, "text": "Middlemarch, from Thursday on. It is long: bring tea.", "reply_parameters": map[string]any{"message_id": in[len(in)-1].ID}})
	s.tab.Eventually(`document.querySelector("` + phone(ben, ".row:not(.own) .quoted b") + `")?.textContent === "Ben"`)
	s.say("sendChatAction", map[string]any{"chat_id": group.Chat, "action": "typing"})

	s.say("sendMessageDraft", map[string]any{"chat_id": ada.ID(), "draft_id": 8, "text": "“It was the whiteness of the whale that above all things"})
	s.tab.Eventually(`document.querySelector("` + phone(ada, ".draft .text") + `") !== null`)
	s.onDiscord()
	s.shot("desktop-light", 1280, 860, "light")
	s.shot("desktop-dark", 1280, 860, "dark")
	s.shot("phone-light", 390, 844, "light")
	s.shot("phone-dark", 390, 844, "dark")
	s.shot("narrow-light", 320, 640, "light")
	s.shot("wide-dark", 1900, 900, "dark")
	s.shot("wide-light", 1900, 900, "light")
	s.tab.Look(390, 844, "light")
	s.tab.Click(`.switch [data-show=discord]`)
	s.tab.Visible("#discord .log .row")
	s.tab.Eventually(`!document.querySelector("#telegram").checkVisibility()`)
	s.shot("phone-discord-light", 390, 844, "light")
	s.shot("phone-discord-dark", 390, 844, "dark")
	s.shot("narrow-discord-dark", 320, 640, "dark")
	s.narrow()
	s.tab.Click(`.switch [data-show=telegram]`)

	// Somebody comes whose name is markup: it stays text.
	if _, err := sim.AddUser(telegramtest.Account{FirstName: `<script>x</script>`}); err != nil {
		t.Fatal(err)
	}
	s.tab.Eventually(`document.querySelectorAll("#telegram .phone").length === 4 && [...document.querySelectorAll(".who-name")].some((n) => n.textContent === "<script>x</script>")`)

	s.narrow()
}

// narrow looks whether anything is wider than the narrowest window.
func (s *scene) narrow() {
	s.Helper()
	s.tab.Look(320, 640, "light")
	s.tab.Eventually(`document.documentElement.scrollWidth <= 320 && [...document.querySelectorAll(".platform.chosen .phone")].every((p) => p.getBoundingClientRect().width <= 320) &&
		[...document.querySelectorAll(".platform.chosen :is(.line button, .bubble, .column, .bar-title)")].every((e) => e.getBoundingClientRect().right <= e.closest(".device").getBoundingClientRect().right)`)
}

// bring presses a name at the top and waits until that window stands in sight.
func (s *scene) bring(jump, window string) {
	s.Helper()
	s.tab.Click(jump)
	s.tab.Eventually(`(() => {
		const r = document.querySelector("` + window + `").getBoundingClientRect(), before = window.stood;
		window.stood = r.left;
		return before === r.left && r.left >= 0 && r.left < innerWidth - 200;
	})()`)
}

// onDiscord plays Cleo, Dan and the bot in the other half of the page.
func (s *scene) onDiscord() {
	s.Helper()
	ids := map[string]discordtest.ID{}
	for _, u := range s.discord.Users() {
		ids[u.Account().Name] = u.ID()
	}
	in := func(name, rest string) string { return "#phone-discord-" + ids[name].String() + " " + rest }
	say := func(channel discordtest.ID, body map[string]any) string {
		s.Helper()
		return s.bot(s, "POST", "/channels/"+channel.String()+"/messages", body).ID
	}
	text := func(sel, want string) {
		s.Helper()
		s.tab.Eventually(`document.querySelector("` + sel + `")?.textContent === ` + jsonOf(want))
	}
	cleo := s.discord.User(ids["Cleo"]).DM()

	const hostile = "Is <b>this</b> <img src=x onerror=alert(1)> bold?"
	s.tab.Write(in("Cleo", "textarea"), hostile+"\r")
	text(in("Cleo", ".own .text"), hostile)
	s.bot(s, "POST", "/channels/"+cleo.String()+"/typing", nil)
	text(in("Cleo", ".bar-state"), "gatehouse is typing")
	m := say(cleo, map[string]any{"content": "It would be **bold** so"})
	text(in("Cleo", ".row:not(.own) .text strong"), "bold")
	text(in("Cleo", ".bar-state"), "") // a message ends it
	s.tab.Eventually(`document.querySelector("` + in("Cleo", ".app") + `").textContent === "APP"`)

	// An edit comes in place: the row stays where it is.
	answer := "It would be **bold** so, and ||whales|| so:\n> Call me _Ishmael_.\n```sh\n$ grep -c whale *.md\n3\n```\nSee [Moby-Dick](https://example.com/moby-dick.md), `chapter 1`, or ask <@" + ids["Dan"].String() + ">."
	s.bot(s, "PATCH", "/channels/"+cleo.String()+"/messages/"+m, map[string]any{"content": answer, "components": []any{map[string]any{"type": 1, "components": []any{
		map[string]any{"type": 2, "style": 1, "label": "Another passage", "custom_id": "more"}, map[string]any{"type": 2, "style": 2, "label": "Stop", "custom_id": "stop"}}}}})
	text(in("Cleo", ".row:not(.own) .edited"), " (edited)")
	s.tab.Eventually(`document.querySelectorAll("` + in("Cleo", ".log .row") + `").length === 2`)
	s.tab.Eventually(`document.querySelector("` + in("Cleo", "pre") + `").dataset.language === "sh"`)
	text(in("Cleo", ".mention"), "@Dan")
	s.tab.Eventually(`document.querySelector("` + in("Cleo", ".text a") + `").href === "https://example.com/moby-dick.md"`)

	// A button is pressed by keyboard; nobody answers, and the app says so.
	s.tab.Focus(in("Cleo", ".key"))
	s.tab.Press("\r")
	text(in("Cleo", ".toast"), "This interaction failed")

	// The channel: a mention, a reply to it, and a badge for who looks elsewhere.
	s.bring(`#discord .jump:nth-child(2)`, in("Dan", ""))
	s.tab.Click(in("Dan", ".tab.group"))
	s.tab.Write(in("Dan", "textarea"), "@gatehouse what are we reading next?\r")
	text(in("Dan", ".own .mention"), "@gatehouse")
	text(in("Cleo", ".tab.group .badge"), "1")
	var channel discordtest.Channel
	for _, c := range s.discord.Channels() {
		if c.Type == discordtest.Text {
			channel = c
		}
	}
	history := s.discord.History(channel.ID)
	say(channel.ID, map[string]any{"content": "**Middlemarch**, from Thursday on. It is long: bring tea.", "message_reference": map[string]any{"message_id": history[len(history)-1].ID}})
	text(in("Dan", ".row:not(.own) .quoted b"), "Dan")
	s.tab.Write(in("Dan", "textarea"), "And after that?\r")
	s.tab.Click(in("Dan", ".tab.thread"))
	s.tab.Write(in("Dan", "textarea"), "A thread of its own\r")
	text(in("Dan", ".own .text"), "A thread of its own")
	s.tab.Click(in("Dan", ".tab.group"))
	s.bot(s, "POST", "/channels/"+channel.ID.String()+"/typing", nil)
	text(in("Dan", ".bar-state"), "gatehouse is typing")

	// Somebody comes whose name is markup: it stays text.
	s.tab.Write("#add-discord", "<i>Eve</i>\r")
	s.tab.Eventually(`[...document.querySelectorAll("#discord .who-name")].some((n) => n.textContent === "<i>Eve</i>")`)
	s.tab.Eventually(`(document.querySelector("#discord .windows").scrollTo({left: 0, behavior: "instant"}), true)`)
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// The dot at the top is green while the page follows the platforms, and only then.
func TestTheDotIsGreenOnlyWhileThePageIsConnected(t *testing.T) {
	sims := serve(t, phones.Options{})
	open, lost := make(chan bool), make(chan bool)
	h := handler(t, sims.telegram, sims.discord, phones.Options{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			h.ServeHTTP(w, r)
			return
		}
		select { // until the test has seen the page wait
		case <-open:
		case <-r.Context().Done():
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-lost:
				cancel()
			case <-ctx.Done():
			}
		}()
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	tab := webtest.New(t)
	shows := func(words string, green bool) {
		t.Helper()
		tab.Eventually(`(() => {
			const link = document.getElementById("link"), [r, g, b] = getComputedStyle(link, "::before").backgroundColor.match(/[\d.]+/g).map(Number);
			return link.textContent === ` + jsonOf(words) + ` && (g > r + 40 && g > b + 40) === ` + jsonOf(green) + `;
		})()`)
	}
	for _, scheme := range []string{"light", "dark"} {
		tab.Look(1280, 860, scheme)
		tab.Open(web.URL)
		shows("connecting…", false)
		open <- true
		shows("live", true)
		lost <- true
		shows("connecting again…", false)
		open <- true // it comes back by itself
		shows("live", true)
	}
}
