//go:build browser

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
)

// newBrowser is a tab of a fresh Chromium. What the page throws or logs as an
// error, a refused inline script too, fails the test.
func newBrowser(t *testing.T) tab {
	t.Helper()
	path := os.Getenv("GATEHOUSE_TEST_CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no Chromium at " + path)
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	do(t, ctx, chromedp.Navigate("about:blank"))
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

// A tab is a page in the browser.
type tab = context.Context

type step = chromedp.Action[chromedp.Void]

func do(t *testing.T, ctx tab, steps ...step) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func read[T any](t *testing.T, ctx tab, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func call[P, R any](t *testing.T, ctx tab, c cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		t.Fatal(err)
	}
}

// eventually asks the page until the expression is true, for 20 seconds. Asking
// anew each time outlives a navigation; a query of chromedp's may not.
func eventually(expr string) step {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		for {
			once, stop := context.WithTimeout(ctx, 2*time.Second)
			ok, err := chromedp.Evaluate[bool](`Boolean(`+expr+`)`)(once, target)
			stop()
			if err == nil && ok {
				return chromedp.Void{}, nil
			}
			select {
			case <-ctx.Done():
				return chromedp.Void{}, fmt.Errorf("never true: %s (last: %v)", expr, err)
			case <-time.After(30 * time.Millisecond):
			}
		}
	}
}

// live waits until the page follows.
func live() step { return eventually(`document.querySelector("#live span")?.textContent === "Live"`) }

func visible(sel string) step {
	return eventually(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, sel))
}
func gone(sel string) step { return eventually(fmt.Sprintf(`!document.querySelector(%q)`, sel)) }
func focus(sel string) step {
	return eventually(fmt.Sprintf(`(document.querySelector(%[1]q)?.focus(), document.activeElement === document.querySelector(%[1]q))`, sel))
}

// write focuses a field and types into it.
func write(sel, text string) step { return chromedp.Steps(focus(sel), chromedp.KeyEvent(text)) }

// click presses the mouse in the middle of what stands there.
func click(sel string) step {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		if _, err := visible(sel)(ctx, target); err != nil {
			return chromedp.Void{}, err
		}
		at, err := chromedp.Evaluate[[]float64](fmt.Sprintf(`(e => { e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })(document.querySelector(%q))`, sel))(ctx, target)
		if err != nil {
			return chromedp.Void{}, err
		}
		return chromedp.MouseClickXY(at[0], at[1])(ctx, target)
	}
}

// signIn goes the way of the first start: one-time password, then an own one.
func signIn(t *testing.T, ctx tab, s *site) {
	t.Helper()
	do(t, ctx,
		chromedp.Navigate(s.url+"/admin"),
		write(`input[name=password]`, s.oneTime+kb.Enter),
		// the page focuses this field itself; typing before that goes astray
		eventually(`document.readyState === "complete" && document.activeElement.name === "old"`),
		write(`input[name=old]`, s.oneTime),
		write(`input[name=new]`, password),
		write(`input[name=again]`, password+kb.Enter),
		visible(`#flash.good`),
		live(),
	)
}

func pending(clock core.Clock, id, name string) core.PairingRequest {
	now := clock.Now()
	return core.PairingRequest{ID: id, Bot: "telegram", Platform: "telegram", PlatformUserID: "721445" + id[1:], Display: name, Scope: core.ScopeDM,
		Status: "pending", Code: "KX7PQ29M", CodeExpiresAt: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour), CreatedAt: now, FirstMessage: "hello from " + name, Held: 1}
}

func TestARequestAppearsWithoutReloadAndIsApprovedByKeyboardAndUndone(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running, Username: "gatehouse_bot"}}
	ctx := newBrowser(t)
	signIn(t, ctx, s)
	do(t, ctx,
		chromedp.Navigate(s.url+"/admin/pairing"),
		visible(`#none`),
		live(),
		eventually(`window.sameDocument = true`),
	)
	s.world.add(pending(clock, "r1", "Ada <b>Okafor</b>"))
	do(t, ctx,
		visible(`#r-r1`),
		eventually(`document.getElementById("say").textContent.includes("New request: Ada <b>Okafor</b> on Telegram")`),
		eventually(`document.title.startsWith("(1) ")`),
		// A choice half made, with the focus in it, outlives the next news.
		focus(`#r-r1 input[value=sandboxed]`),
		chromedp.KeyEvent(kb.ArrowRight),
		eventually(`document.querySelector("#r-r1 input[value=vault]").checked`),
	)
	s.world.add(pending(clock, "r2", "Bo"))
	do(t, ctx,
		visible(`#r-r2`),
		eventually(`document.activeElement.value === "vault" && document.activeElement.checked`),
		eventually(`document.querySelectorAll("#requests > li")[0].id === "r-r1"`), // news stands below
		chromedp.KeyEvent(kb.Enter), // the form's first button: approve
		visible(`#r-r1.settled`),
		eventually(`document.activeElement.id === "r-r1"`),
		eventually(`document.getElementById("say").textContent.includes("may talk to telegram now, as vault")`),
		eventually(`document.querySelector("#r-r1 form").getBoundingClientRect().bottom <= innerHeight`), // in sight
		chromedp.KeyEvent(kb.Tab), // to Undo
		chromedp.KeyEvent(kb.Enter),
		visible(`#r-r1.request`),
		eventually(`window.sameDocument === true`),
	)
	if did := strings.Join(s.world.done(), "; "); did != "approved r1 vault; pending r1 " {
		t.Errorf("did %q", did)
	}
	do(t, ctx,
		click(`#r-r2 button[formaction$=deny]`),
		visible(`#r-r2.settled`),
		gone(`#r-r2`), // ten seconds later it has moved to those decided
		visible(`#d-r2`),
	)
}

