//go:build browser

package admin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
)

// newBrowser is a tab of a fresh Chromium. What the page throws or logs as an
// error, a refused inline script too, fails the test.
func newBrowser(t *testing.T) context.Context {
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
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				t.Errorf("the page logged an error: %s", e.Args[0].Value)
			}
		}
	})
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the expression is true in the page.
func eventually(expr string) chromedp.Action {
	return chromedp.Poll(expr, nil, chromedp.WithPollingTimeout(20*time.Second), chromedp.WithPollingInterval(30*time.Millisecond))
}

// signIn goes the way of the first start: one-time password, then an own one.
func signIn(t *testing.T, ctx context.Context, s *site) {
	t.Helper()
	run(t, ctx,
		chromedp.Navigate(s.url+"/admin"),
		chromedp.SendKeys(`input[name=password]`, s.oneTime+kb.Enter),
		chromedp.WaitVisible(`input[name=again]`),
		chromedp.SendKeys(`input[name=old]`, s.oneTime),
		chromedp.SendKeys(`input[name=new]`, password),
		chromedp.SendKeys(`input[name=again]`, password+kb.Enter),
		chromedp.WaitVisible(`#flash.good`),
		eventually(`document.querySelector("#live span")?.textContent === "Live"`),
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
	run(t, ctx,
		chromedp.Navigate(s.url+"/admin/pairing"),
		chromedp.WaitVisible(`#none`),
		eventually(`document.querySelector("#live span")?.textContent === "Live"`),
		chromedp.Evaluate(`window.sameDocument = true`, nil),
	)
	s.world.add(pending(clock, "r1", "Ada <b>Okafor</b>"))
	run(t, ctx,
		chromedp.WaitVisible(`#r-r1`),
		eventually(`document.getElementById("say").textContent.includes("New request: Ada <b>Okafor</b> on Telegram")`),
		eventually(`document.title.startsWith("(1) ")`),
		// A choice half made, with the focus in it, outlives the next news.
		chromedp.Focus(`#r-r1 input[value=sandboxed]`),
		chromedp.KeyEvent(kb.ArrowRight),
		eventually(`document.querySelector("#r-r1 input[value=vault]").checked`),
	)
	s.world.add(pending(clock, "r2", "Bo"))
	run(t, ctx,
		chromedp.WaitVisible(`#r-r2`),
		eventually(`document.activeElement.value === "vault" && document.activeElement.checked`),
		eventually(`document.querySelectorAll("#requests > li")[0].id === "r-r1"`), // news stands below
		chromedp.KeyEvent(kb.Enter), // the form's first button: approve
		chromedp.WaitVisible(`#r-r1.settled`),
		eventually(`document.activeElement.id === "r-r1"`),
		eventually(`document.getElementById("say").textContent.includes("may talk to telegram now, as vault")`),
		chromedp.KeyEvent(kb.Tab), // to Undo
		chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(`#r-r1.request`),
		eventually(`window.sameDocument === true`),
	)
	if did := strings.Join(s.world.done(), "; "); did != "approved r1 vault; pending r1 " {
		t.Errorf("did %q", did)
	}
	run(t, ctx,
		chromedp.Click(`#r-r2 button[formaction$=deny]`),
		chromedp.WaitVisible(`#r-r2.settled`),
		chromedp.WaitNotPresent(`#r-r2`), // ten seconds later it has moved to those decided
		chromedp.WaitVisible(`#d-r2`),
	)
}

func TestADecisionMadeElsewhereMovesNothingUnderTheFinger(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.add(pending(clock, "r1", "Ada"))
	s.world.add(pending(clock, "r2", "Bo"))
	ctx := newBrowser(t)
	signIn(t, ctx, s)
	var before, after float64
	run(t, ctx,
		chromedp.Navigate(s.url+"/admin/pairing"),
		eventually(`document.querySelector("#live span")?.textContent === "Live"`),
		chromedp.Evaluate(`document.querySelector("#r-r2 .primary").getBoundingClientRect().top`, &before),
	)
	if _, err := s.world.Approve(ctx, "r1", core.Approval{Trust: core.Sandboxed}, core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	run(t, ctx,
		chromedp.WaitVisible(`#r-r1.settled`),
		eventually(`document.querySelector("#r-r1 .said").textContent.includes("Approved as sandboxed by operator via chat")`),
		chromedp.Evaluate(`document.querySelector("#r-r2 .primary").getBoundingClientRect().top`, &after),
	)
	if before != after {
		t.Errorf("the other card's button moved from %v to %v", before, after)
	}
}

func TestTimesStandInTheReadersZoneWithUTCOnHover(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.world.bots[0].Since = at
	ctx := newBrowser(t)
	run(t, ctx, emulation.SetTimezoneOverride("America/New_York"))
	signIn(t, ctx, s)
	var text, title string
	run(t, ctx, chromedp.Navigate(s.url+"/admin/bots"),
		eventually(`!document.querySelector("#bot-family time").textContent.includes("UTC")`),
		chromedp.Text(`#bot-family time`, &text), chromedp.AttributeValue(`#bot-family time`, "title", &title, nil))
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
				run(t, ctx, emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
				shot := func(name string) {
					var over int
					run(t, ctx, chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &over))
					if over > 0 {
						t.Errorf("%s %s at %d px: %d px too wide", c.name, name, width, over)
					}
					if dir != "" && width != 320 {
						picture(t, ctx, filepath.Join(dir, "admin-"+name+"-"+c.name+"-"+map[int64]string{1280: "desk", 390: "phone"}[width]+"-"+scheme+".png"))
					}
				}
				if scheme == "light" && width == 1280 {
					run(t, ctx, chromedp.Navigate(c.s.url+"/admin/login"), chromedp.WaitVisible(`h1`))
					shot("login")
					signIn(t, ctx, c.s)
				}
				for _, page := range []string{"", "pairing", "people", "bots", "queue", "password"} {
					run(t, ctx, chromedp.Navigate(c.s.url+"/admin/"+page), chromedp.WaitVisible(`h1`), eventually(`document.querySelector("#live span")?.textContent === "Live"`))
					shot(map[string]string{"": "overview"}[page] + page)
				}
			}
		}
	}
}

func picture(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	var png []byte
	run(t, ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
		return err
	}), chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(path, png, 0o600); err != nil {
		t.Fatal(err)
	}
}
