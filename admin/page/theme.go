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
	age := int(themeAge / time.Second)
	switch want {
	case "light", "dark":
	case "":
		age = -1
	default:
		return core.Errorf(core.Invalid, "colours are light, dark or those of the system")
	}
	c := f.cookie(r, want, age)
	c.Name = web.CookieName(r, themeCookie)
	http.SetCookie(w, c)
	back := r.PostFormValue("at")
	if back != "/admin" && !strings.HasPrefix(back, "/admin/") {
		back = "/admin"
	}
	return f.Away(w, r, back)
}
