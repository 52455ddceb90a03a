package admin_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// textWorld is the catalogue, with what was written anew for the bot family.
type textWorld struct{ *world }

func (w textWorld) Texts(bot string) (list []settings.BotText, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bot != "family" && !slices.ContainsFunc(w.bots, func(b core.BotState) bool { return b.Bot == bot }) {
		return nil, core.Errorf(core.NotFound, "there is no such bot")
	}
	for _, o := range texts.Editable() {
		t := settings.BotText{Name: o.Name, Title: o.Title, When: o.When, Body: texts.Default(o.Name), Default: texts.Default(o.Name), Most: 3996}
		if own := w.texts[o.Name]; own != "" && bot == "family" {
			t.Body, t.Own, t.Version = own, true, own
		}
		for _, f := range []settings.TextField{{Name: ".Code", About: "the code that identifies the request", Example: "K7M2Q9XT"},
			{Name: ".Name", About: "the name that the person goes by; some have none", Example: "Ada"}, {Name: ".Bot", About: "the bot’s name here", Example: bot}} {
			if slices.Contains(o.Fields(), f.Name) {
				t.Fields = append(t.Fields, f)
			}
		}
		if t.Said, err = texts.SayOwn(o, t.Body, texts.Example(bot)); err != nil {
			t.Said = core.Part{Text: t.Body} // hostile text, which nobody could have saved
		}
		t.Size = len(t.Said.Text)
		list = append(list, t)
	}
	return list, nil
}

func (w textWorld) TryText(bot, name, body string) (settings.BotText, error) {
	o, _ := texts.Find(name)
	if err := o.Check(body, bot, texts.Room{Most: 3996, Size: func(p core.Part) int { return len(p.Text) }}); err != nil {
		return settings.BotText{}, err
	}
	said, err := texts.SayOwn(o, body, texts.Example(bot))
	return settings.BotText{Name: name, Body: body, Said: said, Size: len(said.Text), Most: 3996}, err
}

func (w textWorld) SetText(_ context.Context, bot, name, version, body string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.texts[name] != version {
		return core.Errorf(core.Conflict, "this text was changed concurrently: reload it and try again")
	}
	if w.texts == nil {
		w.texts = map[string]string{}
	}
	w.texts[name] = body
	w.note(by, "text %s %s %q", bot, name, body)
	return nil
}

// A text is shown with its default beside it, seen as it would be said, saved,
// and taken back: by forms alone.
func TestATextIsWrittenAgainWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin/settings/bots").has(t, `href="/admin/settings/texts/family"`, `1 of your own`)
	s.get("/admin/settings/texts/family").has(t, "Texts of family", "Hello Ada! This is our family&#39;s bot. Your code is <code>K7M2Q9XT</code>.",
		`<span class="pill note">panel</span>`, `<span class="pill idle">default</span>`, "Your request was denied.", `href="/admin/settings/texts/family/denied"`)
	const path = "/admin/settings/texts/family/denied"
	a := s.get(path)
	a.has(t, "\nYour request was denied.</textarea>", "The default", "<code>{{.Name}}</code>", `value="preview"`)
	a.lacks(t, `value="save"`, `value="default"`) // nothing was seen, and nothing was written anew
	written := url.Values{"text": {"Sorry, {{.Name}}.\r\n**No** <b>."}, "do": {"preview"}, "version": {""}}
	s.postForm(path, written).has(t, `id="preview"`, "Sorry, Ada.\n**No** &lt;b&gt;.", "23 of 3996 characters", `value="save"`)
	if did := s.world.done(); len(did) != 0 {
		t.Errorf("a preview did %q", did)
	}
	written.Set("do", "save")
	s.post(path, written).has(t, "“Denied” is used from now on.", "Sorry, Ada.\n**No** &lt;b&gt;.")
	if by := s.world.lastActor(); by.User != core.Operator || by.Via != "panel" {
		t.Errorf("written by %+v", by)
	}
	if a := s.postForm(path, written); a.status != http.StatusConflict || !strings.Contains(a.body, "This text was changed concurrently") || !strings.Contains(a.body, "Sorry, {{.Name}}.") {
		t.Errorf("the second writer: %d %s", a.status, a.main())
	}
	s.post(path, url.Values{"do": {"default"}, "version": {s.world.texts["denied"]}}).has(t, "“Denied” is the default again")
	if did, want := s.world.done(), []string{`text family denied "Sorry, {{.Name}}.\n**No** <b>."`, `text family denied ""`}; !slices.Equal(did, want) {
		t.Errorf("did %q", did)
	}
	for _, gone := range []string{"/admin/settings/texts/family/claimed", "/admin/settings/texts/nobody", "/admin/settings/texts/nobody/code"} {
		if a := s.get(gone); a.status != http.StatusNotFound {
			t.Errorf("%s: status %d", gone, a.status)
		}
	}
}

// What is wrong with a text is told by its line, and what was written stays.
func TestATextThatCanNotBeSaidIsShownWithItsFault(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for body, says := range map[string]string{
		"Hi {{.Cod}}":                           "Line 1: there is no field {{.Cod}}; there is {{.Code}}, {{.Name}} and {{.Bot}}",
		"Hi\n</textarea>{{.Code":                "Line 2: braces that are opened there with {{ are not closed with }}",
		"Hi <script>":                           "The code is missing",
		"{{.Code}}" + strings.Repeat("x", 4000): "It is too long",
		"{{range 99999999}}{{end}}":             "Line 1: only fields, if, else and with can be used here",
	} {
		for do, status := range map[string]int{"preview": http.StatusOK, "save": http.StatusUnprocessableEntity} {
			a := s.postForm("/admin/settings/texts/family/code", url.Values{"text": {body}, "do": {do}, "version": {s.world.texts["code"]}})
			if a.status != status || strings.Contains(a.body, `value="save"`) {
				t.Errorf("%s of %.30q: status %d", do, body, a.status)
			}
			a.has(t, `id="fault"`, escaped(says), `aria-invalid="true"`, "\n"+escaped(body)+"</textarea>")
		}
	}
	if did := s.world.done(); len(did) != 0 {
		t.Errorf("did %q", did)
	}
}

// escaped is s as html/template writes it.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}
