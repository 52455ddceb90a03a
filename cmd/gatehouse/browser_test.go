//go:build browser

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/web/webtest"
)

// A visit is somebody with one browser before a whole gateway with a bot on each
// platform: the panel in one tab, the phones in another.
type visit struct {
	*world
	discord       *discordtest.Server
	oneTime       string
	panel, phones *webtest.Tab
	people        map[string]string // name → id of the window; whom both platforms have, Telegram's
}

// newVisit opens both, at the sign-in page and at the phones.
func newVisit(t *testing.T) *visit {
	t.Helper()
	discord := newDiscord(t)
	w := newWorld(t, func(c *configs.Config) {
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(discord.Token()), discord.URL()
		c.AdminPassword = values.Secret{}
		c.Model = "local/quote:30ms"
		c.Pace = true
	})
	oneTime, err := w.app.admins.Prepare(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	claims := &demoClaims{ctx: t.Context()}
	claims.serve(w.app)
	handler, err := stage.Simulators{Telegram: w.sim, Discord: discord}.Page(phones.Options{Claim: claims.code, Panel: "http://" + w.cfg.Addr + "/admin"})
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(handler)
	t.Cleanup(func() { page.CloseClientConnections(); page.Close() })
	v := &visit{world: w, discord: discord, oneTime: oneTime, people: map[string]string{}}
	for _, u := range discord.Users() {
		v.people[u.Account().Name] = fmt.Sprintf("phone-discord-%d", u.ID())
	}
	for _, u := range w.sim.Users() {
		v.people[u.Account().FirstName] = fmt.Sprintf("phone-telegram-%d", u.ID())
	}
	v.panel = webtest.New(t)
	v.phones = v.panel.Tab()
	v.phones.Look(1280, 860, "light")
	v.phones.Open(page.URL)
	v.phones.Visible(v.of("Olga", "textarea"))
	v.panel.Front()
	v.panel.Look(1280, 860, "light")
	v.panel.Open("http://" + w.cfg.Addr + "/admin")
	return v
}

// of is a selector inside of a person's window.
func (v *visit) of(name, sel string) string { return "#" + v.people[name] + " " + sel }

// requestOf is a selector inside of a person's request on the panel.
func (v *visit) requestOf(name, sel string) string {
	v.t.Helper()
	parts := strings.Split(v.people[name], "-")
	var id string
	v.until("a request of "+name, func() bool {
		rs, err := v.app.pairing.Requests(v.t.Context(), "", 100)
		if err != nil {
			v.t.Fatal(err)
		}
		for _, r := range rs {
			if r.Platform == parts[1] && r.PlatformUserID == parts[2] {
				id = r.ID
			}
		}
		return id != ""
	})
	return fmt.Sprintf("#r-%s %s", id, sel)
}

const newPassword = "seven grey herons wade"

// signIn goes the way of the first start.
func (v *visit) signIn() {
	v.t.Helper()
	v.panel.Focused(`input[name=password]`)
	v.panel.Press(v.oneTime + kb.Enter)
	v.panel.Eventually(`document.readyState === "complete" && document.activeElement.name === "new"`)
	v.panel.Press(newPassword + kb.Tab + newPassword + kb.Enter)
	v.panel.Visible(`#flash.good`)
}

// following waits until the panel's page is live, and marks its document: after
// a reload the mark would be gone.
func (v *visit) following() {
	v.t.Helper()
	v.panel.Eventually(`document.querySelector("#live span")?.textContent === "Live"`)
	v.panel.Eventually(`window.sameDocument = true`)
}

// write sends a message from a phone, by its own field.
func (v *visit) write(name, text string) {
	v.t.Helper()
	v.phones.Front()
	v.phones.Write(v.of(name, "textarea"), text+kb.Enter)
	v.phones.Eventually(fmt.Sprintf(`[...document.querySelectorAll(%q)].at(-1)?.textContent === %q`, v.of(name, ".own .text"), text))
}

// answer waits on a person's phone until an answer grows word by word, and
// then stands there whole, with the passage and where it is from.
func (v *visit) answer(name string) {
	v.t.Helper()
	v.phones.Front()
	draft := fmt.Sprintf("document.querySelector(%q)?.textContent", v.of(name, ".draft .text"))
	v.phones.Eventually(draft + `?.length > 10`)
	first := webtest.Value[*string](v.phones, draft+` ?? null`)
	v.phones.Eventually(fmt.Sprintf(`%s?.length > %d`, draft, len(deref(first))))
	whole := v.of(name, ".log .row:not(.own):last-child .text")
	v.phones.Says(whole, "two minutes")
	v.phones.Says(whole, "Public/tea.md")
	v.phones.Gone(v.of(name, ".draft"))
	if text := webtest.Value[string](v.phones, fmt.Sprintf("document.querySelector(%q).textContent", whole)); strings.Contains(text, "Private") {
		v.t.Errorf("a guest was shown %q", text)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestTheMainJobInABrowser(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.Click(`nav a[href="/admin/pairing"]`)
	v.panel.Visible(`#none`)
	v.following()

	v.write("Ada", tea)
	v.phones.Says(v.of("Ada", ".log .row:not(.own) .text"), "code")
	v.panel.Front()
	card := v.requestOf("Ada", "")
	v.panel.Visible(card)
	v.panel.Says(card, tea)
	if code := webtest.Value[string](v.phones, fmt.Sprintf("document.querySelector(%q).textContent", v.of("Ada", ".log .row:not(.own) .text"))); !strings.Contains(code, webtest.Value[string](v.panel, fmt.Sprintf("document.querySelector(%q).textContent", card+".code b"))) {
		t.Errorf("the panel's code is not the one on Ada's phone: %q", code)
	}
	v.panel.Click(card + `input[value=sandboxed] + span`)
	v.panel.Click(card + `.primary`)
	v.panel.Visible(`.settled`)
	v.answer("Ada")
	v.panel.Eventually(`window.sameDocument === true`)
	v.write("Ada", "/help")
	v.phones.Says(v.of("Ada", ".log .row:not(.own):last-child button.linked:nth-of-type(2)"), "/stop") // a command can be tapped
	v.portrait()
}

func TestTheMainJobByKeyboardAlone(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.TabTo(`nav a[href="/admin/pairing"]`)
	v.panel.Press(kb.Enter)
	v.panel.Visible(`#none`)
	v.following()

	v.phones.Front()
	v.phones.TabTo(v.of("Ada", "textarea"))
	v.phones.Press(tea + kb.Enter)
	v.phones.Says(v.of("Ada", ".log .row:not(.own) .text"), "code")

	v.panel.Front()
	card := v.requestOf("Ada", "")
	v.panel.Visible(card)
	v.panel.TabTo(card + `input[name=trust]`)
	v.panel.TabTo(card + `.primary`)
	v.panel.Press(kb.Enter)
	v.panel.Visible(`.settled`)
	v.panel.Eventually(`window.sameDocument === true`)
	v.answer("Ada")
}

func TestTheOwnerClaimsAndApprovesOnTheirPhone(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.Click(`nav a[href="/admin/pairing"]`)
	v.following()

	// The code stands ready on a chip.
	v.phones.Front()
	v.phones.Eventually(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((c) => c.textContent.startsWith("/claim ") && (c.click(), true))`, v.of("Olga", ".chip")))
	v.phones.Focused(v.of("Olga", "textarea"))
	v.phones.Press(kb.Enter)
	v.phones.Says(v.of("Olga", ".log .row:not(.own):last-child .text"), "own")
	v.phones.Eventually(`![...document.querySelectorAll(".chip")].some((c) => c.textContent.startsWith("/claim"))`) // nothing left to claim

	v.write("Ben", tea)
	request := v.requestOf("Ben", "")
	ask := v.of("Olga", ".log .row:not(.own):last-child ")
	v.phones.Says(ask, "Ben")
	v.phones.Says(ask+".key", "Approve")
	v.panel.Front()
	v.panel.Visible(request)
	v.phones.Front()
	v.phones.Click(ask + ".key")
	v.answer("Ben")
	v.phones.Gone(ask + ".key") // decided: nothing to press any more
	v.panel.Front()
	v.panel.Says(request+".said", "Approved as sandboxed by operator via chat")
	v.panel.Eventually(`window.sameDocument === true`)
}

// The same on Discord: sign in, see the request come, approve it, see the
// answer grow in place in the person's window; the other platform is not touched.
func TestTheMainJobOnDiscordInABrowser(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.Click(`nav a[href="/admin/pairing"]`)
	v.panel.Visible(`#none`)
	v.following()

	v.write("Cleo", tea)
	v.phones.Says(v.of("Cleo", ".log .row:not(.own) .text"), "code")
	v.panel.Front()
	card := v.requestOf("Cleo", "")
	v.panel.Visible(card)
	v.panel.Says(card, tea)
	v.panel.Says(card, "Discord")
	v.panel.Click(card + `.primary`)
	v.panel.Visible(`.settled`)

	v.phones.Front()
	whole := v.of("Cleo", ".log .row:not(.own):last-child .text")
	v.phones.Says(whole, "two minutes")
	v.phones.Says(whole, "Public/tea.md")
	v.phones.Says(whole, "(edited)") // the preview became the answer
	v.phones.Visible(v.of("Cleo", ".log .row:not(.own) .app"))
	v.phones.Eventually(fmt.Sprintf(`!document.querySelector(%q).textContent.includes("**")`, whole)) // markup is shown, not written
	v.panel.Eventually(`window.sameDocument === true`)
	if n := v.count("SELECT count(*) FROM access WHERE bot = 'telegram'"); n != 0 {
		t.Errorf("%d people may write on Telegram", n)
	}
	// In the server the channel is one tab further, by keyboard.
	v.phones.Focus(v.of("Cleo", ".tab.private"))
	v.phones.Press(kb.ArrowDown)
	v.phones.Focused(v.of("Cleo", `.tab.group[aria-selected="true"]`))
	v.write("Cleo", "hello everybody")
	v.phones.Says(v.of("Dan", ".tab.group .badge"), "1")
}

// portrait is the README's picture: somebody new waits on the panel, beside
// the windows of people who were let in on either platform.
func (v *visit) portrait() {
	if webtest.Shots() == "" {
		return
	}
	v.write("Cleo", "When is the library open?")
	v.phones.Says(v.of("Cleo", ".log .row:not(.own) .text"), "code")
	v.panel.Front()
	v.panel.Click(v.requestOf("Cleo", ".primary"))
	v.phones.Front()
	v.phones.Says(v.of("Cleo", ".log .row:not(.own):last-child .text"), "Public/")
	v.write("Ben", "Hi! Olga said you know good books?")
	v.phones.Says(v.of("Ben", ".log .row:not(.own) .text"), "code")
	v.panel.Front()
	v.panel.Visible(v.requestOf("Ben", ""))
	v.panel.Gone(`.settled`)
	v.panel.Look(900, 820, "light")
	v.panel.Eventually(`(scrollTo({top: 0, behavior: "instant"}), scrollY === 0)`)
	views := []image.Image{picture(v.t, v.panel.Picture())}
	v.phones.Front()
	v.phones.Look(390, 820, "light")
	for _, platform := range []string{"telegram", "discord"} {
		name := map[string]string{"telegram": "Ada", "discord": "Cleo"}[platform]
		v.phones.Click(`.switch [data-show=` + platform + `]`)
		v.phones.Click("#" + platform + ` .jump`)
		v.phones.Gone(v.of(name, ".bar-state.busy")) // typing fades after some seconds
		v.phones.Eventually(fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({block: "start", behavior: "instant"}), true)`, v.of(name, ".own")))
		views = append(views, picture(v.t, v.phones.Picture()))
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, beside(views...)); err != nil {
		v.t.Fatal(err)
	}
	if b.Len() > 300<<10 {
		v.t.Errorf("the picture has %d kB, want at most 300", b.Len()>>10)
	}
	v.phones.Keep("screenshot", b.Bytes())
}

func picture(t testing.TB, b []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// beside sets pictures on one quiet ground.
func beside(views ...image.Image) image.Image {
	const gap = 20
	wide, high := gap, 0
	for _, m := range views {
		wide, high = wide+m.Bounds().Dx()+gap, max(high, m.Bounds().Dy())
	}
	out := image.NewRGBA(image.Rect(0, 0, wide, high+2*gap))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.RGBA{0xc9, 0xd3, 0xd1, 0xff}), image.Point{}, draw.Src)
	x := gap
	for _, m := range views {
		draw.Draw(out, m.Bounds().Add(image.Pt(x, gap)), m, m.Bounds().Min, draw.Src)
		x += m.Bounds().Dx() + gap
	}
	return out
}
