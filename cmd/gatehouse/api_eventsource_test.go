//go:build browser

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/webtest"
)

// cutsForgiven is a test that a browser may tell of connections that were cut.
type cutsForgiven struct{ testing.TB }

func (t cutsForgiven) Errorf(format string, args ...any) {
	t.Helper()
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "ERR_INCOMPLETE_CHUNKED_ENCODING") {
		t.Error(text)
	}
}

// A browser's own EventSource on a page of the gateway follows a run that is
// cut off twice, within an event each time: it comes back by itself with the
// last id, sees everything once, and stops for good when it has all of it.
func TestABrowsersEventSourceComesBackAfterACutAndSeesEveryEventOnce(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.AdminPassword = values.NewSecret(newPassword) })
	c := newCutter(t, w.cfg.Addr, 3, 2)
	model.Script(llmtest.Reply{Text: []string{"first ", "second"}, Hang: true})
	post := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
	defer post.Body.Close()
	whole := readEvents(t, post.Body, 7)
	session, run := whole[0].Data["id"].(string), whole[0].Data["run_id"].(string)

	page := webtest.New(cutsForgiven{t})
	page.Open(c.url + "/admin")
	page.Focused(`input[name=password]`)
	page.Press(newPassword + kb.Enter)
	page.Visible(`nav a[href="/admin/pairing"]`)
	page.Eventually(`(() => {
		window.ids = []; window.opened = 0; window.texts = "";
		window.source = new EventSource("/api/chat/` + session + `/events?run=` + run + `");
		source.onopen = () => opened++;
		source.onmessage = (m) => { ids.push(m.lastEventId); const e = JSON.parse(m.data); if (e.type === "text") texts += e.content; };
		return true;
	})()`)
	page.Eventually(`ids.length >= 7`) // the run goes on, and all that was said of it is here
	page.Eventually(`opened === 3 && source.readyState === EventSource.OPEN`)
	if status, body := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 || !strings.Contains(body, `"aborted":true`) {
		t.Fatal(status, body)
	}
	whole = append(whole, readEvents(t, post.Body, -1)...)
	page.Eventually(`source.readyState === EventSource.CLOSED`) // 204: it will not come back
	if got := webtest.Value[[]string](page, `ids`); !slices.Equal(got, ids(whole)) {
		t.Errorf("the page saw %v, want %v", got, ids(whole))
	}
	if got := webtest.Value[string](page, `texts`); got != "first second" {
		t.Errorf("the page read %q", got)
	}
	// Where within the answer the cut falls is the connection's: with what it had
	// whole the page comes back, never further back, and at last with all of it. On
	// a slow machine two cuts may fall behind the same event.
	had := -1
	for i, id := range c.seen() {
		at := slices.Index(ids(whole), id)
		if i == 0 && id != "" || i > 0 && at < had || i == 3 && at != len(whole)-1 || i > 3 {
			t.Errorf("it came with %q, of %q", c.seen(), ids(whole))
		}
		had = at
	}
	if n := webtest.Value[int](page, `opened`); n != 3 {
		t.Errorf("it was opened %d times", n)
	}
}
