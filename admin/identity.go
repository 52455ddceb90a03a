package admin

import (
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

func (p *Panel) identify(r *http.Request) (*http.Request, auth.Principal, error) {
	r, err := p.door.Identify(r)
	if err != nil {
		return r, auth.Principal{}, err
	}
	who, _ := principal(r)
	return r, who, nil
}

// principal is the operator of r. Keys don't open the panel, whatever their scopes.
func principal(r *http.Request) (auth.Principal, bool) {
	who, ok := auth.From(r.Context())
	return who, ok && who.Session
}

func (p *Panel) token(r *http.Request) string {
	who, _ := principal(r)
	return who.CSRF()
}

func (p *Panel) who(r *http.Request) string {
	who, ok := principal(r)
	switch {
	case !ok:
		return ""
	case who.User == core.Operator:
		return auth.AdminName
	}
	return fmt.Sprintf("user %d", who.User)
}

// fail shows a refused request as a page.
func (p *Panel) fail(w http.ResponseWriter, r *http.Request, pr *web.Problem) {
	if fragment(r) || r.URL.Path == "/admin/events" {
		web.WriteText(w, r, pr)
		return
	}
	text := sentence(pr.Detail)
	if text == "" || pr.Fault.Status >= http.StatusInternalServerError {
		text = sentence(pr.Fault.Title) + " The log says more."
	}
	_, in := principal(r)
	v := view{Title: pr.Fault.Title, Bare: !in, Body: text}
	if err := p.show(w, r, pr.Fault.Status, "error", v); err != nil {
		p.log.ErrorContext(r.Context(), "error page", "err", err)
		web.WriteText(w, r, pr)
	}
}

func (p *Panel) missing(http.ResponseWriter, *http.Request) error {
	return core.Errorf(core.NotFound, "there is no such page in the panel")
}
