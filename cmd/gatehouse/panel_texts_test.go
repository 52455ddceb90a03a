package main

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/cmd/gatehouse/bottexts"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/texts"
	"gatehouse/pairing/codes"
)

var _ settings.Texts = bottexts.Texts{}

var versionField = regexp.MustCompile(`name="version" value="([^"]*)"`)

// writeText has bot say body, as somebody at the panel's forms does.
func (b *browser) writeText(bot, name, body string) {
	b.w.t.Helper()
	path := "/admin/settings/texts/" + bot + "/" + name
	page := b.page(path)
	form := url.Values{"version": {versionField.FindStringSubmatch(page)[1]}, "text": {body}, "do": {"preview"}}
	_, page = b.submit(path, page, form)
	if !strings.Contains(page, `id="preview"`) {
		b.w.t.Fatalf("%s is not previewed: %s", name, page)
	}
	form.Set("do", "save")
	if _, page = b.submit(path, page, form); !strings.Contains(page, "is used from now on") {
		b.w.t.Fatalf("%s is not saved: %s", name, page)
	}
}

// What is written in the panel is what people are told, at once, on whichever
// way it is said; another bot says what it said before.
func TestATextThatWasWrittenAgainIsSaidOnEveryWayAtOnce(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	boss := w.owner("Olga")
	b := w.browser()
	b.writeText("telegram", "code", "Ciao {{.Name}}, sono *{{.Bot}}*.\r\n\r\nIl tuo codice: {{.Code}}")
	b.writeText("telegram", "start", "Benvenuto. {{.Code}}")
	b.writeText("telegram", "help", "Aiuto? {{.Code}}")
	b.writeText("telegram", "approved", "Avanti, {{.Name}}!")
	b.writeText("telegram", "denied", "Purtroppo no, {{.Name}}.")
	b.writeText("telegram", "invited", "Invitato, {{.Name}}!")

	stranger := func(name, first, says string) (*telegramtest.User, core.PairingRequest) {
		u := w.sim.NewUser(name)
		u.Send(first)
		m := w.hearsText(u, says)
		r := w.request(u)
		if len(m.Entities) != 1 || m.Entities[0].Type != "code" || !strings.Contains(m.Text, r.Code) {
			t.Errorf("%s is told %q with %+v", name, m.Text, m.Entities)
		}
		return u, r
	}
	ada, r := stranger("A*da_ <b>&amp;", "hello", "Ciao A*da_ <b>&amp;, sono *telegram*.\n\nIl tuo codice: ")
	page := b.page("/admin/pairing")
	if status, body := b.submit("/admin/pairing/"+r.ID+"/approve", page, url.Values{"trust": {"sandboxed"}}); status != 200 {
		t.Fatal("the panel: ", status, body)
	}
	w.hearsText(ada, "Avanti, A*da_ <b>&amp;!")
	bo, r := stranger("Bo", "/start", "Benvenuto. ")
	if status, body := w.call("POST", "/api/bots/pairing/"+r.ID+"/approve", map[string]string{}); status != 200 {
		t.Fatal("the API: ", status, body)
	}
	w.hearsText(bo, "Avanti, Bo!")
	cy, r := stranger("Cy", "/help", "Aiuto? ")
	if err := w.overSocket("POST", "/api/bots/pairing/"+r.Code+"/approve", nil, nil); err != nil {
		t.Fatal("the command line: ", err)
	}
	w.hearsText(cy, "Avanti, Cy!")
	di, r := stranger("Di", "hello", "Ciao Di")
	boss.Send("/approve " + r.Code)
	w.hearsText(di, "Avanti, Di!")
	ed, r := stranger("Ed", "hello", "Ciao Ed")
	boss.Send("/deny " + r.Code)
	w.hearsText(ed, "Purtroppo no, Ed.")
	invite, _, err := w.app.pairing.Codes.Invite(t.Context(), codes.Invitation{Bot: "telegram", Scope: core.ScopeDM, Trust: core.Sandboxed, UsesLeft: 1, ExpiresAt: time.Now().Add(time.Hour)}, byPanel)
	if err != nil {
		t.Fatal(err)
	}
	flo := w.sim.NewUser("Flo")
	flo.Send("/pair " + invite)
	w.hearsText(flo, "Invitato, Flo!")

	// The other bot has texts of its own.
	gus := sim.NewUser("Gus")
	gus.Send("hello")
	discordHears(w, sim, gus.DM(), "Hello! I answer only people my owner has approved.")
	b.writeText("discord", "code", "Hey {{.Name}} **du** @everyone: {{.Code}}")
	hal := sim.NewUser("Hal|_x_||")
	hal.Send("hello")
	m := discordHears(w, sim, hal.DM(), "Hey")
	code := discordRequest(w, hal).Code
	if want := `Hey Hal\|\_x\_\|\| \*\*du\*\* \@everyone: ` + "`" + code + "`"; m.Text != want && strings.ReplaceAll(m.Text, `\@`, "@") != strings.ReplaceAll(want, `\@`, "@") {
		t.Errorf("Discord is sent %q, want %q", m.Text, want)
	}

	w.again()
	iva := w.sim.NewUser("Iva")
	iva.Send("hello")
	w.hearsText(iva, "Ciao Iva")
	b = w.browser()
	path := "/admin/settings/texts/telegram/code"
	page = b.page(path)
	if _, body := b.submit(path, page, url.Values{"version": {versionField.FindStringSubmatch(page)[1]}, "do": {"default"}}); !strings.Contains(body, "is the default again") {
		t.Fatal(body)
	}
	joe := w.sim.NewUser("Joe")
	joe.Send("hello")
	w.hearsText(joe, "Hello! I answer only people my owner has approved. Your code is ")
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'setting.change' AND user_id = 1 AND via = 'panel' AND subject = 'bot telegram' AND detail LIKE '%"text":"code"%'`); n != 2 {
		t.Errorf("%d audit rows for one text that was written and taken back", n)
	}
}

// A text that can't be said changes nothing, and says why; so does one that
// somebody else has changed in between.
func TestATextThatCanNotBeSaidIsNotSaved(t *testing.T) {
	t.Parallel()
	w, _ := onDiscord(t)
	b := w.browser()
	for _, c := range []struct{ bot, name, body, says string }{
		{"telegram", "code", "Hi\n{{.Cod}}", "Line 2: there is no field {{.Cod}}; there is {{.Code}}, {{.Name}} and {{.Bot}}"},
		{"telegram", "approved", "Hi {{.Name", "Line 1: braces that are opened there"},
		{"telegram", "start", "Hi", "The code is missing"},
		{"telegram", "denied", strings.Repeat("x", 3996), "It is too long: with a long name it takes 3997 characters, and a message here holds 3996"},
		{"discord", "denied", strings.Repeat("*", 951), "It is too long: with a long name it takes 1902 characters, and a message here holds 1900"},
	} {
		path := "/admin/settings/texts/" + c.bot + "/" + c.name
		if c.name == "denied" && c.bot == "telegram" {
			c.body += "x"
		}
		for do, want := range map[string]int{"preview": 200, "save": 422} {
			status, body := b.submit(path, b.page(path), url.Values{"text": {c.body}, "do": {do}})
			if body = html.UnescapeString(body); status != want || !strings.Contains(body, c.says) || !strings.Contains(body, "\n"+c.body+"</textarea>") {
				t.Errorf("%s of %s: %d, the page does not say %q with what was written", do, c.name, status, c.says)
			}
		}
	}
	v := w.app.botTexts()
	if err := v.SetText(t.Context(), "telegram", "denied", "", "No.", byPanel); err != nil {
		t.Fatal(err)
	}
	if err := v.SetText(t.Context(), "telegram", "denied", "", "Nope.", byPanel); core.KindOf(err) != core.Conflict || !strings.Contains(core.TextOf(err), "was changed concurrently") {
		t.Errorf("the second of two writers: %v", err)
	}
	if err := v.SetText(t.Context(), "telegram", "claimed", "", "Mine.", byPanel); core.KindOf(err) != core.NotFound {
		t.Errorf("a text that is not editable: %v", err)
	}
	if err := v.SetText(t.Context(), "nobody", "denied", "", "No.", byPanel); core.KindOf(err) != core.NotFound {
		t.Errorf("a bot that is not there: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'setting.change'`); n != 1 {
		t.Errorf("%d changes, want one", n)
	}
	// One that an older program has let pass does not leave people without a word.
	if err := w.app.settings.Change(t.Context(), byPanel, live.Change{Edit: func(ch *configs.Changes) {
		ch.Bots["telegram"] = configs.BotChange{Texts: map[string]string{"code": "{{.Gone}}"}}
	}}); err != nil {
		t.Fatal(err)
	}
	ada := w.sim.NewUser("Ada")
	ada.Send("hello")
	w.hearsText(ada, "Your code is")
	w.logged("a text that was set in the panel is invalid")
}

