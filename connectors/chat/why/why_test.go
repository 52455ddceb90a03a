package why

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/texts"
)

func TestMain(m *testing.M) { storetest.Main(m) }

type bound struct{}

func (bound) Current(context.Context, store.Queryer, core.Address) (session.Session, bool, error) {
	return session.Session{ID: "s1"}, true, nil
}

type world struct {
	*testing.T
	clock  *coretest.Clock
	db     *store.DB
	ledger *ledger.Store
	outbox *outbox.Outbox
	*Commands
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := coretest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	box, err := sealed.Create(filepath.Join(t.TempDir(), "keys", "content"))
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(ledger.Options{DB: db, Clock: clock, Seal: box})
	o := outbox.New(db, outbox.Options{Clock: clock})
	return &world{t, clock, db, l, o, New(db, l, o, bound{})}
}

// post stores a reply as the notice of row seq in a chat, with buttons.
func (w *world) post(seq int64, chat string, buttons [][]core.Button) {
	w.Helper()
	err := w.db.Tx(w.Context(), func(tx *store.Tx) error {
		return w.outbox.Post(w.Context(), tx, core.Reply{Address: core.Address{Bot: "b", Chat: chat}, Key: command.NoticeKey(seq), Parts: []core.Part{{Text: "text", Buttons: buttons}}})
	})
	if err != nil {
		w.Fatal(err)
	}
}

// answer stores a question of user 7, disputed or not.
func (w *world) answer(id, callout string) {
	w.Helper()
	ctx := w.Context()
	_, _, err := w.ledger.Begin(ctx, ledger.Query{ID: id, User: 7, Conversation: "s1", Level: choice.High, Asked: choice.Maximum, Question: "How tall?"})
	r := ledger.Result{Query: id, Winner: "x/alpha", Reason: "welfare", Confidence: choice.LabelUncertain, Callout: callout, Calls: 5}
	for i, m := range []string{"x/alpha", "x/beta"} {
		if err == nil {
			err = w.ledger.Save(ctx, ledger.Stage{Query: id, Stage: ledger.StageAnswer, Model: m, Content: "It is *" + m + "*."})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: m, Round: ledger.RoundAnswer, State: "ok", Utility: 0.41, Welfare: 0.83, Claim: i + 1})
	}
	if err == nil {
		err = w.db.Tx(ctx, func(tx *store.Tx) error { return w.ledger.Finish(ctx, tx, r) })
	}
	if err != nil {
		w.Fatal(err)
	}
}

func request(user int64, text string) command.Request {
	return command.Request{User: user, Call: command.Call{Seq: 1, In: &core.Inbound{Address: core.Address{Bot: "b", Chat: "1"}, Text: text}}}
}

// press is the request of a pressed button.
func press(user int64, data string) command.Request {
	r := request(user, "")
	r.In.Callback = &core.Callback{Data: data}
	return r
}

func TestWhyShowsWhoWasChosenAndTheFactors(t *testing.T) {
	w := newWorld(t)
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || !strings.Contains(out.Text, "No answer") {
		t.Fatalf("%q, %v", out.Text, err)
	}
	w.answer("q1", "")
	out, err = w.Why(t.Context(), request(7, ""))
	if err != nil || len(out.Buttons) != 0 {
		t.Fatal(out, err)
	}
	for _, want := range []string{"rated the answer of **x/alpha** best", "Accuracy high instead of maximum", "weight 0.41, rated 0.83 (shown)", "5 calls"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("%q is not in %q", want, out.Text)
		}
	}
	if out, err := w.Why(t.Context(), request(8, "")); err != nil || !strings.Contains(out.Text, "No answer") {
		t.Errorf("another user reads %q, %v", out.Text, err)
	}
}

// What a question cost is written as /usage and the panel write it.
func TestWhyWritesAmountsAsEveryPageDoes(t *testing.T) {
	for micro, want := range map[int64]string{0: "$0", 40: "less than $0.0001", 1_200: "$0.0012", 1_234_567: "$1.23"} {
		if got := spent(ledger.View{Calls: 2, MicroUSD: &micro}); got != "2 calls, "+want+"." {
			t.Errorf("%d millionths are %q, want %s", micro, got, want)
		}
	}
	if got := spent(ledger.View{Calls: 1}); got != "1 call." {
		t.Errorf("without a price: %q", got)
	}
}

