package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
)

// A person is seen, exported and forgotten in the panel: what the ZIP file holds
// is what is known, and afterwards nothing is.
func TestAPersonIsExportedAndForgottenInThePanel(t *testing.T) {
	t.Parallel()
	l, _ := newLife(t, nil)
	w, b := l.w, l.w.browser()
	path := fmt.Sprintf("/admin/people/%d", l.user)
	page := b.page(path)
	for _, want := range []string{"Zebulon Quark", fmt.Sprint(l.zeb.ID()), "Last seen", "just now"} {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if status, body := b.submit(path+"/budget", page, url.Values{"mode": {"own"}, "amount": {"3m"}}); status != 200 || !strings.Contains(body, "3,000,000 tokens, their own") {
		t.Errorf("budget: %d %s", status, body)
	}

	b.submit(path+"/export", page, url.Values{})
	w.until("the export", func() bool { return strings.Contains(b.page(path), "Download the export") })
	file := b.page(path + "/export")
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var all bytes.Buffer
	for _, f := range z.File {
		names = append(names, f.Name)
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	if !slices.Contains(names, "person.json") || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "conversations/") }) ||
		!slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, fmt.Sprintf("files/Guests/%d/", l.user)) }) {
		t.Errorf("the export holds %q", names)
	}
	if !strings.Contains(all.String(), "xyzzyword") {
		t.Error("what they said is not in the export")
	}

	b.submit(path+"/forget", page, url.Values{"sure": {"forget"}})
	w.until("the person is forgotten", func() bool { return strings.Contains(b.page(path), "<h1>Forgotten</h1>") })
	w.quiet()
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
	if _, _, err := w.app.views().People().OpenExport(t.Context(), l.user, cli); core.KindOf(err) != core.NotFound {
		t.Errorf("the export of somebody forgotten is still there: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE via = 'panel' AND action IN ('user.export', 'user.download', 'user.forget', 'budget.set')`); n != 4 {
		t.Errorf("%d audit rows", n)
	}
}

func TestTheOwnersExportIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	care, nina := w.app.views().People(), core.Actor{User: 7, Via: "panel"}
	if err := care.Export(t.Context(), core.Operator, nina); core.KindOf(err) != core.Denied {
		t.Errorf("another admin has it made: %v", err)
	}
	if err := care.Export(t.Context(), core.Operator, core.Actor{User: core.Operator, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	w.until("the export", func() bool {
		j, ok := care.Job("export", core.Operator)
		return ok && !j.Running
	})
	if f, _, err := care.OpenExport(t.Context(), core.Operator, nina); core.KindOf(err) != core.Denied {
		t.Errorf("another admin downloads it: %v", err)
		if err == nil {
			_ = f.Close()
		}
	}
	f, _, err := care.OpenExport(t.Context(), core.Operator, cli)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action IN ('user.export', 'user.download') AND user_id = 7`); n != 0 {
		t.Errorf("%d audit rows of the other admin", n)
	}
}

// A budget of a month that is set on a person's page holds for their very next
// message, and is told to them as what it is.
func TestABudgetOfAMonthIsSetInThePanelAndHoldsForTheNextMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	const question = "How long should green tea brew?"
	w.replies(ada, question)
	w.quiet()
	b := w.browser()
	people := b.page("/admin/people?q=Ada")
	m := regexp.MustCompile(`href="(/admin/people/\d+)"`).FindStringSubmatch(people)
	if m == nil {
		t.Fatalf("she is not on the page: %s", people)
	}
	for amount, says := range map[string]string{"lots": "Amount of a month: ", "1": "In a month: 1."} {
		if _, body := b.submit(m[1]+"/budget", b.page(m[1]), url.Values{"mode": {"general"}, "month": {amount}}); !strings.Contains(body, says) {
			t.Errorf("%s: the page does not say %q", amount, says)
		}
	}
	if page := b.page(m[1]); !strings.Contains(page, "Budget for a month") || !strings.Contains(page, "1 tokens") {
		t.Error("the page does not show it")
	}
	if got := w.replies(ada, question); !strings.Contains(got.Text, "budget for this month (1 tokens) is used up. It resets with the next month") {
		t.Errorf("she hears %q", got.Text)
	}
	w.quiet()
	if got := w.replies(ada, "/usage"); !strings.Contains(got.Text, "budget for this month is 1 tokens; nothing is left") {
		t.Errorf("/usage says %q", got.Text)
	}
	b.submit(m[1]+"/budget", b.page(m[1]), url.Values{"mode": {"general"}, "month": {""}})
	if got := w.replies(ada, question); !strings.Contains(got.Text, "two minutes") {
		t.Errorf("without it she hears %q", got.Text)
	}
}
