package admin_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/admin"
	admincouncil "gatehouse/admin/council"
	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/web/auth"
)

// disputed is the question to a council in a full world.
const disputed = "query-1"

// openCouncil fills the options with a real ledger.
func (w *world) openCouncil(t *testing.T, db *store.DB, o *admin.Options) {
	t.Helper()
	box, err := sealed.Create(filepath.Join(t.TempDir(), "keys", "content"))
	if err != nil {
		t.Fatal(err)
	}
	w.council = ledger.New(ledger.Options{DB: db, Clock: w.clock, Seal: box})
	w.finish = func(ctx context.Context, r ledger.Result) error {
		return db.Tx(ctx, func(tx *store.Tx) error { return w.council.Finish(ctx, tx, r) })
	}
	o.Council = admincouncil.Options{Store: w.council, Pick: w.council.Pick, Seats: func() ([]string, string) { return w.members, w.judge }}
}

// quarrel has a council be asked by the operator, and its members contradict each other. name is of
// a domain that one of them reports, mark stands behind what each says.
func (w *world) quarrel(question, name, mark string) {
	w.dispute(core.Operator, disputed, "s", question, mark)
	if _, err := w.council.ResolveDomain(context.Background(), "one/alpha", name, false, nil); err != nil {
		panic(err)
	}
}

// dispute has a user ask a council in a conversation, and its members contradict each other.
func (w *world) dispute(user int64, id, session, question, mark string) {
	ctx, cost := context.Background(), int64(2400)
	_, _, err := w.council.Begin(ctx, ledger.Query{ID: id, User: user, Conversation: session, Level: choice.High, Asked: choice.Maximum, Question: question})
	r := ledger.Result{Query: id, Winner: "one/alpha", Reason: "welfare", Callout: choice.CalloutDisagreement, Confidence: choice.LabelUncertain, Used: []string{"one/alpha", "two/beta"}, Calls: 5, MicroUSD: &cost,
		Note: ledger.Note{Reviews: []ledger.Reviewed{{Model: "two/beta", Review: choice.Review{Verdict: choice.ReviewIncorrect, Issues: []string{"too deep" + mark}}}}, Left: []string{"three/gamma: no answer in 20 s"}, Contradict: [][2]string{{"one/alpha", "two/beta"}}}}
	for i, text := range []string{"Ten centimetres deep." + mark, "Thirty centimetres deep." + mark} {
		model := []string{"one/alpha", "two/beta"}[i]
		if err == nil {
			err = w.council.Save(ctx, ledger.Stage{Query: id, Stage: ledger.StageAnswer, Model: model, Content: text})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundAnswer, Response: text, Utility: 0.41, Confidence: 0.9, Welfare: 0.62, State: "ok", Claim: i + 1, Detail: ledger.Detail{LatencyMS: 640, TotalMS: 2100, MicroUSD: &cost}})
	}
	r.Runs = append(r.Runs, ledger.Run{Model: "three/gamma", Round: ledger.RoundAnswer, Utility: math.NaN(), Confidence: math.NaN(), Welfare: math.NaN(), State: "late", Error: "no answer in 20 s"})
	if err == nil {
		err = w.finish(ctx, r)
	}
	if err != nil {
		panic(err)
	}
}

func TestCouncil_FiguresQuestionsAndHowOneWasAnswered(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	if a := s.get("/admin/council"); !strings.Contains(a.body, "No council was asked in this time") {
		t.Errorf("%s", a.main())
	}
	s.world.full()
	a := s.get("/admin/council")
	a.has(t, "1 question was asked in 30 days", "one/alpha", "70 of 100", "1.00 times", "after 10 outcomes", "Disputed", "How deep do I plant potatoes?", `href="/admin/council/queries/query-1"`)
	a = s.get("/admin/council/queries/" + disputed)
	a.has(t, "contradict each other", "Accuracy high instead of maximum", "Ten centimetres deep.", "0.62", "too deep", "three/gamma: no answer in 20 s", `</span> and <span class="num">two/beta</span> contradict each other.`)
	if _, err := s.world.council.Pick(t.Context(), core.Operator, disputed, "two/beta"); err != nil {
		t.Fatal(err)
	}
	s.get("/admin/council/queries/"+disputed).has(t, "The user picked the answer of", "Winner", "by pick")
	s.get("/admin/council/domains").has(t, "garden.potatoes", "Mathematics", "10 domains, 1 candidate")
	if a := s.get("/admin/council/queries/none"); a.status != 404 {
		t.Errorf("status %d", a.status)
	}
}

