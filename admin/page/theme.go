package page

import (
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// themeCookie keeps the colours that were chosen in this browser.
const themeCookie = "gatehouse_theme"

// themeAge is how long a choice is kept.
const themeAge = 365 * 24 * time.Hour

// themes are the choices; "" follows the system.
var themes = []Choice{{"", "Auto"}, {"light", "Light"}, {"dark", "Dark"}}

// Themes returns the choices of colours.
func (v View) Themes() []Choice { return themes }

// themeOf returns the choice of r's browser.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(web.CookieName(r, themeCookie)); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// theme keeps the chosen colours and returns to the page that the form was on.
func (f *Frame) theme(w http.ResponseWriter, r *http.Request) error {
	want := r.PostFormValue("theme")
	if want != "" && want != "light" && want != "dark" {
		return core.Errorf(core.Invalid, "colours are light, dark or those of the system")
	}
	return f.keep(w, r, themeCookie, want)
}

// lettersCookie is "off" in a browser whose user switched off the keys that are one letter or sign:
// speech input types them by chance (WCAG 2.1.4).
const lettersCookie = "gatehouse_letters"

// lettersOff reports whether they are switched off in r's browser.
func lettersOff(r *http.Request) bool {
	c, err := r.Cookie(web.CookieName(r, lettersCookie))
	return err == nil && c.Value == "off"
}

// letters switches the keys and returns to the page that the form was on.
func (f *Frame) letters(w http.ResponseWriter, r *http.Request) error {
	want := r.PostFormValue("letters")
	if want != "" && want != "off" {
		return core.Errorf(core.Invalid, "keys of one letter are on or off")
	}
	return f.keep(w, r, lettersCookie, want)
}

// keep keeps a choice in r's browser, "" by keeping none, and returns to the page that the form was on.
func (f *Frame) keep(w http.ResponseWriter, r *http.Request, name, want string) error {
	age := int(themeAge / time.Second)
	if want == "" {
		age = -1
	}
	c := f.cookie(r, want, age)
	c.Name = web.CookieName(r, name)
	http.SetCookie(w, c)
	back := r.PostFormValue("at")
	if back != "/admin" && !strings.HasPrefix(back, "/admin/") {
		back = "/admin"
	}
	return f.Away(w, r, back)
}