func TestADecisionMadeElsewhereMovesNothingUnderTheFinger(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.add(pending(clock, "r1", "Ada"))
	s.world.add(pending(clock, "r2", "Bo"))
	ctx := newBrowser(t)
	signIn(t, ctx, s)
	do(t, ctx,
		chromedp.Navigate(s.url+"/admin/pairing"),
		live(),
	)
	top := chromedp.Evaluate[float64](`document.querySelector("#r-r2 .primary").getBoundingClientRect().top`)
	before := read(t, ctx, top)
	if _, err := s.world.Approve(ctx, "r1", core.Approval{Trust: core.Sandboxed}, core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx,
		visible(`#r-r1.settled`),
		eventually(`document.querySelector("#r-r1 .said").textContent.includes("Approved as sandboxed by operator via chat")`),
	)
	if after := read(t, ctx, top); before != after {
		t.Errorf("the other card's button moved from %v to %v", before, after)
	}
}

func TestTimesStandInTheReadersZoneWithUTCOnHover(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.world.bots[0].Since = at
	ctx := newBrowser(t)
	call(t, ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"})
	signIn(t, ctx, s)
	do(t, ctx, chromedp.Navigate(s.url+"/admin/bots"),
		eventually(`!document.querySelector("#bot-family time").textContent.includes("UTC")`))
	text := read(t, ctx, chromedp.Text(`#bot-family time`))
	title := read(t, ctx, chromedp.AttributeValue(`#bot-family time`, "title")).Value
	if !strings.Contains(text, "10:04") || title != "2026-01-02 03:04:05 UTC" {
		t.Errorf("text %q, title %q", text, title)
	}
}

// TestShots takes a picture of every page into GATEHOUSE_TEST_SHOTS, and
// checks that none is wider than its window.
func TestShots(t *testing.T) {
	dir := os.Getenv("GATEHOUSE_TEST_SHOTS")
	empty := newSite(t, core.System{}, nil)
	full := newSite(t, core.System{}, nil)
	full.world.full()
	for _, c := range []struct {
		name string
		s    *site
	}{{"empty", empty}, {"full", full}} {
		ctx := newBrowser(t)
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390, 320} {
				call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width < 500})
				call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				shot := func(name string) {
					wellMannered(t, ctx, fmt.Sprintf("%s %s %s at %d px", c.name, name, scheme, width))
					if over := read(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); over > 0 {
						t.Errorf("%s %s at %d px: %d px too wide", c.name, name, width, over)
					}
					if dir != "" && width != 320 {
						picture(t, read(t, ctx, chromedp.FullScreenshot(100)), filepath.Join(dir, "admin-"+name+"-"+c.name+"-"+map[int64]string{1280: "desk", 390: "phone"}[width]+"-"+scheme+".png"))
					}
				}
				if scheme == "light" && width == 1280 {
					do(t, ctx, chromedp.Navigate(c.s.url+"/admin/login"), visible(`h1`))
					shot("login")
					signIn(t, ctx, c.s)
				}
				for _, page := range []string{"", "pairing", "people", "bots", "queue", "password"} {
					do(t, ctx, chromedp.Navigate(c.s.url+"/admin/"+page), visible(`h1`), live())
					shot(map[string]string{"": "overview"}[page] + page)
				}
			}
		}
	}
}

// TestShotsOfWhatAPressShows takes pictures of what shows only after a press,
// where GATEHOUSE_TEST_SHOTS asks for any.
func TestShotsOfWhatAPressShows(t *testing.T) {
	dir := os.Getenv("GATEHOUSE_TEST_SHOTS")
	if dir == "" {
		t.Skip("GATEHOUSE_TEST_SHOTS names no folder")
	}
	s := newSite(t, core.System{}, nil)
	s.world.full()
	ctx := newBrowser(t)
	signIn(t, ctx, s)
	for _, c := range []struct {
		name  string
		width int64
		dark  string
	}{{"desk-light", 1280, "light"}, {"phone-dark", 390, "dark"}} {
		call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: c.width, Height: 900, DeviceScaleFactor: 1, Mobile: c.width < 500})
		call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: c.dark}}})
		snap := func(name string) {
			picture(t, read(t, ctx, chromedp.CaptureScreenshot()), filepath.Join(dir, "admin-state-"+name+"-"+c.name+".png"))
		}
		do(t, ctx, chromedp.Navigate(s.url+"/admin/pairing"), visible(`.request`),
			click(`.preview details:nth-child(2) summary`), click(`.request .confirm summary`))
		snap("block")
		do(t, ctx, click(`h1`), click(`.request .primary`), visible(`.settled`))
		snap("settled")
		do(t, ctx, click(`.settled button`), gone(`.settled`))
		snap("undone")
		do(t, ctx, chromedp.Navigate(s.url+"/admin/people"), click(`.person .confirm summary`))
		snap("revoke")
		s.world.setBroken(errors.New("disk I/O error"))
		do(t, ctx, chromedp.Navigate(s.url+"/admin/queue"), visible(`.broken`))
		snap("broken")
		s.world.setBroken(nil)
		do(t, ctx, chromedp.Navigate(s.url+"/admin/pairing"), click(`.account summary`))
		snap("account")
	}
}

func picture(t *testing.T, png []byte, path string) {
	t.Helper()
	if err := os.WriteFile(path, png, 0o600); err != nil {
		t.Fatal(err)
	}
}