// Who answers is shown before anything was asked; who is no member any more, behind them.
func TestTheCouncilPageNamesItsMembersBeforeTheFirstQuestion(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	a := s.get("/admin/council")
	a.has(t, "There is no council", "GATEHOUSE_COUNCIL")
	s.world.members, s.world.judge = []string{"two/beta", "one/alpha"}, "four/delta"
	a = s.get("/admin/council")
	a.has(t, `<span class="num">two/beta</span> <span class="pill">Member</span>`, `<span class="num">one/alpha</span> <span class="pill">Member</span>`, `<span class="num">four/delta</span> <span class="pill">Judge</span>`, "no figures yet")
	a.lacks(t, "There is no council", "of 100")
	s.world.full() // one/alpha was asked too
	s.world.members, s.world.judge = []string{"two/beta", "five/epsilon"}, "five/epsilon"
	a = s.get("/admin/council")
	a.has(t, `<span class="num">two/beta</span> <span class="pill">Member</span>`, `<span class="num">five/epsilon</span> <span class="pill">Member</span> <span class="pill">Judge</span>`, `<span class="num">one/alpha</span></th>`)
	if two, five, one := strings.Index(a.body, ">two/beta</span> <"), strings.Index(a.body, ">five/epsilon</span> <"), strings.Index(a.body, ">one/alpha</span></th>"); two < 0 || five < two || one < five {
		t.Errorf("in the order %d, %d, %d", two, five, one)
	}
}

func TestTheCouncilPageHasTheRatesOfAllDomains(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	for i, domain := range []string{"code", "legal", "math", "science"} {
		s.world.judged(fmt.Sprint("q", i), domain, i%2 == 0)
	}
	a := s.get("/admin/council")
	a.has(t, "<summary>All 4 domains</summary>", "<li>code ", "right in 100 % of 0.7", "<li>science ", "right in 0 % of 0.7")
	a.lacks(t, "<li>writing")
}

// judged has a council be asked about a domain, and a reviewer judge the answer.
func (w *world) judged(id, domain string, right bool) {
	verdict := ledger.Incorrect
	if right {
		verdict = ledger.Correct
	}
	_, _, err := w.council.Begin(context.Background(), ledger.Query{ID: id, User: core.Operator, Conversation: "s", Level: choice.High, Asked: choice.High, Question: "?"})
	if err == nil {
		err = w.finish(context.Background(), ledger.Result{Query: id, Winner: "one/alpha", Used: []string{"one/alpha"}, Domains: []choice.Share{{Domain: domain, Weight: 1}},
			Runs: []ledger.Run{{Model: "one/alpha", Round: ledger.RoundAnswer, Response: "yes", State: "ok", Domain: domain, Verdict: verdict}}})
	}
	if err != nil {
		panic(err)
	}
}

// councilRun is a run that a council has answered.
const councilRun = "0192fa3c-41aa-7000-8000-0000000000cc"

// councilChat is a conversation of a user's with a disputed answer and one of a single model.
func (w *world) councilChat(user int64) (id string) {
	question := transcript.Message{Role: "user", Blocks: []core.Block{text("How deep do I plant potatoes?")}}
	call := transcript.Message{Role: "assistant", Model: "one/alpha", Blocks: []core.Block{{Type: "tool_use", ID: "c9", Name: "Grep", Input: []byte(`{"pattern":"potatoes"}`)}}}
	result := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "c9", Text: "nothing"}}}
	answer := transcript.Message{Role: "assistant", Model: "one/alpha", Stop: "end_turn", Blocks: []core.Block{text("Ten centimetres deep.")}}
	id = w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "council"}, User: user, Trust: core.Vault, Source: "telegram"}, "Potatoes", councilRun, question, call, result, answer)
	w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "council"}, User: user, Trust: core.Vault, Source: "telegram"}, "Potatoes", "0192fa3c-41aa-7000-8000-0000000000cd", question, answer)
	w.dispute(user, councilRun, id, "How deep do I plant potatoes?", "")
	return id
}

