package settings

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const textsPath = settingsPath + "/texts"

type textsBody struct {
	Bot   string
	Texts []BotText
}

type textBody struct {
	CSRF  string
	Bot   string
	Text  BotText
	Fault string    // what is wrong with Text.Body
	Asked bool      // Preview was pressed
	Shown []BotText // the preview, where there is no fault
	Same  bool      // Body is unchanged
}

// ownTexts reports whether a bot's texts can be changed, and how many were.
func (p *valuePages) ownTexts(bot string) (can bool, n int) {
	if p.o.Texts == nil || p.o.Changes == nil {
		return false, 0
	}
	list, err := p.o.Texts.Texts(bot)
	for _, t := range list {
		if t.Own {
			n++
		}
	}
	return err == nil, n
}

func (p *valuePages) textsPage(w http.ResponseWriter, r *http.Request) error {
	bot := r.PathValue("bot")
	list, err := p.o.Texts.Texts(bot)
	if err != nil {
		return err
	}
	return p.frame.Show(w, r, http.StatusOK, "texts", page.View{Title: "What " + bot + " says", In: "settings", Topics: []core.Topic{core.TopicBots}, Body: textsBody{bot, list}})
}

// oneText returns a text as it is now.
func (p *valuePages) oneText(r *http.Request) (BotText, error) {
	list, err := p.o.Texts.Texts(r.PathValue("bot"))
	if err != nil {
		return BotText{}, err
	}
	i := slices.IndexFunc(list, func(t BotText) bool { return t.Name == r.PathValue("name") })
	if i < 0 {
		return BotText{}, core.Errorf(core.NotFound, "there is no such text")
	}
	return list[i], nil
}

func (p *valuePages) textPage(w http.ResponseWriter, r *http.Request) error {
	t, err := p.oneText(r)
	if err != nil {
		return err
	}
	return p.showText(w, r, http.StatusOK, textBody{Text: t})
}

// text previews a text, or saves it.
func (p *valuePages) text(w http.ResponseWriter, r *http.Request) error {
	now, err := p.oneText(r)
	if err != nil {
		return err
	}
	who, _ := page.Principal(r)
	back := textsPath + "/" + r.PathValue("bot")
	if r.PostFormValue("do") == "default" {
		if err := p.o.Texts.SetText(r.Context(), r.PathValue("bot"), now.Name, r.PostFormValue("version"), "", who.Actor()); err != nil {
			return p.textFault(w, r, textBody{Text: now}, err)
		}
		p.frame.SetFlash(w, r, page.Good("“"+now.Title+"” is the default again, from now on."))
		return p.frame.Away(w, r, back)
	}
	b := textBody{Text: now, Asked: true}
	b.Text.Body = strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n"))
	b.Text.Version = r.PostFormValue("version")
	b.Same = b.Text.Body == now.Body
	save := r.PostFormValue("do") == "save"
	tried, err := p.o.Texts.TryText(r.PathValue("bot"), now.Name, b.Text.Body)
	switch {
	case core.KindOf(err) == core.Invalid && !save: // which is what was asked
		b.Fault = page.Sentence(core.TextOf(err))
		return p.showText(w, r, http.StatusOK, b)
	case err != nil:
		return p.textFault(w, r, b, err)
	}
	b.Shown = []BotText{tried}
	if !save {
		return p.showText(w, r, http.StatusOK, b)
	}
	if err := p.o.Texts.SetText(r.Context(), r.PathValue("bot"), now.Name, b.Text.Version, b.Text.Body, who.Actor()); err != nil {
		return p.textFault(w, r, b, err)
	}
	p.frame.SetFlash(w, r, page.Good("“"+now.Title+"” is used from now on."))
	return p.frame.Away(w, r, back)
}

// textFault shows the page with the fault and the text as it was entered.
func (p *valuePages) textFault(w http.ResponseWriter, r *http.Request, b textBody, err error) error {
	status, ok := page.Refusal(w, err)
	if !ok {
		return err
	}
	b.Fault, b.Shown = page.Sentence(core.TextOf(err)), nil
	return p.showText(w, r, status, b)
}

func (p *valuePages) showText(w http.ResponseWriter, r *http.Request, status int, b textBody) error {
	b.CSRF, b.Bot = page.Token(r), r.PathValue("bot")
	return p.frame.Show(w, r, status, "text", page.View{Title: b.Text.Title + ", " + b.Bot, In: "settings", Still: true, Body: b})
}

// A piece is a run of a text that is all code, or all not.
type piece struct {
	Text string
	Code bool
}

// pieces returns a part split where its code begins and ends.
func pieces(p core.Part) (out []piece) {
	units, at := utf16.Encode([]rune(p.Text)), 0
	add := func(to int, code bool) {
		if to = min(to, len(units)); to > at {
			out = append(out, piece{string(utf16.Decode(units[at:to])), code})
			at = to
		}
	}
	for _, s := range p.Spans {
		if s.Style == core.StyleCode && s.Offset >= at {
			add(s.Offset, false)
			add(s.Offset+s.Length, true)
		}
	}
	add(len(units), false)
	return out
}
