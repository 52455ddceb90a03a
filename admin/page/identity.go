package page

import (
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Principal returns the operator of r. Keys don't open the panel, whatever
// their scopes.
func Principal(r *http.Request) (auth.Principal, bool) {
	who, ok := auth.From(r.Context())
	return who, ok && who.Session
}

// OwnToken returns the token that r's session sends in the forms of its own account.
func OwnToken(r *http.Request) string {
	who, _ := Principal(r)
	return who.CSRF()
}

// Token returns the token that r's session sends in the forms that change anything else: ""
// for a viewer, whose forms are disabled then (form).
func Token(r *http.Request) string {
	if who, _ := Principal(r); who.Viewer {
		return ""
	}
	return OwnToken(r)
}

// account returns the name that the session of r goes by.
func account(r *http.Request) string {
	who, ok := Principal(r)
	switch {
	case !ok:
		return ""
	case who.Name != "":
		return who.Name
	}
	return fmt.Sprintf("user %d", who.User)
}

// fail shows a refused request as a page.
func (f *Frame) fail(w http.ResponseWriter, r *http.Request, pr *web.Problem) {
	if fragment(r) || r.URL.Path == "/admin/events" {
		web.WriteText(w, r, pr)
		return
	}
	text := Sentence(pr.Detail)
	if text == "" || pr.Fault.Status >= http.StatusInternalServerError {
		text = Sentence(pr.Fault.Title) + " See the log for the reason."
	}
	_, in := Principal(r)
	v := View{Title: pr.Fault.Title, Bare: !in, Body: text}
	if err := f.Show(w, r, pr.Fault.Status, "error", v); err != nil {
		f.Log.ErrorContext(r.Context(), "error page", "err", err)
		web.WriteText(w, r, pr)
	}
}

func missing(http.ResponseWriter, *http.Request) error {
	return core.Errorf(core.NotFound, "there is no such page in the panel")
}