func TestCouncil_AnAnswerInAChatLinksToHowItCameAbout(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	id := s.world.councilChat(core.Operator)
	to := `href="/admin/council/queries/` + councilRun
	s.get("/admin/council/queries/"+councilRun).has(t, `<a href="/admin/chats/`+id+`#end">The conversation</a>`)
	a := s.get("/admin/chats/" + id)
	a.has(t, to+`#options">Under the hood: disputed</a>`)
	if n := strings.Count(a.body, "/admin/council/queries/"); n != 1 {
		t.Errorf("%d links, want one: on the last message of the council's answer", n)
	}
	if _, err := s.world.council.Pick(t.Context(), core.Operator, councilRun, "one/alpha"); err != nil {
		t.Fatal(err)
	}
	s.get("/admin/chats/"+id).has(t, to+`">Under the hood</a>`)
	s.get("/admin/chats/"+s.world.ada).lacks(t, "Under the hood")
}

func TestCouncil_TheOneWhoAskedPicksAnAnswerInThePanel(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	at := "/admin/council/queries/" + disputed
	s.get(at).has(t, "Answer 1", "Provisional", `value="one/alpha">Pick answer 1<`, "Answer 2", `value="two/beta">Pick answer 2<`, "The first pick counts")
	s.post(at+"/pick", url.Values{"model": {"three/gamma"}}).has(t, `class="flash bad"`, "none of the options")
	a := s.post(at+"/pick", url.Values{"model": {"two/beta"}})
	a.has(t, "You picked the answer of two/beta.", `id="option-2">Answer 2</h3><span class="pill good">Picked</span>`)
	a.lacks(t, "Pick answer", "Provisional")
	s.post(at+"/pick", url.Values{"model": {"one/alpha"}}).has(t, `class="flash note"`, "The answer of two/beta was picked already")
	if v, err := s.world.council.Query(t.Context(), core.Operator, disputed); err != nil || v.Picked != "two/beta" {
		t.Errorf("%q, %v", v.Picked, err)
	}
}

func TestCouncil_NoOneElsePicksInThePanel(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	at := "/admin/council/queries/" + disputed
	for _, role := range []string{auth.RoleAdmin, auth.RoleViewer} {
		s.enterAs("n"+role, role)
		a := s.get(at)
		a.has(t, "Ten centimetres deep.", "Only the one who asked can pick")
		a.lacks(t, "Pick answer")
		s.do("POST", at+"/pick", url.Values{"csrf": {s.csrf()}, "model": {"two/beta"}})
		if v, err := s.world.council.Query(t.Context(), core.Operator, disputed); err != nil || v.Picked != "" {
			t.Errorf("%s: %q is picked, %v", role, v.Picked, err)
		}
	}
}

// Answers that say the same are one card: the choice is between claims.
func TestCouncil_AnswersThatSayTheSameAreOneCard(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	ctx := t.Context()
	_, _, err := s.world.council.Begin(ctx, ledger.Query{ID: "query-2", User: core.Operator, Conversation: "s", Level: choice.High, Asked: choice.High, Question: "When?"})
	r := ledger.Result{Query: "query-2", Winner: "two/beta", Callout: choice.CalloutDisagreement}
	for i, text := range []string{"In **1937**.", "In 1932.", "It was 1932."} {
		model := []string{"one/alpha", "two/beta", "three/gamma"}[i]
		if err == nil {
			err = s.world.council.Save(ctx, ledger.Stage{Query: "query-2", Stage: ledger.StageAnswer, Model: model, Content: text})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundAnswer, State: "ok", Welfare: []float64{0.2, 0.7, 0.6}[i], Claim: min(i, 1) + 1})
	}
	if err == nil {
		err = s.world.finish(ctx, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	a := s.get("/admin/council/queries/query-2")
	a.has(t, `value="two/beta">Pick answer 1<`, `value="one/alpha">Pick answer 2<`, "the same: ", "<strong>1937</strong>")
	a.lacks(t, "Pick answer 3")
}
