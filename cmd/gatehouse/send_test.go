package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/unasked"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/web/api/bots"
	"gatehouse/web/auth"
)

// sendAs has a bot say something by a key; a nil header is the operator's.
func (w *world) sendAs(header http.Header, bot string, body map[string]any) (int, bots.Posted, string) {
	w.t.Helper()
	status, m, h := w.asked("POST", "/api/bots/"+bot+"/messages", body, header)
	var p bots.Posted
	b, _ := json.Marshal(m)
	_ = json.Unmarshal(b, &p)
	if status == 202 && h.Get("Location") != "/api/bots/"+bot+"/messages/"+p.ID {
		w.t.Errorf("Location %q of %+v", h.Get("Location"), p)
	}
	return status, p, string(b)
}

// arrives waits until the message is settled as status.
func (w *world) arrives(p bots.Posted, status string) (now bots.Posted) {
	w.t.Helper()
	w.until(p.ID+" is "+status, func() bool {
		_, body := w.call("GET", "/api/bots/"+p.Bot+"/messages/"+p.ID, nil)
		now = bots.Posted{}
		return json.Unmarshal([]byte(body), &now) == nil && now.Status == status
	})
	return now
}

func TestAnAlertIsSaidToTheOwnerAGuestAndAGroupAsThePlatformShowsIt(t *testing.T) {
	t.Parallel()
	w, discord := onDiscord(t)
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group("supergroup", boss, ada)
	cleo := discord.NewUser("Cleo")
	cleo.Send("hello?")
	discordHears(w, discord, cleo.DM(), "code")
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, cleo).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	for name, c := range map[string]struct {
		chat string
		in   telegramtest.Conversation
	}{"owner": {"owner", boss.DM()}, "guest": {fmt.Sprint(ada.ID()), ada.DM()}, "group": {fmt.Sprint(g.ID()), g.Conversation()}} {
		status, p, body := w.sendAs(nil, "telegram", map[string]any{"chat": c.chat, "text": "**Backup failed** for " + name})
		if status != 202 {
			t.Errorf("%s: %d %s", name, status, body)
			continue
		}
		m := w.hears(c.in, func(m telegramtest.Message) bool { return m.Text == "Backup failed for "+name })
		if len(m.Entities) != 1 || m.Entities[0].Type != "bold" {
			t.Errorf("%s: %+v", name, m.Entities)
		}
		if now := w.arrives(p, "sent"); now.Delivered != 1 || now.Parts != 1 || now.SentAt.IsZero() || now.Error != "" {
			t.Errorf("%s: %+v", name, now)
		}
	}
	status, p, body := w.sendAs(nil, "discord", map[string]any{"chat": cleo.DM().String(), "text": "**Backup failed** for Cleo"})
	if status != 202 {
		t.Fatal(status, body)
	}
	discordHears(w, discord, cleo.DM(), "**Backup failed** for Cleo")
	w.arrives(p, "sent")
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'message.send'`); n != 4 {
		t.Errorf("%d audit rows of 4 messages", n)
	}
	// A text that is long is several messages, all of which must arrive.
	_, p, _ = w.sendAs(nil, "telegram", map[string]any{"chat": "owner", "text": strings.Repeat("many words ", 2000)})
	if now := w.arrives(p, "sent"); now.Parts < 5 || now.Delivered != now.Parts {
		t.Errorf("%+v", now)
	}
}

// TestNoOneIsWrittenToWhoMayNotBeWrittenTo: strangers, those who were revoked
// or blocked, and groups that nobody enabled, even where the bot has talked.
func TestNoOneIsWrittenToWhoMayNotBeWrittenTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss, ada, bob := w.boss(), w.guest("Ada"), w.guest("Bob")
	eve := w.sim.NewUser("Eve")
	eve.Send("let me in")
	w.request(eve)
	silent := w.sim.NewGroup("supergroup", "Silent", boss, ada)
	w.post(boss, silent.Conversation(), telegramtest.Outgoing{Text: w.mention("hello?")})
	was := w.group("supergroup", boss, ada)
	w.answers(was.Conversation(), w.post(ada, was.Conversation(), telegramtest.Outgoing{Text: w.mention("How long should green tea brew?")}).ID)
	w.quiet()
	if err := w.app.pairing.Places.Disable(t.Context(), "telegram", fmt.Sprint(was.ID()), cli); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.pairing.People.Revoke(t.Context(), "telegram", fmt.Sprint(ada.ID()), cli); err != nil {
		t.Fatal(err)
	}
	if err := w.app.pairing.People.BlockUser(t.Context(), "*", "telegram", fmt.Sprint(bob.ID()), cli); err != nil {
		t.Fatal(err)
	}
	sends := w.sim.Count("sendMessage")
	for name, chat := range map[string]string{"revoked": fmt.Sprint(ada.ID()), "blocked": fmt.Sprint(bob.ID()), "stranger": fmt.Sprint(eve.ID()), "unknown": "4711",
		"group that nobody enabled": fmt.Sprint(silent.ID()), "disabled group": fmt.Sprint(was.ID()), "another's words": "x' OR '1'='1"} {
		status, _, body := w.sendAs(nil, "telegram", map[string]any{"chat": chat, "text": "psst"})
		if status != 404 || !strings.Contains(body, `"field":"chat"`) || !strings.Contains(body, "approved people") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, body := w.sendAs(nil, "nobody", map[string]any{"chat": "owner", "text": "psst"}); status != 404 || !strings.Contains(body, "no such bot") {
		t.Errorf("unknown bot: %d %s", status, body)
	}
	w.quiet()
	if n := w.sim.Count("sendMessage"); n != sends || w.count(`SELECT count(*) FROM outbox WHERE key LIKE 'send:%'`) != 0 {
		t.Errorf("%d messages were sent", n-sends)
	}
}

// TestAGuestsSendKeyReachesTheGuestAlone, and sees nobody else's messages.
func TestAGuestsSendKeyReachesTheGuestAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group("supergroup", boss, ada)
	user, _, err := w.app.pairing.People.User(t.Context(), w.app.db, core.Peer{Platform: "telegram", ID: fmt.Sprint(ada.ID())})
	if err != nil || user == 0 {
		t.Fatal(user, err)
	}
	secret, _, err := w.app.keys.Create(t.Context(), auth.NewKey{Label: "hers", User: user, Trust: core.Sandboxed, Scopes: []string{auth.ScopeSend}}, cli)
	if err != nil {
		t.Fatal(err)
	}
	hers := http.Header{"Authorization": {"Bearer " + secret}}
	for _, chat := range []string{"owner", fmt.Sprint(boss.ID()), fmt.Sprint(g.ID())} {
		if status, _, body := w.sendAs(hers, "telegram", map[string]any{"chat": chat, "text": "psst"}); status != 404 {
			t.Errorf("a guest's key writes to %s: %d %s", chat, status, body)
		}
	}
	status, mine, body := w.sendAs(hers, "telegram", map[string]any{"chat": fmt.Sprint(ada.ID()), "text": "to myself"})
	if status != 202 {
		t.Fatal(status, body)
	}
	w.hearsText(ada, "to myself")
	_, owners, _ := w.sendAs(nil, "telegram", map[string]any{"chat": "owner", "text": "for the owner"})
	if status, m, _ := w.asked("GET", "/api/bots/telegram/messages/"+owners.ID, nil, hers); status != 404 {
		t.Errorf("a guest's key reads of the owner's message: %d %v", status, m)
	}
	if status, m, _ := w.asked("GET", "/api/bots/telegram/messages/"+mine.ID, nil, hers); status != 200 || m["id"] != mine.ID {
		t.Errorf("of her own: %d %v", status, m)
	}
}

// An admin reads nothing that was meant for the owner, who has no chat with the bot.
func TestAMessageToTheOwnerGoesToNoAdmin(t *testing.T) {
	t.Parallel()
	w, discord := onDiscord(t)
	w.boss()
	cleo := discord.NewUser("Cleo")
	cleo.Send("hello?")
	discordHears(w, discord, cleo.DM(), "code")
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, cleo).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	w.sql(`UPDATE users SET role = 'admin' WHERE id = (SELECT user_id FROM identities WHERE platform = $1)`, "discord")
	if status, _, body := w.sendAs(nil, "discord", map[string]any{"chat": "owner", "text": "for the owner"}); status != 404 || !strings.Contains(body, "has not claimed this bot") {
		t.Errorf("%d %s", status, body)
	}
}

func TestAMessageIsSaidOnceUnderOneIdempotencyKeyAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss := w.boss()
	once := http.Header{"Idempotency-Key": {"alert-17"}}
	_, first, _ := w.sendAs(once, "telegram", map[string]any{"chat": "owner", "text": "once"})
	w.arrives(first, "sent")
	w.stop()
	w.start()
	status, again, body := w.sendAs(once, "telegram", map[string]any{"chat": "owner", "text": "once"})
	if status != 202 || again.ID != first.ID || again.Status != "sent" {
		t.Errorf("again: %d %s", status, body)
	}
	if status, _, body := w.sendAs(once, "telegram", map[string]any{"chat": "owner", "text": "twice"}); status != 409 || !strings.Contains(body, "Idempotency-Key") {
		t.Errorf("with another text: %d %s", status, body)
	}
	w.quiet()
	if n := strings.Count(strings.Join(w.said(boss.DM(), 0), "\n"), "once"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestAnAlertWaitsForItsBotAndTellsWhyItFails: stored while the bot is stopped,
// sent when it runs again; one that the platform will never take says why; and
// what waits is bounded.
func TestAnAlertWaitsForItsBotAndTellsWhyItFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	if status, body := w.call("POST", "/api/bots/telegram/stop", nil); status != 200 {
		t.Fatal(status, body)
	}
	_, waits, _ := w.sendAs(nil, "telegram", map[string]any{"chat": "owner", "text": "it waits"})
	w.sql(`INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT 'telegram', $2, 'test:' || i, 0, '{"text":"x"}', 'ready', $3 FROM n`,
		unasked.MaxWaiting, fmt.Sprint(ada.ID()), core.Stamp(w.app.clock.Now()))
	status, _, h := w.asked("POST", "/api/bots/telegram/messages", map[string]any{"chat": fmt.Sprint(ada.ID()), "text": "one too many"}, nil)
	if status != 429 || h.Get("Retry-After") == "" {
		t.Errorf("with %d waiting: %d, Retry-After %q", unasked.MaxWaiting, status, h.Get("Retry-After"))
	}
	w.sql(`DELETE FROM outbox WHERE key LIKE 'test:%'`)
	ada.Block()
	_, fails, _ := w.sendAs(nil, "telegram", map[string]any{"chat": fmt.Sprint(ada.ID()), "text": "she has blocked the bot"})
	if status, body := w.call("POST", "/api/bots/telegram/start", nil); status != 200 {
		t.Fatal(status, body)
	}
	w.hearsText(boss, "it waits")
	w.arrives(waits, "sent")
	if now := w.arrives(fails, "failed"); now.Delivered != 0 || !strings.Contains(now.Error, "blocked") {
		t.Errorf("%+v", now)
	}
}

// TestAFileOfTheVaultGoesAlongForThoseWhoMayReadIt, once under one key.
func TestAFileOfTheVaultGoesAlongForThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	w.put("Private/report.txt", "all is well")
	once := http.Header{"Idempotency-Key": {"report"}}
	body := map[string]any{"chat": "owner", "text": "The report", "attachments": []string{"Private/report.txt"}}
	_, p, text := w.sendAs(once, "telegram", body)
	if now := w.arrives(p, "sent"); now.Parts != 2 {
		t.Errorf("%+v %s", now, text)
	}
	w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.File, "report.txt") })
	if status, again, text := w.sendAs(once, "telegram", body); status != 202 || again.ID != p.ID || again.Status != "sent" {
		t.Errorf("again: %d %s", status, text)
	}
	user, _, err := w.app.pairing.People.User(t.Context(), w.app.db, core.Peer{Platform: "telegram", ID: fmt.Sprint(ada.ID())})
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := w.app.keys.Create(t.Context(), auth.NewKey{Label: "hers", User: user, Trust: core.Sandboxed, Scopes: []string{auth.ScopeSend}}, cli)
	if err != nil {
		t.Fatal(err)
	}
	body["chat"] = fmt.Sprint(ada.ID())
	if status, _, text := w.sendAs(http.Header{"Authorization": {"Bearer " + secret}}, "telegram", body); status != 400 || !strings.Contains(text, "it is not there") {
		t.Errorf("a guest's key sends what the guest may not read: %d %s", status, text)
	}
}

// A file that comes with the request arrives on both platforms, once however
// often it is sent, and of the repetitions nothing stays.
func TestAFileThatComesWithTheRequestArrivesOnBothPlatforms(t *testing.T) {
	t.Parallel()
	w, discord := onDiscord(t)
	boss := w.boss()
	cleo := discord.NewUser("Cleo")
	cleo.Send("hello?")
	discordHears(w, discord, cleo.DM(), "code")
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, cleo).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	file := func(data string) []any {
		return []any{map[string]string{"name": "df.txt", "data": base64.StdEncoding.EncodeToString([]byte(data))}}
	}
	for bot, chat := range map[string]string{"telegram": "owner", "discord": cleo.DM().String()} {
		once := http.Header{"Idempotency-Key": {"disk-" + bot}}
		body := map[string]any{"chat": chat, "text": "The disk is full", "attachments": file("97 %")}
		var p bots.Posted
		for range 2 {
			status, again, text := w.sendAs(once, bot, body)
			if status != 202 || p.ID != "" && again.ID != p.ID {
				t.Errorf("%s: %d %s", bot, status, text)
			}
			p = again
		}
		body["attachments"] = file("98.5 %")
		if status, _, text := w.sendAs(once, bot, body); status != 409 {
			t.Errorf("%s: another file under the same key: %d %s", bot, status, text)
		}
		if now := w.arrives(p, "sent"); now.Parts != 2 {
			t.Errorf("%s: %+v", bot, now)
		}
	}
	w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.File, "df.txt") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := discord.AwaitMessage(ctx, cleo.DM(), func(m discordtest.Message) bool {
		return len(m.Attachments) == 1 && m.Attachments[0].Filename == "df.txt" && m.Attachments[0].Size == 4
	}); err != nil {
		t.Error(err)
	}
	if kept, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, "Chat/assets/*/*df.txt")); err != nil || len(kept) != 2 || w.count(`SELECT count(*) FROM attachments`) != 2 {
		t.Errorf("kept: %v, %v", kept, err)
	}
}

func TestWhatCannotBeSentIsRefusedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.boss()
	for _, c := range []struct {
		body   map[string]any
		status int
		says   string
	}{
		{map[string]any{"chat": "owner"}, 400, `"field":"text"`},
		{map[string]any{"chat": "owner", "text": " \n"}, 400, `"field":"text"`},
		{map[string]any{"text": "x"}, 400, `"field":"chat"`},
		{map[string]any{"chat": 17, "text": "x"}, 400, `"field":"chat"`},
		{map[string]any{"chat": strings.Repeat("9", 200), "text": "x"}, 400, `"field":"chat"`},
		{map[string]any{"chat": "owner", "text": strings.Repeat("x", bots.MaxText+1)}, 413, `"field":"text"`},
		{map[string]any{"chat": "owner", "text": "x", "attachments": []string{"1", "2", "3", "4", "5", "6"}}, 400, `"field":"attachments"`},
		{map[string]any{"chat": "owner", "text": "x", "attachments": []string{"Public/nothing.png"}}, 400, "it is not there"},
		{map[string]any{"chat": "owner", "text": "x", "attachments": []string{"../../etc/passwd"}}, 400, "cannot be sent"},
		{map[string]any{"chat": "owner", "text": "x", "attachments": []string{"Public"}}, 400, "folder"},
		{map[string]any{"chat": "owner", "text": "[a]: http://b"}, 400, "empty"},
	} {
		if status, _, body := w.sendAs(nil, "telegram", c.body); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%.60v: %d %s", c.body, status, body)
		}
	}
}

// The command line, with a gateway and without one.
func TestSendKeysAndAuditOnTheCommandLine(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	claim := func() string {
		_, out, _ := h.run("claim", "--json")
		var c struct{ Code string }
		if json.Unmarshal([]byte(out), &c) != nil || c.Code == "" {
			t.Fatal(out)
		}
		return c.Code
	}
	olga := sim.NewUser("Olga")
	olga.Send("/claim " + claim())
	if code, _, errs := h.run("send", "too early"); code != 1 || !strings.Contains(errs, "claim") {
		t.Errorf("send before there is an owner: %d %q", code, errs)
	}
	p := h.serve(nil)
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	code, out, errs := h.run("send", "--wait", "20s", "**It** works")
	if code != 0 || !strings.HasPrefix(out, "sent 1-") {
		t.Fatalf("send --wait: %d %q %q", code, out, errs)
	}
	hear(t, sim, olga.DM(), 0, "It works")
	in := filepath.Join(h.dir, "words")
	if err := os.WriteFile(in, []byte("from a pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	piped := h.piped(in, "send", "--bot", "telegram", "--chat", fmt.Sprint(olga.ID()), "--id", "one", "--json", "--wait", "20s", "-")
	if piped.Status != "sent" {
		t.Errorf("%+v", piped)
	}
	hear(t, sim, olga.DM(), 0, "from a pipe")
	if again := h.piped(in, "send", "--chat", fmt.Sprint(olga.ID()), "--id", "one", "--json", "-"); again.ID != piped.ID {
		t.Errorf("the same --id made %s of %s", again.ID, piped.ID)
	}
	if code, out, errs := h.run("send", "--file", in, "--wait", "20s"); code != 0 || !strings.HasPrefix(out, "sent ") {
		t.Errorf("send --file: %d %q %q", code, out, errs)
	}
	if _, err := sim.AwaitMessage(t.Context(), olga.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.File, "words") }); err != nil {
		t.Error(err)
	}
	if code, _, errs := h.run("send", "--file", in+".none", "x"); code == 0 || !strings.Contains(errs, "words.none") {
		t.Errorf("send --file of none: %d %q", code, errs)
	}
	if code, out, _ := h.run("send", "--status", piped.ID); code != 0 || !strings.HasPrefix(out, "sent ") {
		t.Errorf("--status: %d %q", code, out)
	}
	if code, _, errs := h.run("send", "--chat", "4711", "psst"); code != 1 || !strings.Contains(errs, "approved people") {
		t.Errorf("an unknown chat: %d %q", code, errs)
	}
	for _, args := range [][]string{{"send"}, {"send", " "}, {"send", "x", "--status", "1-x"}, {"send", "--bot", "two", "x"}} {
		if code, _, errs := h.run(args...); code == 0 || errs == "" {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}

	code, secret, errs := h.run("keys", "create", "alerts", "--scope", "send,metrics", "--for", "1h")
	secret = strings.TrimSpace(secret)
	if code != 0 || !strings.HasPrefix(secret, "gh_") || strings.Contains(errs, secret) {
		t.Fatalf("keys create: %d %q %q", code, secret, errs)
	}
	ask := func() int {
		req, _ := http.NewRequest("GET", "http://"+p.addr()+"/metrics", nil)
		req.Header.Set("X-API-Key", secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := ask(); got != 200 {
		t.Errorf("with the new key: %d", got)
	}
	var keys []auth.KeyRow
	_, out, _ = h.run("keys", "list", "--json")
	if json.Unmarshal([]byte(out), &keys) != nil || len(keys) != 2 || keys[0].Label != "alerts" || keys[0].ExpiresAt.IsZero() || strings.Contains(out, secret[3:]) {
		t.Fatalf("keys list: %s", out)
	}
	if _, out, _ = h.run("keys", "list"); !strings.Contains(out, "alerts") || !strings.Contains(out, "metrics,send") {
		t.Errorf("keys list: %s", out)
	}
	older := secret
	code, secret, errs = h.run("keys", "rotate", keys[0].ID, "--grace", "1h")
	if secret = strings.TrimSpace(secret); code != 0 || !strings.HasPrefix(secret, "gh_") || secret == older || !strings.Contains(errs, "The old secret is valid until") {
		t.Fatalf("keys rotate --grace: %d %q", code, errs)
	}
	if got := ask(); got != 200 {
		t.Errorf("with the new secret: %d", got)
	}
	newest := secret
	if secret = older; ask() != 200 {
		t.Error("within the grace the old secret is refused")
	}
	if code, secret, errs = h.run("keys", "rotate", keys[0].ID); code != 0 || strings.Contains(errs, "The old secret") {
		t.Fatalf("keys rotate: %d %q", code, errs)
	}
	rotated := strings.TrimSpace(secret)
	if secret = newest; ask() != 401 {
		t.Error("the old secret is valid without a grace")
	}
	if secret = rotated; ask() != 200 {
		t.Error("the new secret is refused")
	}
	if code, _, errs := h.run("keys", "rotate", keys[0].ID, "--grace", "721h"); code != 2 || !strings.Contains(errs, "at most 30 days") {
		t.Errorf("keys rotate --grace 721h: %d %q", code, errs)
	}
	if code, out, _ := h.run("keys", "revoke", keys[0].ID); code != 0 || !strings.Contains(out, keys[0].ID) {
		t.Errorf("keys revoke: %d %q", code, out)
	}
	if got := ask(); got != 401 {
		t.Errorf("with the revoked key: %d", got)
	}
	// A key ends after 90 days, unless --for says otherwise.
	for label, args := range map[string][]string{"quarter": nil, "endless": {"--for", "0"}} {
		if code, _, errs := h.run(append([]string{"keys", "create", label, "--scope", "send"}, args...)...); code != 0 {
			t.Fatalf("keys create %s: %d %q", label, code, errs)
		}
	}
	_, out, _ = h.run("keys", "list", "--json")
	var made []auth.KeyRow
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	for _, k := range made {
		left := time.Until(k.ExpiresAt)
		if k.Label == "quarter" && (left < 89*24*time.Hour || left > 90*24*time.Hour) || k.Label == "endless" && !k.ExpiresAt.IsZero() {
			t.Errorf("%s ends %v", k.Label, k.ExpiresAt)
		}
	}
	for _, args := range [][]string{{"keys", "create", "x", "--scope", "root"}, {"keys", "create", "x", "--scope", "chat", "--user", "77"}, {"keys", "create", "x"}, {"keys", "create", "x", "--scope", "chat", "--for", "-1h"}} {
		if code, _, errs := h.run(args...); code != 2 || errs == "" {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}

	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.end()
	if code, _, errs := h.run("keys", "revoke", keys[0].ID); code != 1 || !strings.Contains(errs, "no such key") {
		t.Errorf("revoked twice: %d %q", code, errs)
	}
	code, out, errs = h.run("send", "while nobody serves")
	if code != 0 || !strings.HasPrefix(out, "queued 1-") {
		t.Errorf("send with nobody serving: %d %q %q", code, out, errs)
	}
	code, out, errs = h.run("audit", "--action", "key.*", "--user", "1")
	if code != 0 || strings.Count(out, "key.create") != 3 || strings.Count(out, "key.revoke") != 1 || strings.Count(out, "key.rotate") != 2 || !strings.Contains(out, "owner") {
		t.Errorf("audit: %d %q %q", code, out, errs)
	}
	code, out, _ = h.run("audit", "--json", "--limit", "1", "--action", "message.send")
	var event struct{ Action, Via string }
	if json.Unmarshal([]byte(out), &event) != nil || code != 0 || event.Action != "message.send" || event.Via != "cli" || strings.Count(out, "\n") != 1 {
		t.Errorf("audit --json: %d %q", code, out)
	}
	h.serve(nil)
	hear(t, sim, olga.DM(), 0, "while nobody serves")
}

// piped runs a command with a file as its standard input.
func (h *home) piped(file string, args ...string) (posted bots.Posted) {
	h.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	p := h.start(func(c *exec.Cmd) { c.Stdin = f }, args...)
	if code := p.end(); code != 0 || json.Unmarshal([]byte(p.out.String()), &posted) != nil {
		h.t.Errorf("%v: %d %q %q", args, code, p.out.String(), p.err.String())
	}
	return posted
}
