//go:build browser

package phones_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors/telegram/telegramtest"
)

// browser is a fresh headless Chromium. Whatever its console complains of
// fails the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := "/usr/bin/chromium"
	if _, err := os.Stat(path); err != nil {
		t.Skip("no chromium here")
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun,
		chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 90*time.Second)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	console := chromedp.Console(ctx)
	reading.Go(func() {
		for m, err := range console {
			if err == nil && (m.IsException() || m.Type == chromedp.ConsoleError) {
				t.Errorf("the page complained: %s", m)
			}
		}
	})
	t.Cleanup(func() { stop(); reading.Wait() })
	return ctx
}

type scene struct {
	*testing.T
	sim *telegramtest.Server
	ctx context.Context
}

func (s *scene) run(actions ...chromedp.Action[chromedp.Void]) {
	s.Helper()
	if err := chromedp.Do(s.ctx, actions...); err != nil {
		s.Fatal(err)
	}
}

// bot calls the Bot API as the bot would.
func (s *scene) bot(method string, p map[string]any) {
	s.Helper()
	b, _ := json.Marshal(p)
	res, err := http.Post(s.sim.URL()+"/bot"+s.sim.Token()+"/"+method, "application/json", bytes.NewReader(b))
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
	dir := os.Getenv("GATEHOUSE_TEST_SHOTS")
	if dir == "" {
		return
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(s.ctx, emulation.SetEmulatedMedia, media); err != nil {
		s.Fatal(err)
	}
	s.run(chromedp.EmulateViewport(width, height),
		chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".screen").forEach((s) => (s.scrollTop = s.scrollHeight))`))
	png, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		s.Fatal(err)
	}
}

// wait waits until an expression is true in the page.
func (s *scene) wait(expression string) {
	s.Helper()
	if _, err := chromedp.Run(s.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(10*time.Second))); err != nil {
		s.Fatalf("never true: %s: %v", expression, err)
	}
}

func TestAPersonWritesAndSeesTheBotAnswer(t *testing.T) {
	sim, web := serve(t, phones.Options{Claim: func() string { return "K7WM3QXD" }, Panel: "http://127.0.0.1:3333/admin"})
	s := &scene{t, sim, browser(t)}
	users := map[string]*telegramtest.User{}
	for _, u := range sim.Users() {
		users[u.Account().FirstName] = u
	}
	ada, ben, olga := users["Ada"], users["Ben"], users["Olga"]
	phone := func(u *telegramtest.User, rest string) string { return "#phone-" + jsonOf(u.ID()) + " " + rest }

	s.run(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(web.URL), chromedp.WaitVisible(chromedp.CSS(phone(ada, "textarea"))))
	s.run(chromedp.SendKeys(chromedp.CSS(phone(ada, "textarea")), "Which book is about <b>whales</b>?\r"))
	s.wait(`document.querySelector("` + phone(ada, ".own .text") + `")?.textContent === "Which book is about <b>whales</b>?"`)
	h := sim.History(ada.DM())
	if len(h) != 1 || h[0].Text != "Which book is about <b>whales</b>?" {
		t.Fatalf("the platform has %+v", h)
	}

	s.bot("sendChatAction", map[string]any{"chat_id": ada.ID(), "action": "typing"})
	s.wait(`document.querySelector("` + phone(ada, ".bar-state") + `").textContent === "typing"`)
	s.bot("sendMessageDraft", map[string]any{"chat_id": ada.ID(), "draft_id": 7, "text": "Moby-Dick, by Herman"})
	s.wait(`document.querySelector("` + phone(ada, ".draft .text") + `")?.textContent === "Moby-Dick, by Herman"`)
	answer := "Moby-Dick, by Herman Melville 🐋\n\nCall me Ishmael.\nsearch(\"whale\") found 3 passages in Public/moby-dick.md:\n$ grep -c whale *.md\n3\nThe ending: the whale wins."
	at := func(part string) int { return len([]rune(answer[:bytes.Index([]byte(answer), []byte(part))])) + 1 }
	s.bot("sendMessage", map[string]any{"chat_id": ada.ID(), "text": answer, "entities": []map[string]any{
		{"type": "bold", "offset": 0, "length": 9},
		{"type": "blockquote", "offset": at("Call me"), "length": 16},
		{"type": "code", "offset": at("search("), "length": 15},
		{"type": "text_link", "offset": at("Public/"), "length": 19, "url": "https://example.com/moby-dick.md"},
		{"type": "pre", "offset": at("$ grep"), "length": 22, "language": "sh"},
		{"type": "spoiler", "offset": at("the whale wins"), "length": 14},
	}, "reply_markup": map[string]any{"inline_keyboard": [][]map[string]string{
		{{"text": "Another passage", "callback_data": "more"}, {"text": "Stop", "callback_data": "stop"}},
	}}})
	s.wait(`document.querySelector("` + phone(ada, ".row:not(.own) .text strong") + `")?.textContent === "Moby-Dick"`)
	s.wait(`!document.querySelector("` + phone(ada, ".draft") + `")`)
	s.wait(`document.querySelector("` + phone(ada, "pre") + `").dataset.language === "sh"`)
	s.wait(`document.querySelector("` + phone(ada, ".row:not(.own) .text") + `").textContent.replace(/\n/g, "") === ` + jsonOf(strings.ReplaceAll(answer, "\n", "")))
	s.run(chromedp.Click(chromedp.CSS(phone(ada, ".spoiler"))))

	s.run(chromedp.Click(chromedp.CSS(phone(ada, ".key"))))
	var query struct {
		Result []struct {
			Query *struct{ ID string } `json:"callback_query"`
		}
	}
	s.wait(`document.querySelector("` + phone(ada, ".key") + `") !== null`)
	for try := 0; query.Result == nil || query.Result[0].Query == nil; try++ {
		res, err := http.Get(sim.URL() + "/bot" + sim.Token() + "/getUpdates?timeout=5&offset=-1")
		if err != nil || try == 20 {
			t.Fatal("the button was not pressed", err)
		}
		query.Result = nil
		json.NewDecoder(res.Body).Decode(&query)
		res.Body.Close()
	}
	s.bot("answerCallbackQuery", map[string]any{"callback_query_id": query.Result[0].Query.ID, "text": "Looking for another one"})
	s.wait(`document.querySelector("` + phone(ada, ".toast") + `").textContent === "Looking for another one"`)

	// Olga takes the claim code from its chip, in one tap and Enter.
	s.run(chromedp.Click(chromedp.CSS(phone(olga, ".chip:nth-child(3)"))), chromedp.SendKeys(chromedp.CSS(phone(olga, "textarea")), "\r"))
	s.wait(`document.querySelector("` + phone(olga, ".own .text") + `")?.textContent === "/claim K7WM3QXD"`)
	s.bot("sendMessage", map[string]any{"chat_id": olga.ID(), "text": "This bot is yours now, Olga. Ada asks to be let in:\n“Which book is about whales?”\n\nCode 4NQT-88KC, valid for an hour. Or /approve here.",
		"reply_markup": map[string]any{"inline_keyboard": [][]map[string]string{{{"text": "Approve", "callback_data": "a"}, {"text": "Deny", "callback_data": "d"}}, {{"text": "Block", "callback_data": "b"}}}}})

	// The group: everybody sees it, with names.
	group := telegramtest.Conversation{}
	for _, c := range sim.Chats() {
		if c.Title == phones.GroupTitle {
			group = c.Conversation
		}
	}
	s.run(chromedp.Click(chromedp.CSS(phone(ben, ".tab:nth-child(2)"))), chromedp.SendKeys(chromedp.CSS(phone(ben, "textarea")), "@gatehouse_bot what are we reading next?\r"))
	s.wait(`[...document.querySelectorAll("` + phone(olga, ".badge") + `")].some((b) => Number(b.textContent) > 0)`)
	in := sim.History(group)
	s.bot("sendMessage", map[string]any{"chat_id": group.Chat, "text": "Middlemarch, from Thursday on. It is long: bring tea.", "reply_parameters": map[string]any{"message_id": in[len(in)-1].ID}})
	s.wait(`document.querySelector("` + phone(ben, ".row:not(.own) .quoted b") + `")?.textContent === "Ben"`)
	s.bot("sendChatAction", map[string]any{"chat_id": group.Chat, "action": "typing"})

	s.bot("sendMessageDraft", map[string]any{"chat_id": ada.ID(), "draft_id": 8, "text": "“It was the whiteness of the whale that above all things"})
	s.wait(`document.querySelector("` + phone(ada, ".draft .text") + `") !== null`)
	s.shot("desktop-light", 1280, 860, "light")
	s.shot("desktop-dark", 1280, 860, "dark")
	s.shot("phone-light", 390, 844, "light")
	s.shot("phone-dark", 390, 844, "dark")
	s.shot("narrow-light", 320, 640, "light")
	s.shot("wide-dark", 1900, 900, "dark")

	// Somebody comes whose name is markup: it stays text.
	if _, err := sim.AddUser(telegramtest.Account{FirstName: `<script>x</script>`}); err != nil {
		t.Fatal(err)
	}
	s.wait(`document.querySelectorAll(".phone").length === 4 && [...document.querySelectorAll(".who-name")].some((n) => n.textContent === "<script>x</script>")`)

	// Nothing is wider than the narrowest window.
	s.run(chromedp.EmulateViewport(320, 640))
	s.wait(`document.documentElement.scrollWidth <= 320 && [...document.querySelectorAll(".phone")].every((p) => p.getBoundingClientRect().width <= 320) &&
		[...document.querySelectorAll(".tabs, .line button, .bubble")].every((e) => e.getBoundingClientRect().right <= e.closest(".device").getBoundingClientRect().right)`)
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
