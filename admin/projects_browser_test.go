//go:build browser

package admin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/core/store"
)

func TestARefusedNameOfAProjectIsCorrectedByKeyboard(t *testing.T) {
	_, b := atDesk(t, projectsPath)
	b.TabTo(`form[action="/admin/projects"] input[name=name]`)
	b.Press("tax RETURN 2026")
	b.Press(kb.Enter)
	b.Says(`#fault`, "You have a project")
	b.Eventually(`document.activeElement.matches('input[aria-invalid=true]') && document.activeElement.value === "tax RETURN 2026"`)
	b.Press(kb.End)
	b.Press(" too")
	b.Press(kb.Enter)
	b.Says(`main`, "tax RETURN 2026 too")
	b.Eventually(`!document.querySelector("#fault")`)
}

func TestProjectsFitPhonesInBothColours(t *testing.T) {
	s, b := atDesk(t, projectsPath)
	w := s.world
	ctx := context.Background()
	_, err := w.memory.Hear(ctx, memory.Message{User: core.Operator, Source: "a", Text: "correction: In this project, always use metric units.", Project: w.taxes.ID, Session: w.mine})
	must(err)
	must(w.projects.db.Tx(ctx, func(tx *store.Tx) error {
		m := memory.Message{User: core.Operator, Source: "b", Project: w.taxes.ID, Session: w.mine, Text: "The allowance is 1,000 euros, not 800.", Question: "What is the allowance?", Answer: "800 euros."}
		_, err := w.memory.Propose(ctx, tx, &m, memory.Finding{Sentence: m.Text, Type: detect.Factual, Scope: detect.Project})
		return err
	}))
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}, {320, "light"}} {
		b.Look(c.width, 900, c.scheme)
		keep := func(name string) {
			b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d`, c.width))
			name = fmt.Sprintf("admin-%s-%d-%s", name, c.width, c.scheme)
			wellMannered(t, b, name)
			b.Keep(name, b.Picture())
		}
		b.Open(s.url + "/admin/memory")
		b.Visible(`h1`)
		keep("memory-places")
		b.Open(s.url + "/admin/chats/" + w.mine)
		b.Visible(`h1`)
		b.Click(`#settings > summary`)
		b.Visible(`form[action$="/project"]`)
		b.Eventually(`(document.querySelector('form[action$="/project"]').scrollIntoView({block: "center"}), true)`)
		keep("chat-project")
		b.Open(s.url + projectsPath)
		b.TabTo(`form[action="/admin/projects"] input[name=name]`)
		b.Press("tax return 2026")
		b.Press(kb.Enter)
		b.Visible(`#fault`)
		keep("projects-refused")
		_, err := w.projects.Create(ctx, core.Operator, "Boat")
		if core.KindOf(err) != core.Conflict {
			must(err)
		}
		b.Open(s.url + projectsPath)
		b.Click(`#ren-` + w.taxes.ID + ` > summary`)
		b.Visible(`#ren-` + w.taxes.ID + ` input[name=name]`)
		b.Eventually(`(document.querySelector("#ren-` + w.taxes.ID + ` input[name=name]").select(), true)`)
		b.Press("Boat")
		b.Press(kb.Enter)
		b.Visible(`#fault`)
		keep("projects-rename")
	}
}
