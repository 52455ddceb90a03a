package accounts

import (
	"context"
	"net/http"
	"strconv"

	"gatehouse/admin/page"
	"gatehouse/core"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

type ownBody struct {
	CSRF     string
	Account  page.Part[accountRow]
	Sessions page.Part[[]sessionRow]
	Recovery []string // shown once
	Error    string
}

func (p *Pages) own(w http.ResponseWriter, r *http.Request) error {
	return p.showOwn(w, r, http.StatusOK, ownBody{})
}

func (p *Pages) showOwn(w http.ResponseWriter, r *http.Request, status int, b ownBody) error {
	ctx := r.Context()
	who, _ := page.Principal(r)
	b.CSRF = page.OwnToken(r)
	b.Account = page.Load(ctx, p.frame, "Your account", func(ctx context.Context) (row accountRow, err error) {
		list, err := p.o.Accounts.List(ctx)
		for _, a := range list {
			if a.User == who.User {
				row = accountRow{Account: a, Self: true}
			}
		}
		return row, err
	})
	b.Sessions = page.Load(ctx, p.frame, "The list of sessions", func(ctx context.Context) (rows []sessionRow, err error) {
		list, err := p.o.Sessions(ctx, who.User)
		for _, s := range list {
			rows = append(rows, sessionRow{SessionRow: s, Current: s.Of(who), Changeable: true, End: ownPath + "/sessions/end", CSRF: b.CSRF})
		}
		return rows, err
	})
	return p.frame.Show(w, r, status, "account", page.View{Title: "Your account", In: "account", Still: r.Method == http.MethodPost, Topics: []core.Topic{core.TopicAccounts}, Body: b})
}

// endOwn ends another session of the account that is signed in.
func (p *Pages) endOwn(r *http.Request, by core.Actor) (page.Flash, string, error) {
	id := r.PostFormValue("id")
	if id == "" {
		return page.Flash{}, ownPath, core.Errorf(core.Invalid, "choose a session")
	}
	_, err := p.o.Terms.EndSession(r.Context(), by.User, id, by)
	return page.Good("Signed out there."), ownPath, err
}
