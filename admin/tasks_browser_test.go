//go:build browser

package admin_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// A task is one of docs/admin.md, done from the overview. prepare makes what it is about.
type task struct {
	prepare func(c *clickThrough, s *site)
	do      func(c *clickThrough, s *site)
}

// menu follows the link of a page in the menu.
func (c *clickThrough) menu(path string) {
	c.Click(`nav[aria-label=Pages] li:not(.more) > a[href="` + path + `"]`)
	c.Eventually(`location.pathname === "` + path + `"`)
	live(c.Tab)
}

// choose chooses in a list, which is no click.
func (c *clickThrough) choose(sel, value string) {
	c.Eventually(fmt.Sprintf(`(e => { if (!e) return false; e.value = %q; return e.value === %[1]q; })(document.querySelector(%q))`, value, sel))
}

var tasks = map[string]task{
	"Approve a person": {do: func(c *clickThrough, s *site) {
		c.Click(`#r-r1 .primary`)
		c.Visible(`#r-r1.settled`)
		s.world.didLast(c.t, "approved r1 sandboxed")
	}},
	"Deny several people": {do: func(c *clickThrough, s *site) {
		c.menu("/admin/pairing")
		c.Click(`#bulk [name=all]`)
		c.Click(`#bulk [value=deny]`)
		c.Says(`#toast`, "Denied 2 requests")
		c.Eventually(`!document.querySelector("#requests .request")`)
	}},
	"Find a message": {do: func(c *clickThrough, s *site) {
		c.Click(`#seek`)
		c.Press("potatoes" + kb.Enter)
		c.Eventually(`location.pathname === "/admin/search" && location.search.includes("potatoes")`)
		c.Click(`.results a[href^="/admin/search/message"]`)
		c.Says(`.said:target`, "seed potatoes")
	}},
	"See why a message failed": {prepare: func(c *clickThrough, s *site) {
		must(s.world.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
			return runs.Finish(context.Background(), tx, adaRun, runs.End{State: "error", Error: "auth", At: s.clock.Now(),
				Fault: runs.Fault{Reason: "The provider refuses the key.", Said: "401 invalid x-api-key"}})
		}))
	}, do: func(c *clickThrough, s *site) {
		c.menu("/admin/chats")
		c.choose(`[name=state]`, "failed")
		c.Click(`.filters button`)
		c.Eventually(`location.search.includes("state=failed")`)
		c.Click(`#s-` + s.world.ada + ` a`)
		c.Says(`[id="m-failed-`+adaRun+`"]`, "The provider refuses the key.")
		c.Says(`[id="m-failed-`+adaRun+`"]`, "401 invalid x-api-key")
	}},
	"Add a bot": {do: func(c *clickThrough, s *site) {
		c.menu("/admin/settings")
		c.Click(`a[href="/admin/settings/bots/add"]`)
		c.Write(`#addbot [name=name]`, "support")
		c.Write(`#addbot [name=token]`, "42:good")
		c.Click(`#addbot .primary`)
		c.Visible(`#bot-support`)
	}},
	"Add an admin": {do: func(c *clickThrough, s *site) {
		c.Click(`#account summary`)
		c.Click(`#account a[href="/admin/accounts"]`)
		c.Write(`form[action="/admin/accounts"] [name=name]`, "nina")
		c.Click(`form[action="/admin/accounts"] .primary`)
		c.Says(`#made`, "A one-time password for nina")
	}},
	"Give a key a new secret": {prepare: func(c *clickThrough, s *site) {
		_, _, err := s.world.keys.Create(context.Background(), auth.NewKey{Label: "alerts", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSend}}, core.Actor{})
		must(err)
	}, do: func(c *clickThrough, s *site) {
		c.menu("/admin/settings")
		c.Click(`a[href*="open=secrets"]`)
		c.Click(`[action$="/rotate"].row .primary`)
		c.Says(`#secret h2`, "The key “alerts” has a new secret")
	}},
	"Change the model": {do: func(c *clickThrough, s *site) {
		c.menu("/admin/settings")
		c.Click(`a[href="/admin/settings/models#MODEL"]`)
		c.Focused(`#MODEL`)
		c.Eventually(`(document.querySelector("#MODEL").value = "", true)`)
		c.Write(`#MODEL`, "openai/fake")
		c.Click(`#knobs .primary`)
		c.Says(`#knob-MODEL .pill`, "panel")
		s.world.didLast(c.t, "set MODEL openai/fake")
	}},
	"Restore a backup": {do: func(c *clickThrough, s *site) {
		c.menu("/admin/settings")
		c.Click(`a[href="/admin/settings/backups#list"]`)
		c.Click(`#list tbody tr:first-child form[action$="/restore"] button`)
		c.Says(`#restoring`, "Everything since then will be as it was then")
		s.world.didLast(c.t, "restore "+backupOne)
	}},
	"Find who changed a setting": {prepare: func(c *clickThrough, s *site) {
		s.world.audit(core.Actor{User: 3, Via: "panel"}, "setting.change", "RATE_LIMIT")
	}, do: func(c *clickThrough, s *site) {
		c.menu("/admin/audit")
		c.Click(`nav[aria-label="Often asked"] a[href*="action=setting"]`)
		c.Says(`.log`, "Jun-ho Park")
		c.Says(`.log`, "RATE_LIMIT")
	}},
}

// promised returns the clicks of each task in docs/admin.md.
func promised(t *testing.T) map[string]int {
	t.Helper()
	doc, err := os.ReadFile("../docs/admin.md")
	must(err)
	_, part, found := strings.Cut(string(doc), "\n## In three clicks\n")
	if !found {
		t.Fatal("docs/admin.md has no section “In three clicks”")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	out := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \| .+ \| (\d+) \|$`).FindAllStringSubmatch(part, -1) {
		out[row[1]], _ = strconv.Atoi(row[2])
	}
	return out
}

func TestEachTaskTakesTheClicksThatTheDocumentationPromises(t *testing.T) {
	docs := promised(t)
	if got, want := slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(tasks)); !slices.Equal(got, want) {
		t.Errorf("docs/admin.md has the tasks %q, this test %q", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		t.Run(name, func(t *testing.T) {
			s, b := atDesk(t, "/admin/password")
			c := &clickThrough{Tab: b, t: t}
			if x := tasks[name]; x.prepare != nil {
				x.prepare(c, s)
			}
			b.Open(s.url + "/admin")
			live(b)
			tasks[name].do(c, s)
			if c.clicks != docs[name] || c.clicks > 3 {
				t.Errorf("%d clicks, docs/admin.md promises %d, and at most 3 are allowed", c.clicks, docs[name])
			}
		})
	}
}
