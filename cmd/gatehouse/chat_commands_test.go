package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// Every command, by whoever may and whoever may not, where it is written.
func TestEveryCommandAnswersWhomItIsForAndNoOneElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss := w.boss()
	ada := w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	const onlyOwner = "Only the owner"
	for _, c := range []struct{ text, boss, ada string }{
		{"/start", "Hello Olga", "Hello Ada"},
		{"/help", "/enable", "/whoami"},
		{"/new", "new conversation", "new conversation"},
		{"/stop", "Nothing is running", "Nothing is running"},
		{"/status", "trust here: vault", "trust here: sandboxed"},
		{"/whoami", "user 1 (owner), at trust vault", "(guest), at trust sandboxed"},
		{"/pairing", "No request is pending", onlyOwner},
		{"/approve", "/approve CODE", onlyOwner},
		{"/approve NOTACODE", "No pending request has the code or id NOTACODE", onlyOwner},
		{"/approve X Y Z", "I don't understand “Y” here. Write /approve CODE", onlyOwner},
		{"/busy sometimes", "I don't understand “sometimes” here", "/busy queue"},
		{"/model nosuch", "There is no model nosuch for you here", "/model local/quote"},
		{"/resume zzz", "whose id begins with zzz", "/sessions"},
		{"/agents weekly", "I don't understand “weekly” here", onlyOwner},
		{"/activity maybe", "I don't understand “maybe” here", onlyOwner},
		{"/forget it", "I don't understand “it” here", "/forget 3"},
		{"/remind some day tea", "“some day tea” does not begin with a time that I understand", "every day at 8"},
		{"/help remind", "next monday at 9", "next monday at 9"},
		{"/help approve", "/approve K7M2Q9XT vault 7d", onlyOwner},
		{"/deny", "/deny CODE", onlyOwner},
		{"/enable", "works only in a group", onlyOwner},
		{"/disable", "works only in a group", onlyOwner},
		{"/claim AAAAA-BBBBB", "invalid", "invalid"},
		{"/nonsense", "I don't know /nonsense", "I don't know /nonsense"},
	} {
		for who, want := range map[*telegramtest.User]string{boss: c.boss, ada: c.ada} {
			if got := w.replies(who, c.text).Text; !strings.Contains(got, want) {
				t.Errorf("%s by %s: %q, want %q in it", c.text, who.Account().FirstName, got, want)
			}
			w.quiet()
		}
	}
	if got := w.replies(ada, "/help").Text; strings.Contains(got, "/approve") || strings.Contains(got, "/enable") {
		t.Errorf("a guest's help names the owner's commands: %q", got)
	}
	for _, c := range []struct {
		who        *telegramtest.User
		text, want string
	}{
		{ada, "/status", "trust here: sandboxed"},
		{ada, "/whoami", "at trust sandboxed"},
		{ada, "/disable", onlyOwner},
		{ada, "/pairing", onlyOwner},
		{boss, "/whoami", "at trust sandboxed"}, // no turn in a group exceeds the group's level
		{boss, "/disable", "This group is disabled"},
		{boss, "/enable", "This group is enabled"},
	} {
		m := w.post(c.who, g.Conversation(), telegramtest.Outgoing{Text: c.text})
		got := w.answers(g.Conversation(), m.ID)
		if !strings.Contains(got.Text, c.want) {
			t.Errorf("%s by %s in the group: %q, want %q in it", c.text, c.who.Account().FirstName, got.Text, c.want)
		}
		if got.ReplyTo != m.ID {
			t.Errorf("%s in the group: the answer quotes %d, not the command %d", c.text, got.ReplyTo, m.ID)
		}
		w.quiet()
	}
}

// A stranger's commands show their code or nothing, and never do anything.
func TestAStrangersCommandsDoNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss := w.boss()
	for _, text := range []string{"/start", "/help", "/new", "/stop", "/status", "/whoami", "/pairing", "/approve X", "/deny X", "/enable", "/disable", "/nonsense"} {
		eve := w.sim.NewUser("Eve " + strings.TrimPrefix(text, "/"))
		r := eve.Send(text)
		got := w.answers(eve.DM(), r.ID)
		if !strings.Contains(got.Text, "Your code is") {
			t.Errorf("%s by a stranger: %q", text, got.Text)
		}
		w.quiet()
		eve.Send(text)
		w.quiet()
		if all := w.said(eve.DM(), 0); len(all) != 1 {
			t.Errorf("%s twice by a stranger: %q", text, all)
		}
	}
	eve := w.sim.NewUser("Eve in the group")
	g := w.group(telegramtest.Supergroup, boss, eve)
	w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: "/disable"})
	w.quiet()
	before := w.metric("gatehouse_denied_total", "rule", "place") // of what came before the group was enabled
	last := w.post(eve, g.Conversation(), telegramtest.Outgoing{Text: "/enable"})
	w.post(eve, g.Conversation(), telegramtest.Outgoing{Text: w.mention("hello?")})
	w.until("both are refused", func() bool { return w.metric("gatehouse_denied_total", "rule", "place") == before+2 })
	w.quiet()
	if got := w.said(g.Conversation(), last.ID); len(got) != 0 {
		t.Errorf("a stranger woke the bot in a group that is not enabled: %q", got)
	}
}

