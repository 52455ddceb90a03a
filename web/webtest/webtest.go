// Package webtest drives a page in a real browser, for tests. Each method is one
// step of a visitor; what does not come true ends the test where it was asked.
package webtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Bounds of a test's patience.
const (
	patience = 5 * time.Minute  // for something that must become true
	lifetime = 30 * time.Minute // of a browser
	maxTabs  = 60               // presses on the way to something
)

// A Tab is a page in a browser. It belongs to one test and to its goroutine.
type Tab struct {
	t    testing.TB
	ctx  context.Context
	away atomic.Bool // the server may be, at times
}

// New starts a fresh headless Chromium and is its first tab; it ends with the
// test. What a page throws, logs as an error or is refused by its own policy
// fails the test. The program is GATEHOUSE_TEST_CHROMIUM, or Debian's, preferably the
// one without windows, which takes half the processor time; where it is missing the
// test is skipped, and fails where CI means that it must run.
func New(t testing.TB) *Tab { return start(t) }

// NewSpeaking is New with a microphone that the page may use, which plays a WAV file over
// and over.
func NewSpeaking(t testing.TB, wav string) *Tab {
	return start(t, chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-audio-capture", wav))
}

func start(t testing.TB, more ...chromedp.ExecAllocatorOption) *Tab {
	t.Helper()
	path := os.Getenv("GATEHOUSE_TEST_CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium-headless-shell"
		if _, err := os.Stat(path); err != nil {
			path = "/usr/bin/chromium"
		}
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no browser, and CI must not go without: %v", err)
		}
		t.Skipf("no browser at %s: set GATEHOUSE_TEST_CHROMIUM, or install Debian's chromium", path)
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(opts, more...)...)
	t.Cleanup(stop)
	return newTab(t, ctx)
}

// Tab returns another tab of the same browser: with its cookies, and in the same
// window's background or foreground as the browser sees fit.
func (b *Tab) Tab() *Tab {
	b.t.Helper()
	return newTab(b.t, b.ctx)
}

func newTab(t testing.TB, ctx context.Context) *Tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, lifetime)
	b := &Tab{t: t, ctx: ctx}
	b.do(chromedp.Navigate("about:blank"))
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: listen})
	var reading sync.WaitGroup
	console := chromedp.Console(ctx)
	reading.Go(func() {
		for m, err := range console {
			if b.away.Load() && strings.Contains(fmt.Sprint(m), "Failed to load resource") {
				continue
			}
			if err == nil && (m.IsException() || m.Type == chromedp.ConsoleError) {
				t.Errorf("the page complained: %s", m)
			}
		}
	})
	t.Cleanup(func() { stop(); reading.Wait() })
	return b
}

func (b *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Open goes to an address and waits until it is loaded.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// Away tolerates from now on that the server cannot be reached, or has forgotten the
// session: browsers log both.
func (b *Tab) Away() { b.away.Store(true) }

// Front makes it the visible tab.
func (b *Tab) Front() {
	b.t.Helper()
	call(b, page.BringToFront, struct{}{})
}

// Eventually asks the page until the JavaScript expression holds. Asking again
// each time outlives a navigation; a query of chromedp's may not.
func (b *Tab) Eventually(expr string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		once, stop := context.WithTimeout(ctx, 30*time.Second)
		ok, err := chromedp.Run(once, chromedp.Evaluate[bool](`Boolean(`+expr+`)`))
		stop()
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("never true: %s (last: %v)", expr, err)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// Visible waits until what the selector finds first can be seen.
func (b *Tab) Visible(sel string) {
	b.t.Helper()
	b.Eventually(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, sel))
}

// Gone waits until the selector finds nothing.
func (b *Tab) Gone(sel string) {
	b.t.Helper()
	b.Eventually(fmt.Sprintf(`!document.querySelector(%q)`, sel))
}

// Says waits until the first element of the selector contains a text.
func (b *Tab) Says(sel, part string) {
	b.t.Helper()
	b.Eventually(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, sel, part))
}

// Focus focuses the element of the selector.
func (b *Tab) Focus(sel string) {
	b.t.Helper()
	b.Eventually(fmt.Sprintf(`(document.querySelector(%[1]q)?.focus(), document.activeElement === document.querySelector(%[1]q))`, sel))
}

// Focused waits until the focus is on what the selector names, without moving it.
func (b *Tab) Focused(sel string) {
	b.t.Helper()
	b.Eventually(fmt.Sprintf(`document.activeElement.matches(%q)`, sel))
}

