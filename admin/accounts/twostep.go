package accounts

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"rsc.io/qr"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/account"
	"gatehouse/web/auth/totp"
)

const twoStepPath = ownPath + "/two-step"

// TwoStep is the two-step sign-in of accounts (account.Store).
type TwoStep interface {
	BeginTwoStep(ctx context.Context, user int64) (secret string, err error)
	ConfirmTwoStep(ctx context.Context, user int64, setUp, code string, by core.Actor) (recovery []string, err error)
	RenewRecovery(ctx context.Context, user int64, by core.Actor) (recovery []string, err error)
	EndTwoStep(ctx context.Context, user int64, by core.Actor) error
}

func (p *Pages) twoStepRoutes() {
	p.frame.Own("POST "+twoStepPath, p.setUp)
	p.frame.Own("POST "+twoStepPath+"/confirm", p.confirm)
	p.frame.Own("POST "+twoStepPath+"/recovery", p.renew)
	p.frame.Own("POST "+twoStepPath+"/off", p.off)
	p.frame.Post("POST "+listPath+"/{user}/two-step/off", p.offForAnother)
}

type setUpBody struct {
	CSRF, Error string
	Name, SetUp string        // SetUp names the secret
	Secret      string        // "": it is not shown again
	QR          template.HTML // of Secret
}

// setUp answers with the page itself: the secret is in no address.
func (p *Pages) setUp(w http.ResponseWriter, r *http.Request) error {
	return p.begin(w, r, http.StatusOK, "")
}

// begin shows a new secret.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request, status int, text string) error {
	who, _ := page.Principal(r)
	secret, err := p.o.TwoStep.BeginTwoStep(r.Context(), who.User)
	if core.KindOf(err) == core.Conflict { // it is on: in another tab
		return p.frame.Away(w, r, ownPath)
	}
	if err != nil {
		return err
	}
	return p.showSetUp(w, r, status, setUpBody{Error: text, SetUp: account.SetUp(secret), Secret: secret})
}

func (p *Pages) showSetUp(w http.ResponseWriter, r *http.Request, status int, b setUpBody) (err error) {
	who, _ := page.Principal(r)
	b.CSRF, b.Name = page.OwnToken(r), who.Name
	if b.Secret != "" {
		if b.QR, err = drawing(totp.URI("Gatehouse", who.Name, b.Secret)); err != nil {
			return err
		}
		b.Secret = grouped(b.Secret)
	}
	return p.frame.Show(w, r, status, "twostep", page.View{Title: "Two-step sign-in", In: "account", Still: true, Body: b})
}

// grouped returns a secret as users type it.
func grouped(secret string) string {
	var b strings.Builder
	for i, c := range secret {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// quiet is the white margin of a QR code, in squares.
const quiet = 4

// drawing returns a QR code as an inline SVG: black on white in both themes, as cameras expect.
func drawing(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("QR code: %w", err)
	}
	var b strings.Builder
	side := code.Size + 2*quiet
	fmt.Fprintf(&b, `<svg class="qr" viewBox="0 0 %d %d" role="img" aria-label="QR code for the app" shape-rendering="crispEdges"><rect width="%d" height="%d" fill="#fff"/><path fill="#000" d="`, side, side, side, side)
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x+quiet, y+quiet, run, run)
				x += run
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()), nil // of numbers alone
}

// confirm turns it on with the password and a code of the app, and shows the recovery codes. The
// secret is shown again for a wrong code only: a stolen session, which has no password, never reads it.
func (p *Pages) confirm(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	b := setUpBody{SetUp: r.PostFormValue("setup")}
	err := p.o.Password(r, r.PostFormValue("password"))
	var codes []string
	if err == nil {
		codes, err = p.o.TwoStep.ConfirmTwoStep(r.Context(), who.User, b.SetUp, r.PostFormValue("code"), who.Actor())
	}
	if err == nil {
		return p.showOwn(w, r, http.StatusOK, ownBody{Recovery: codes})
	}
	status, ok := page.Refusal(w, err)
	if !ok {
		return err
	}
	b.Error = page.Sentence(core.TextOf(err))
	if core.KindOf(err) == core.Conflict {
		return p.begin(w, r, status, b.Error)
	}
	if wrong, ok := errors.AsType[*account.WrongCode](err); ok {
		b.Secret = wrong.Secret
	}
	return p.showSetUp(w, r, status, b)
}

// renew shows new recovery codes, for the password.
func (p *Pages) renew(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	err := p.o.Password(r, r.PostFormValue("password"))
	var b ownBody
	if err == nil {
		b.Recovery, err = p.o.TwoStep.RenewRecovery(r.Context(), who.User, who.Actor())
	}
	return p.answered(w, r, b, err)
}

// off turns it off, for the password.
func (p *Pages) off(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	err := p.o.Password(r, r.PostFormValue("password"))
	if err == nil {
		if err = p.o.TwoStep.EndTwoStep(r.Context(), who.User, who.Actor()); err == nil {
			p.frame.SetFlash(w, r, page.Good("Two-step sign-in is off: your password alone signs you in."))
			return p.frame.Away(w, r, ownPath)
		}
	}
	return p.answered(w, r, ownBody{}, err)
}

// answered shows the own page with what came of a form, or why nothing did.
func (p *Pages) answered(w http.ResponseWriter, r *http.Request, b ownBody, err error) error {
	if err == nil {
		return p.showOwn(w, r, http.StatusOK, b)
	}
	status, ok := page.Refusal(w, err)
	if !ok {
		return err
	}
	b.Error = page.Sentence(core.TextOf(err))
	return p.showOwn(w, r, status, b)
}

// offForAnother is for who lost their phone and their recovery codes.
func (p *Pages) offForAnother(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, listPath, err
	}
	return page.Good("Two-step sign-in is off for " + p.nameOf(r.Context(), user) + ": the password alone signs in."), listPath, p.o.TwoStep.EndTwoStep(r.Context(), user, by)
}