func TestTheClaimCodeWorksOnceAndOnlyInADirectMessage(t *testing.T) {
	w := newWorld(t, nil)
	ada, eve := w.sim.NewUser("Ada"), w.sim.NewUser("Eve")
	code, _, err := w.app.pairing.Codes.NewClaim(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.replies(eve, "/claim 22222-33333").Text; !strings.Contains(got, "invalid") {
		t.Errorf("a wrong code: %q", got)
	}
	if got := w.replies(ada, "/claim "+strings.ToLower(code)).Text; !strings.Contains(got, "You are the owner now") {
		t.Errorf("the right code: %q", got)
	}
	if got := w.replies(eve, "/claim "+code).Text; strings.Contains(got, "owner now") {
		t.Errorf("the code worked twice: %q", got)
	}
	if _, _, err := w.app.pairing.Codes.NewClaim(t.Context(), false); err == nil {
		t.Error("a second code was made while an owner exists")
	}
	second, _, err := w.app.pairing.Codes.NewClaim(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	g := w.sim.NewGroup(telegramtest.Supergroup, "All ears", ada, eve)
	w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: "/claim " + second})
	w.logged("void")
	if got := w.replies(eve, "/claim "+second).Text; strings.Contains(got, "owner now") {
		t.Errorf("a code that a group has read still worked: %q", got)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE payload LIKE '%' || $1 || '%' OR payload LIKE '%' || $2 || '%'`, code, second); n != 0 {
		t.Errorf("%d rows keep a claim code", n)
	}
	if strings.Contains(w.log.String(), second) || strings.Contains(w.log.String(), code) {
		t.Error("a claim code is in the log")
	}
}

// The owner decides by the buttons: the message says what was decided and has
// no buttons any more, and the press is answered after the decision.
func TestTheOwnersButtonsDecideAndThenReportWhat(t *testing.T) {
	w := newWorld(t, nil)
	boss := w.boss()
	for _, c := range []struct {
		row, col int
		person   string // what the person reads
		outcome  string // what the message of the owner becomes
		status   string
	}{
		{0, 0, "tea", "pproved", "approved"}, {0, 1, "tea", "pproved", "approved"},
		{1, 0, "was denied", "enied", "denied"}, {1, 1, "", "locked", "blocked"},
	} {
		eve := w.sim.NewUser(fmt.Sprintf("Eve %d%d", c.row, c.col))
		eve.Send("How long should green tea brew?")
		r := w.request(eve)
		ask := w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, r.Code) && len(m.Buttons) == 2 })
		var decided string
		stop := w.sim.Watch(func(ch telegramtest.Change) {
			if ch.Kind == telegramtest.ChangeAnswer { // at once: the state at this very moment
				_ = w.app.db.Get(t.Context(), &decided, `SELECT status FROM pairing_requests WHERE id = $1`, r.ID)
			}
		})
		pressed := w.sim.Requests(0, "answercallbackquery")
		if _, err := boss.Press(boss.DM(), ask.ID, ask.Buttons[c.row][c.col].CallbackData); err != nil {
			t.Fatal(err)
		}
		got := w.hears(boss.DM(), func(m telegramtest.Message) bool { return m.ID == ask.ID && len(m.Buttons) == 0 })
		if !strings.Contains(got.Text, c.outcome) {
			t.Errorf("%s: the message became %q", c.status, got.Text)
		}
		w.until("the press is answered", func() bool { return len(w.sim.Requests(0, "answercallbackquery")) == len(pressed)+1 })
		w.quiet()
		stop()
		if decided != c.status && !(c.status == "blocked" && decided != "pending" && decided != "") {
			t.Errorf("when the press was answered the request was %q, want %q", decided, c.status)
		}
		if c.person != "" {
			w.hearsText(eve, c.person)
		}
		if _, err := boss.Press(boss.DM(), ask.ID, ask.Buttons[0][0].CallbackData); err == nil {
			t.Error("the buttons are still there")
		}
	}
}

// /approve CODE and /deny CODE decide as the buttons do, while an answer is
// being made in the owner's chat.
func TestTheOwnerDecidesByCommandWhileTheBotIsBusy(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	eve, mia := w.sim.NewUser("Eve"), w.sim.NewUser("Mia")
	eve.Send("Hello from Eve")
	mia.Send("Hello from Mia")
	re, rm := w.request(eve), w.request(mia)
	w.hearsText(boss, "Hello from Eve")
	w.hearsText(boss, "Hello from Mia")
	calls := model.Total()
	model.Script(llmtest.Reply{HangHead: true})
	boss.Send("Think for long.")
	if err := model.Await(t.Context(), calls+1); err != nil {
		t.Fatal(err)
	}
	list := w.replies(boss, "/status").Text
	if !strings.Contains(list, "I have been answering") {
		t.Errorf("/status: %q", list)
	}
	if got := w.replies(boss, "/approve "+re.Code+" vault").Text; !strings.Contains(got, "Approved Eve at trust vault") {
		t.Errorf("/approve: %q", got)
	}
	w.hearsText(eve, fakeSays)
	if got := w.replies(boss, "/deny "+rm.Code).Text; !strings.Contains(got, "Denied Mia") {
		t.Errorf("/deny: %q", got)
	}
	w.hearsText(mia, "was denied")
	if got := w.replies(boss, "/approve "+rm.Code).Text; !strings.Contains(got, "already denied by") {
		t.Errorf("the second decision: %q", got)
	}
	boss.Send("/stop")
	w.hearsText(boss, "Stopped")
}
