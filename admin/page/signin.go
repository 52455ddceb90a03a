package page

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/web/auth"
)

type loginBody struct {
	Name, Next, Error string
}

type codeBody struct {
	Ticket, Next, Error string
}

type passwordBody struct {
	Forced bool
	Error  string
	Least  int
}

func (f *Frame) loginPage(w http.ResponseWriter, r *http.Request) error {
	if _, ok := Principal(r); ok {
		return f.Away(w, r, "/admin")
	}
	return f.showLogin(w, r, http.StatusOK, loginBody{Name: auth.AdminName, Next: r.URL.Query().Get("next")})
}

func (f *Frame) showLogin(w http.ResponseWriter, r *http.Request, status int, b loginBody) error {
	return f.Show(w, r, status, "login", View{Title: "Sign in", Bare: true, Body: b})
}

func (f *Frame) login(w http.ResponseWriter, r *http.Request) error {
	b := loginBody{Name: r.PostFormValue("name"), Next: r.PostFormValue("next")}
	err := f.accounts.SignIn(w, r, b.Name, r.PostFormValue("password"))
	if err == nil {
		// A one-time password is changed first: every page sends there.
		return f.Away(w, r, f.known(b.Next))
	}
	if need, ok := errors.AsType[*auth.CodeNeeded](err); ok {
		return f.showCode(w, r, http.StatusOK, codeBody{Ticket: need.Ticket, Next: b.Next})
	}
	status, ok := Refusal(w, err)
	if !ok {
		return err
	}
	b.Error = Sentence(core.TextOf(err))
	return f.showLogin(w, r, status, b)
}

// LinkPath is where a link with ?token= signs in.
const LinkPath = "/admin/enter"

// follow signs in who follows the link of the demo. What is fetched in advance, or only to see
// whether it is there, does not use it up.
func (f *Frame) follow(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	err := f.o.Links.FollowLink(w, r, r.URL.Query().Get("token"))
	if _, signedIn := Principal(r); err == nil || signedIn {
		return f.Away(w, r, "/admin")
	}
	if need, ok := errors.AsType[*auth.CodeNeeded](err); ok {
		return f.showCode(w, r, http.StatusOK, codeBody{Ticket: need.Ticket})
	}
	status, ok := Refusal(w, err)
	if !ok {
		return err
	}
	return f.showLogin(w, r, status, loginBody{Name: auth.AdminName, Error: Sentence(core.TextOf(err))})
}

func (f *Frame) showCode(w http.ResponseWriter, r *http.Request, status int, b codeBody) error {
	return f.Show(w, r, status, "code", View{Title: "Enter the code", Bare: true, Body: b})
}

// code is the second step: it takes the code that login asked for.
func (f *Frame) code(w http.ResponseWriter, r *http.Request) error {
	b := codeBody{Ticket: r.PostFormValue("ticket"), Next: r.PostFormValue("next")}
	err := f.o.Codes.Confirm(w, r, b.Ticket, r.PostFormValue("code"))
	if err == nil {
		return f.Away(w, r, f.known(b.Next))
	}
	status, ok := Refusal(w, err)
	if !ok {
		return err
	}
	b.Error = Sentence(core.TextOf(err))
	return f.showCode(w, r, status, b)
}

// known returns next when it is a page of the panel, or one below it with a fixed
// address, else the overview: a link to the sign-in can't redirect to another site.
func (f *Frame) known(next string) string {
	for _, e := range f.items {
		below := e.Path != "/admin" && strings.HasPrefix(next, e.Path+"/") && !strings.Contains(next, "{")
		if e.Path == next || below && slices.Contains(f.patterns, "GET "+next) {
			return next
		}
	}
	return "/admin"
}

// Refusal returns the status of an error that the form itself can show, and
// sets the time to wait in the header; false for any other error.
func Refusal(w http.ResponseWriter, err error) (status int, ok bool) {
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

func (f *Frame) passwordPage(w http.ResponseWriter, r *http.Request) error {
	return f.showPassword(w, r, http.StatusOK, "")
}

func (f *Frame) showPassword(w http.ResponseWriter, r *http.Request, status int, text string) error {
	who, _ := Principal(r)
	v := View{Title: "Change password", Bare: who.MustChange, Body: passwordBody{Forced: who.MustChange, Error: text, Least: auth.MinPassword}}
	if who.MustChange {
		v.Title = "Choose your password"
	}
	return f.Show(w, r, status, "password", v)
}

func (f *Frame) password(w http.ResponseWriter, r *http.Request) error {
	fresh := r.PostFormValue("new")
	if fresh != r.PostFormValue("again") {
		return f.showPassword(w, r, http.StatusUnprocessableEntity, "The two new passwords differ. Type the same one twice.")
	}
	err := f.accounts.ChangePassword(w, r, r.PostFormValue("old"), fresh)
	if err == nil {
		f.SetFlash(w, r, Good("The password is changed, and every other session is signed out."))
		return f.Away(w, r, "/admin")
	}
	status, ok := Refusal(w, err)
	if !ok {
		return err
	}
	return f.showPassword(w, r, status, Sentence(core.TextOf(err)))
}

func (f *Frame) logout(w http.ResponseWriter, r *http.Request) error {
	if r.PostFormValue("everywhere") != "" {
		who, _ := Principal(r)
		if _, err := f.accounts.SignOutEverywhere(r.Context(), who.User, who.Actor()); err != nil {
			return err
		}
	}
	if err := f.accounts.SignOut(w, r); err != nil {
		return err
	}
	return f.Away(w, r, "/admin/login")
}
