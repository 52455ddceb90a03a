package settings

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/auth"
)

const (
	maxKeyRows = 50
	// newKeyPath shows the form for a key, rotatePath the forms for new secrets.
	newKeyPath = settingsPath + "/" + secAccess + "?open=new#newkey"
	rotatePath = settingsPath + "/" + secAccess + "?open=secrets#keys-h"
)

// keysPart are the API keys.
type keysPart struct {
	There   bool
	Rows    page.Part[[]keyView]
	Open    string // "new" or "secrets": what is open when the page comes
	Scopes  []string
	Trusts  []core.Trust
	Ends    []end
	Graces  []end  // how long an old secret stays valid
	Secret  string // of the key just made or rotated; shown once
	Rotated bool
	Label   string
	Error   string // why none was made
}

// An end is one choice of how long a key holds.
type end struct {
	Value, Label string
	Checked      bool
}

type keyView struct {
	auth.KeyRow
	Display string
	Over    bool
	Old     bool // the secret before the present one is valid, too
}

// keysOf reads the keys into b.
func (p *valuePages) keysOf(r *http.Request, b *keysPart) {
	if p.o.Keys == nil {
		return
	}
	now := p.frame.Clock.Now()
	b.There, b.Open, b.Scopes, b.Trusts = true, r.URL.Query().Get("open"), auth.Scopes(), []core.Trust{core.Sandboxed, core.Vault, core.Full}
	if b.Error != "" && !b.Rotated {
		b.Open = "new"
	}
	b.Ends = []end{{"30d", "30 days", false}, {"90d", "90 days", true}, {"365d", "1 year", false}, {"", "No end", false}}
	b.Graces = []end{{"", "at once", true}, {"1h", "in 1 hour", false}, {"24h", "in 1 day", false}, {"168h", "in 7 days", false}}
	names := p.links.Names(r.Context())
	b.Rows = page.Load(r.Context(), p.frame, "The list of keys", func(ctx context.Context) (out []keyView, err error) {
		rows, err := p.o.Keys.List(ctx, maxKeyRows)
		for _, k := range rows {
			out = append(out, keyView{k, names.Of(k.User), !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now), k.OldExpiresAt.After(now)})
		}
		return out, err
	})
}

// newKey answers with the page: the secret is in no cookie and no address.
func (p *valuePages) newKey(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	n := auth.NewKey{Label: r.PostFormValue("label"), User: who.User, Scopes: r.PostForm["scope"]}
	var err error
	if n.Trust, err = core.ParseTrust(r.PostFormValue("trust")); err == nil {
		if days, bad := strconv.Atoi(strings.TrimSuffix(r.PostFormValue("end"), "d")); bad == nil && days > 0 && days <= 3650 {
			n.ExpiresAt = p.frame.Clock.Now().Add(time.Duration(days) * 24 * time.Hour)
		} else if r.PostFormValue("end") != "" {
			err = core.Errorf(core.Invalid, "that end was not offered")
		}
	}
	if err == nil {
		err = mayHave(who, n.Trust)
	}
	b := keysPart{Label: n.Label}
	if err == nil {
		b.Secret, _, err = p.o.Keys.Create(r.Context(), n, who.Actor())
	}
	return p.showKeys(w, r, b, err)
}

// mayHave refuses accounts of others than the owner keys above trust vault.
func mayHave(who auth.Principal, level core.Trust) error {
	if level > core.Vault && who.User != core.Operator {
		return core.Errorf(core.Denied, "only the owner can make or change a key with trust %s", level)
	}
	return nil
}

// showKeys shows b, or why there is no secret.
func (p *valuePages) showKeys(w http.ResponseWriter, r *http.Request, b keysPart, err error) error {
	status := http.StatusOK
	if err != nil {
		refused, ok := page.Refusal(w, err)
		if !ok {
			return err
		}
		status, b.Error = refused, page.Sentence(core.TextOf(err))
	}
	return p.showSection(w, r, status, secAccess, sectionBody{Keys: b})
}

// rotateKey answers with the page, as newKey does.
func (p *valuePages) rotateKey(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	o := auth.KeyRotation{May: func(was auth.KeyRow) error { return mayHave(who, was.Trust) }}
	var err error
	if given := r.PostFormValue("grace"); given != "" {
		var grace time.Duration
		if grace, err = time.ParseDuration(given); err == nil {
			o.OldExpiresAt = p.frame.Clock.Now().Add(grace)
		} else {
			err = core.Errorf(core.Invalid, "that end of the old secret was not offered")
		}
	}
	b := keysPart{Rotated: true}
	if err == nil {
		var row auth.KeyRow
		b.Secret, row, err = p.o.Keys.Rotate(r.Context(), r.PathValue("id"), o, who.Actor())
		b.Label = row.Label
	}
	return p.showKeys(w, r, b, err)
}

func (p *valuePages) changeKey(r *http.Request, by core.Actor) (page.Flash, string, error) {
	label, scopes := r.PostFormValue("label"), append([]string{}, r.PostForm["scope"]...) // no box ticked is no scope
	who, _ := page.Principal(r)
	may := func(was auth.KeyRow, _ []string) error { return mayHave(who, was.Trust) }
	row, err := p.o.Keys.Change(r.Context(), r.PathValue("id"), auth.KeyChange{Label: &label, Scopes: &scopes, May: may}, by)
	now := "nothing"
	if len(row.Scopes) > 0 {
		now = strings.Join(row.Scopes, ", ")
	}
	return page.Good("The key “" + row.Label + "” may from now on: " + now + "."), pathOf(secAccess) + "#keys-h", err
}

func (k keyView) May(scope string) bool { return slices.Contains(k.Scopes, scope) }

func (p *valuePages) revokeKey(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The key is revoked: what it asks for is refused, and what it has running ends."), pathOf(secAccess) + "#keys-h", p.o.Keys.Revoke(r.Context(), r.PathValue("id"), by)
}
