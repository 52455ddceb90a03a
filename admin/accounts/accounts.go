// Package accounts is the pages about the panel's accounts: who may sign in, in which role, from
// where they are signed in now; and the page of the account that is signed in.
package accounts

import (
	"context"
	"embed"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/account"
	"gatehouse/web/auth"
)

const (
	listPath = "/admin/accounts"
	ownPath  = "/admin/account"
)

type (
	// Accounts are the accounts (account.Store).
	Accounts interface {
		List(ctx context.Context) ([]account.Account, error)
		Create(ctx context.Context, name, role string, by core.Actor) (account.Account, string, error)
		Reset(ctx context.Context, user int64, by core.Actor) (oneTime string, err error)
		Remove(ctx context.Context, user int64, by core.Actor) error
	}
	// Terms change accounts (account.Store).
	Terms interface {
		Rename(ctx context.Context, user int64, name string, by core.Actor) error
		SetRole(ctx context.Context, user int64, role string, by core.Actor) error
		EndSession(ctx context.Context, user int64, id string, by core.Actor) (int, error)
	}
	// Sessions returns the sessions of user, or of all for 0 (auth.Admins.Sessions).
	Sessions func(ctx context.Context, user int64) ([]auth.SessionRow, error)
)

// Options for New. All are needed; without them there are no such pages.
type Options struct {
	Accounts Accounts
	Terms    Terms
	Sessions Sessions
	TwoStep  TwoStep
	// Password checks the password of who is signed in again (auth.Admins.CheckPassword).
	Password func(r *http.Request, password string) error
}

//go:embed templates/*.html
var files embed.FS

// Pages are the pages about accounts.
type Pages struct {
	frame *page.Frame
	o     Options
}

// New adds the pages to f.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{frame: f, o: o}
	f.Templates(files, nil, "sessions")
	if o.Accounts == nil || o.Terms == nil || o.Sessions == nil || o.TwoStep == nil || o.Password == nil {
		return p
	}
	f.Personal(page.Item{Path: ownPath, Label: "Your account"}, page.Item{Path: listPath, Label: "Accounts"})
	f.Page("GET "+listPath, p.list)
	f.Page("POST "+listPath, p.create)
	f.Page("POST "+listPath+"/{user}/reset", p.reset)
	f.Post("POST "+listPath+"/{user}/change", p.change)
	f.Post("POST "+listPath+"/{user}/remove", p.remove)
	f.Post("POST "+listPath+"/{user}/sessions/end", p.endSession)
	f.Own("GET "+ownPath, p.own)
	f.OwnPost("POST "+ownPath+"/sessions/end", p.endOwn)
	p.twoStepRoutes()
	return p
}

type listBody struct {
	CSRF     string
	Accounts page.Part[[]accountRow]
	Sessions page.Part[[]sessionRow]
	Made     string // whose one-time password this is
	OneTime  string
	Error    string
	Name     string // of the form, before the error
}

// An accountRow is an account, and what may be done to it by who looks.
type accountRow struct {
	account.Account
	Self       bool // who looks
	Changeable bool
	Sessions   int
}

// Standing returns the role as it is shown.
func (a accountRow) Standing() string {
	switch {
	case a.Owner():
		return "Owner"
	case a.Role == auth.RoleAdmin:
		return "Admin"
	}
	return "Viewer"
}

// A sessionRow is a session, and whose it is.
type sessionRow struct {
	auth.SessionRow
	Name       string
	Current    bool // the one that looks
	Changeable bool
	End        string // the address that ends it
	CSRF       string
}

// Browser returns what a session's browser states it is, in short.
func (s sessionRow) Browser() string {
	name, on := "", ""
	for _, b := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}} {
		if name == "" && strings.Contains(s.Agent, b[0]) {
			name = b[1]
		}
	}
	for _, o := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"Linux", "Linux"}} {
		if on == "" && strings.Contains(s.Agent, o[0]) {
			on = o[1]
		}
	}
	switch {
	case name == "" && s.Agent == "":
		return "Unknown browser"
	case name == "":
		return core.CutRunes(s.Agent, 40)
	case on == "":
		return name
	}
	return name + " on " + on
}