func TestADisputeIsOfferedWithButtonsAndPickedOnce(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || len(out.Buttons) != 2 || out.Buttons[1][0].Label != "Pick x/beta" {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, `It is \*x/beta\*`) || len(out.Buttons) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "X/BE")); err != nil || !strings.Contains(out.Text, "You picked the answer of **x/beta**") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "x/alpha")); err != nil || !strings.Contains(out.Text, "already picked the answer of x/beta") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Why(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, "You picked the answer of **x/beta**") || len(out.Buttons) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTheButtonOfADisputeIsTheAskersOnly(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	data := command.PickData("q1", "x/alpha")
	if len(command.PickDataUnder("01234567-89ab-cdef-0123-456789abcdef", "x/alpha", math.MaxInt64)) > 64 {
		t.Error("the data of a button has more than 64 bytes")
	}
	query, mark, ok := command.PickOf(data)
	if !ok {
		t.Fatal(data)
	}
	if _, err := w.Press(t.Context(), press(8, data), query, mark); core.KindOf(err) != core.Denied {
		t.Errorf("another user's press: %v", err)
	}
	if _, err := w.Press(t.Context(), press(7, data), query, "00000000"); core.KindOf(err) != core.Invalid {
		t.Errorf("an unknown mark: %v", err)
	}
	if out, err := w.Press(t.Context(), press(7, data), query, mark); err != nil || !strings.Contains(out.Text, "You picked the answer of x/alpha.") { // no Markdown on a button
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := w.Why(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, "(picked)") || strings.Contains(out.Text, "(shown)") {
		t.Errorf("%+v, %v", out, err)
	}
}

// A button under an earlier /why picks in the dispute that it was shown for, and the text above
// it states what was picked, by whatever button.
func TestAnOldButtonOfWhyStatesThePickThatCounts(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	why := request(7, "")
	why.Seq = 41
	shown, err := w.Why(t.Context(), why)
	if err != nil || len(shown.Buttons) != 2 {
		t.Fatal(shown, err)
	}
	w.post(41, "1", shown.Buttons)
	w.clock.Advance(time.Minute)
	w.answer("q2", choice.CalloutDisagreement)
	tap := func(i int) command.Outcome {
		t.Helper()
		data := shown.Buttons[i][0].Data
		query, mark, ok := command.PickOf(data)
		out, err := w.Press(t.Context(), press(7, data), query, mark)
		if !ok || err != nil || out.Edit == nil || out.Edit.Key != command.NoticeKey(41) {
			t.Fatalf("%q: %+v, %v", data, out, err)
		}
		return out
	}
	if out := tap(1); out.Text != "You picked the answer of x/beta. It counts for such questions from now on." || !strings.HasPrefix(out.Edit.Text, "You picked the answer of **x/beta**.") {
		t.Errorf("%+v", out)
	}
	if out := tap(0); out.Text != "You already picked the answer of x/beta; the first pick counts." || !strings.HasPrefix(out.Edit.Text, "You picked the answer of **x/beta**.") {
		t.Errorf("%+v, %+v", out, out.Edit)
	}
	for id, want := range map[string]string{"q1": "x/beta", "q2": ""} {
		if v, err := w.ledger.Query(t.Context(), 7, id); err != nil || v.Picked != want {
			t.Errorf("of %s %q is picked, want %q", id, v.Picked, want)
		}
	}
	w.clock.Advance(ledger.PickOpen)
	if out, err := w.Why(t.Context(), why); err != nil || len(out.Buttons) != 0 || !strings.HasPrefix(out.Text, "The models contradict each other, and no answer was picked within 24 hours.") {
		t.Errorf("after 24 hours: %+v, %v", out, err)
	}
}

// The platform does not vouch for the data of a press: it may name any row.
func TestAForgedButtonEditsNoOtherReply(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	data := func(seq int64) string { return command.PickDataUnder("q1", "x/alpha", seq) }
	w.post(41, "2", nil)
	w.post(42, "2", [][]core.Button{{{Data: data(42)}}})
	w.post(43, "1", nil)
	w.post(44, "1", [][]core.Button{{{Data: command.PickDataUnder("q0", "x/alpha", 44)}}})
	for name, seq := range map[string]int64{"of another chat": 41, "of another chat, with that button": 42, "of this chat, without the button": 43, "of this chat, of another question": 44, "that is not posted yet": 1000} {
		query, mark, _ := command.PickOf(data(seq))
		if out, err := w.Press(t.Context(), press(7, data(seq)), query, mark); err != nil || out.Edit != nil || out.Text == "" {
			t.Errorf("a reply %s: %+v, %+v, %v", name, out, out.Edit, err)
		}
	}
}

func TestASentenceIsReplacedWithItsStyle(t *testing.T) {
	const old = "It is 1️⃣ provisional."
	bold, far := core.Span{Style: core.StyleBold}, core.Span{Style: core.StyleItalic}
	at := func(s core.Span, from, n int) core.Span { s.Offset, s.Length = from, n; return s }
	for name, c := range map[string]struct {
		text, new string
		spans     []core.Span
		want      string
		left      []core.Span
	}{
		"a shorter one":           {"😀 a\n\n" + old + "\n\nmore", "Picked.", []core.Span{at(far, 0, 2), at(bold, 6, units(old)), at(far, 8+units(old), 4)}, "😀 a\n\nPicked.\n\nmore", []core.Span{at(far, 0, 2), at(bold, 6, 7), at(far, 15, 4)}},
		"a style inside of it":    {old, "Picked.", []core.Span{at(bold, 3, 2), at(far, 0, units(old))}, "Picked.", []core.Span{at(far, 0, 7)}},
		"a longer one":            {old, old + "!", nil, old + "!", []core.Span{}},
		"no room":                 {strings.Repeat("x", maxGrown) + old, old + "!", nil, "", nil},
		"a shorter one without":   {strings.Repeat("x", maxGrown) + old, "P", nil, strings.Repeat("x", maxGrown) + "P", []core.Span{}},
		"a text without it":       {"It is final.", "Picked.", nil, "", nil},
		"a style across its end":  {old + "xx", "Picked.", []core.Span{at(bold, 4, units(old))}, "Picked.xx", []core.Span{}},
		"a style in front of all": {"ab" + old, "Picked.", []core.Span{at(bold, 0, 2)}, "abPicked.", []core.Span{at(bold, 0, 2)}},
	} {
		p := core.Part{Text: c.text, Spans: c.spans}
		if got := reword(&p, old, c.new); got != (c.want != "") {
			t.Errorf("%s: replaced: %t", name, got)
		} else if got && (p.Text != c.want || !slices.Equal(p.Spans, c.left)) {
			t.Errorf("%s: %q %v, want %q %v", name, p.Text, p.Spans, c.want, c.left)
		}
	}
}

// Of the buttons those to pick are removed; where the sentence has other words, what was picked
// is behind the text.
func TestAPickIsShownInWhicheverMessageHasTheSentence(t *testing.T) {
	sentence := texts.Text("council_disputed")
	button := func(model string) core.Button {
		return core.Button{Label: "Answer " + model, Data: command.PickData("q1", model)}
	}
	file := core.Button{Label: "File", Data: command.FileData("q1")}
	last := func(text string) core.Part {
		return core.Part{Text: text, Buttons: [][]core.Button{{button("1"), button("2"), file}}}
	}
	const picked = "The models contradicted each other. Picked: Answer 2, of same."
	p := ledger.Picked{Query: "q1", Model: "same", Same: []string{"same", "2"}}
	for name, c := range map[string]struct {
		parts   []core.Part
		changed []int
		want    []string
	}{
		"in the last":           {[]core.Part{{Text: "A"}, last("B " + sentence)}, []int{1}, []string{"A", "B " + picked}},
		"in an earlier":         {[]core.Part{{Text: "A " + sentence}, last("B")}, []int{1, 0}, []string{"A " + picked, "B"}},
		"in none":               {[]core.Part{{Text: "A"}, last("B")}, []int{1}, []string{"A", "B\n\n" + picked}},
		"without room":          {[]core.Part{last(strings.Repeat("x", maxGrown))}, []int{0}, []string{strings.Repeat("x", maxGrown)}},
		"without buttons":       {[]core.Part{{Text: "A " + sentence}}, nil, []string{"A " + sentence}},
		"with a file behind it": {[]core.Part{last(sentence), {File: &core.File{}}}, []int{0}, []string{picked, ""}},
		"of another question":   {[]core.Part{{Text: sentence, Buttons: [][]core.Button{{{Data: command.PickData("q2", "1")}}}}}, nil, []string{sentence}},
	} {
		changed := settled(c.parts, &p)
		if !slices.Equal(changed, c.changed) {
			t.Errorf("%s: %v are changed", name, changed)
		}
		for i, part := range c.parts {
			if part.Text != c.want[i] {
				t.Errorf("%s: part %d is %q", name, i, part.Text)
			}
			if slices.Contains(changed, i) && slices.ContainsFunc(slices.Concat(part.Buttons...), func(b core.Button) bool { return b != file }) {
				t.Errorf("%s: %v are left", name, part.Buttons)
			}
		}
	}
}

func TestWhyTellsComparisonAndReviewApart(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.ledger.Begin(t.Context(), ledger.Query{ID: "q1", User: 7, Conversation: "s1", Level: choice.High, Asked: choice.High, Question: "How tall?"})
	r := ledger.Result{Query: "q1", Winner: "x/alpha", Reason: "welfare", Confidence: choice.LabelHigh, Calls: 3,
		Note: ledger.Note{Judge: &choice.Verdict{Verdict: choice.VerdictAgree}, Reviews: []ledger.Reviewed{{Model: "x/beta"}}}}
	for _, model := range []string{"x/beta", "x/beta"} {
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundReview, State: "ok"})
	}
	if err == nil {
		err = w.db.Tx(t.Context(), func(tx *store.Tx) error { return w.ledger.Finish(t.Context(), tx, r) })
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || strings.Count(out.Text, "x/beta compared the answers") != 1 || strings.Count(out.Text, "x/beta reviewed the answer") != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