// Press presses keys, one after the other, wherever the focus is; kb names
// those that are no letters.
func (b *Tab) Press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// TabTo presses the tabulator key until the focus is on what the selector
// names, as a user without a mouse does.
func (b *Tab) TabTo(sel string) {
	b.t.Helper()
	var way []string
	for range maxTabs {
		b.Press(kb.Tab)
		if Value[bool](b, fmt.Sprintf(`document.activeElement.matches(%q)`, sel)) {
			return
		}
		way = append(way, Value[string](b, `(document.activeElement.innerText || document.activeElement.name || document.activeElement.localName).trim().slice(0, 30)`))
	}
	b.t.Fatalf("%d presses of the tabulator key did not reach %s but %q", maxTabs, sel, way)
}

// Write focuses a field and types into it; a last kb.Enter is pressed when the
// field holds the rest. What went astray (a page that moves the focus while
// someone types) is typed again, twice at most.
func (b *Tab) Write(sel, text string) {
	b.t.Helper()
	words, enter := strings.CutSuffix(text, kb.Enter)
	for try := 1; ; try++ {
		b.Focus(sel)
		b.Press(words)
		held := Value[string](b, fmt.Sprintf(`document.querySelector(%q).value`, sel))
		if strings.HasSuffix(held, words) {
			break
		}
		if try == 3 {
			b.t.Fatalf("typing %q into %s left %q there", words, sel, held)
		}
		b.Eventually(fmt.Sprintf(`(document.querySelector(%[1]q).value = "", true)`, sel))
	}
	if enter {
		b.Press(kb.Enter)
	}
}

// Click presses the mouse in the middle of what the selector finds first, once
// it is still there and nothing lies over it, as a user would.
func (b *Tab) Click(sel string) {
	b.t.Helper()
	b.Visible(sel)
	b.Eventually(fmt.Sprintf(`(e => {
		if (!e) return false;
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
		const top = document.elementFromPoint(x, y), was = globalThis.clickAt;
		globalThis.clickAt = [x, y];
		const same = top && (e.contains(top) || top.contains(e) || e.closest("label")?.contains(top));
		return Boolean(same && was && was[0] === x && was[1] === y);
	})(document.querySelector(%q))`, sel))
	at := Value[[]float64](b, `(at => { delete globalThis.clickAt; return at; })(globalThis.clickAt)`)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// listen keeps what the page announces to screen readers, which the next
// announcement replaces.
const listen = `window.heard = [];
addEventListener("DOMContentLoaded", () => {
  const say = document.getElementById("say");
  if (say) new MutationObserver(() => heard.push(say.textContent)).observe(say, {childList: true, characterData: true, subtree: true});
});`

// Hears waits until the page has announced a text in which one of parts is, at any time
// since it was opened.
func (b *Tab) Hears(parts ...string) {
	b.t.Helper()
	var is []string
	for _, part := range parts {
		is = append(is, `text.includes(`+strconv.Quote(part)+`)`)
	}
	b.Eventually(`[...window.heard, document.getElementById("say").textContent].some(text => ` + strings.Join(is, " || ") + `)`)
}

// Value returns the value of a JavaScript expression in the page.
func Value[T any](b *Tab, expr string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expr))
	if err != nil {
		b.t.Fatalf("%s: %v", expr, err)
	}
	return v
}

// Look makes the window as wide and high, in CSS pixels, and the reader's
// colours "light" or "dark". Below 500 px it is a phone.
func (b *Tab) Look(width, height int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// Print shows the page as it is printed for a reader of these colours, until the next Look.
func (b *Tab) Print(scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// Zone makes the reader's time zone another one, such as America/New_York.
func (b *Tab) Zone(name string) {
	b.t.Helper()
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
}

func call[P, R any](b *Tab, c cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.t.Fatal(err)
	}
}

func picture(b *Tab, a chromedp.Action[[]byte]) []byte {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}

// Picture returns what the window shows, as PNG.
func (b *Tab) Picture() []byte {
	b.t.Helper()
	return picture(b, chromedp.CaptureScreenshot())
}

// WholePicture returns the page from top to bottom, as PNG.
func (b *Tab) WholePicture() []byte {
	b.t.Helper()
	return picture(b, chromedp.FullScreenshot(100))
}

// Shots returns the directory to write pictures to, "" for none
// (GATEHOUSE_TEST_SHOTS).
func Shots() string { return os.Getenv("GATEHOUSE_TEST_SHOTS") }

// Keep writes a picture into Shots, or nothing where none are wanted.
func (b *Tab) Keep(name string, png []byte) {
	b.t.Helper()
	if Shots() == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(Shots(), name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