// The longest text that is let pass is one message on either platform.
func TestTheLongestTextIsOneMessage(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	v := w.app.botTexts()
	for bot, one := range map[string]string{"telegram": "🙂", "discord": "_"} {
		room, fits := bottexts.RoomOn(bot), 0
		o, _ := texts.Find("code")
		for n := room.Most; n > 0 && fits == 0; n-- {
			if o.Check(strings.Repeat(one, n)+"{{.Code}}", bot, room) == nil {
				fits = n
			}
		}
		if err := v.SetText(t.Context(), bot, "code", "", strings.Repeat(one, fits)+"{{.Code}}", byPanel); err != nil {
			t.Fatal(err)
		}
	}
	ada, bo := w.sim.NewUser("Ada"), sim.NewUser("Bo")
	ada.Send("hello")
	w.hearsText(ada, "🙂"+w.request(ada).Code)
	bo.Send("hello")
	if m := discordHears(w, sim, bo.DM(), "`"); len(m.Text) > markup.MaxText {
		t.Errorf("%d characters", len(m.Text))
	}
	for who, n := range map[string]int{fmt.Sprint(ada.DM()): len(w.sim.History(ada.DM())), "discord": len(sim.History(bo.DM()))} {
		if n != 2 {
			t.Errorf("%s: %d messages, want one and its answer", who, n)
		}
	}
}
