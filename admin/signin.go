package admin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"gatehouse/core"
	"gatehouse/web/auth"
)

type loginBody struct {
	Name, Next, Error string
}

type passwordBody struct {
	Forced bool
	Error  string
	Least  int
}

func (p *Panel) loginPage(w http.ResponseWriter, r *http.Request) error {
	if _, ok := principal(r); ok {
		return p.away(w, r, "/admin")
	}
	return p.showLogin(w, r, http.StatusOK, loginBody{Name: auth.AdminName, Next: r.URL.Query().Get("next")})
}

func (p *Panel) showLogin(w http.ResponseWriter, r *http.Request, status int, b loginBody) error {
	return p.show(w, r, status, "login", view{Title: "Sign in", Bare: true, Body: b})
}

func (p *Panel) login(w http.ResponseWriter, r *http.Request) error {
	b := loginBody{Name: r.PostFormValue("name"), Next: r.PostFormValue("next")}
	err := p.accounts.SignIn(w, r, b.Name, r.PostFormValue("password"))
	if err == nil {
		// A one-time password is changed first: every page sends there.
		return p.away(w, r, p.known(b.Next))
	}
	status, ok := refusal(w, err)
	if !ok {
		return err
	}
	b.Error = sentence(core.TextOf(err))
	return p.showLogin(w, r, status, b)
}

// known is next when it is a page of the panel, else the overview: a link to
// the sign-in can't send anybody elsewhere.
func (p *Panel) known(next string) string {
	for _, e := range p.menu(context.Background(), "") {
		if e.Path == next {
			return next
		}
	}
	return "/admin"
}

// refusal is the status of an error that the form itself can show, with the
// time to wait in its header.
func refusal(w http.ResponseWriter, err error) (status int, ok bool) {
	if e, is := errors.AsType[*auth.Refusal](err); is {
		if _, after := e.Problem(); after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
			return http.StatusTooManyRequests, true
		}
		return http.StatusUnauthorized, true
	}
	switch core.KindOf(err) {
	case core.Invalid, core.Denied:
		return http.StatusUnprocessableEntity, true
	case core.Conflict:
		return http.StatusConflict, true
	case core.Busy:
		return http.StatusServiceUnavailable, true
	}
	return 0, false
}

func (p *Panel) passwordPage(w http.ResponseWriter, r *http.Request) error {
	return p.showPassword(w, r, http.StatusOK, "")
}

func (p *Panel) showPassword(w http.ResponseWriter, r *http.Request, status int, text string) error {
	who, _ := principal(r)
	v := view{Title: "Change password", Bare: who.MustChange, Body: passwordBody{Forced: who.MustChange, Error: text, Least: auth.MinPassword}}
	if who.MustChange {
		v.Title = "Choose your password"
	}
	return p.show(w, r, status, "password", v)
}

func (p *Panel) password(w http.ResponseWriter, r *http.Request) error {
	fresh := r.PostFormValue("new")
	if fresh != r.PostFormValue("again") {
		return p.showPassword(w, r, http.StatusUnprocessableEntity, "The two new passwords differ. Type the same one twice.")
	}
	err := p.accounts.ChangePassword(w, r, r.PostFormValue("old"), fresh)
	if err == nil {
		p.setFlash(w, r, good("The password is changed, and every other session is signed out."))
		return p.away(w, r, "/admin")
	}
	status, ok := refusal(w, err)
	if !ok {
		return err
	}
	return p.showPassword(w, r, status, sentence(core.TextOf(err)))
}

func (p *Panel) logout(w http.ResponseWriter, r *http.Request) error {
	if r.PostFormValue("everywhere") != "" {
		who, _ := principal(r)
		if _, err := p.accounts.SignOutEverywhere(r.Context(), who.User, who.Actor()); err != nil {
			return err
		}
	}
	if err := p.accounts.SignOut(w, r); err != nil {
		return err
	}
	return p.away(w, r, "/admin/login")
}