func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	return p.showList(w, r, http.StatusOK, listBody{})
}

func (p *Pages) showList(w http.ResponseWriter, r *http.Request, status int, b listBody) error {
	ctx := r.Context()
	who, _ := page.Principal(r)
	b.CSRF = page.Token(r)
	may := func(user int64) bool { return user != core.Operator || who.User == core.Operator }
	all := page.Load(ctx, p.frame, "The list of accounts", p.o.Accounts.List)
	names, count := map[int64]string{}, map[int64]int{}
	for _, a := range all.Value {
		names[a.User] = a.Name
	}
	b.Sessions = page.Load(ctx, p.frame, "The list of sessions", func(ctx context.Context) (rows []sessionRow, err error) {
		list, err := p.o.Sessions(ctx, 0)
		for _, s := range list {
			if count[s.User]++; names[s.User] != "" {
				rows = append(rows, sessionRow{SessionRow: s, Name: names[s.User], Current: s.Of(who), Changeable: may(s.User), End: p.address(s.User, "sessions/end"), CSRF: b.CSRF})
			}
		}
		return rows, err
	})
	b.Accounts.Broken = all.Broken
	for _, a := range all.Value {
		b.Accounts.Value = append(b.Accounts.Value, accountRow{Account: a, Self: a.User == who.User, Changeable: may(a.User), Sessions: count[a.User]})
	}
	return p.frame.Show(w, r, status, "accounts", page.View{Title: "Accounts", In: "accounts", Still: r.Method == http.MethodPost, Topics: []core.Topic{core.TopicAccounts}, Body: b})
}

// create answers with the page itself: the password is in no cookie and no address.
func (p *Pages) create(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	b := listBody{Name: strings.TrimSpace(r.PostFormValue("name"))}
	a, once, err := p.o.Accounts.Create(r.Context(), b.Name, r.PostFormValue("role"), who.Actor())
	return p.shown(w, r, b, a.Name, once, err)
}

func (p *Pages) reset(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	user, err := page.Number(r, "user")
	if err != nil {
		return err
	}
	once, err := p.o.Accounts.Reset(r.Context(), user, who.Actor())
	name := ""
	if err == nil {
		name = p.nameOf(r.Context(), user)
	}
	return p.shown(w, r, listBody{}, name, once, err)
}

// shown answers with the list and a one-time password, or why there is none.
func (p *Pages) shown(w http.ResponseWriter, r *http.Request, b listBody, name, once string, err error) error {
	if err == nil {
		b.Made, b.OneTime, b.Name = name, once, ""
		return p.showList(w, r, http.StatusOK, b)
	}
	status, ok := page.Refusal(w, err)
	if !ok {
		return err
	}
	b.Error = page.Sentence(core.TextOf(err))
	return p.showList(w, r, status, b)
}

// nameOf returns an account's name for a sentence.
func (p *Pages) nameOf(ctx context.Context, user int64) string {
	for _, a := range page.Load(ctx, p.frame, "The list of accounts", p.o.Accounts.List).Value {
		if a.User == user {
			return a.Name
		}
	}
	return "The account"
}

// change gives an account the name and the role of the form.
func (p *Pages) change(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, listPath, err
	}
	name := strings.TrimSpace(r.PostFormValue("name"))
	if role := r.PostFormValue("role"); role != "" {
		err = p.o.Terms.SetRole(r.Context(), user, role, by)
	}
	if err == nil && name != "" {
		err = p.o.Terms.Rename(r.Context(), user, name, by)
	}
	return page.Good(name + " is changed. It holds from the next click on."), listPath, err
}

func (p *Pages) remove(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, listPath, err
	}
	name := p.nameOf(r.Context(), user)
	return page.Good(name + " is removed: their sessions, API keys and running answers have ended."), listPath, p.o.Accounts.Remove(r.Context(), user, by)
}

func (p *Pages) endSession(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, listPath, err
	}
	_, err = p.o.Terms.EndSession(r.Context(), user, r.PostFormValue("id"), by)
	return page.Good("Signed out there."), listPath, err
}

func (p *Pages) address(user int64, what string) string {
	return listPath + "/" + itoa(user) + "/" + what
}
