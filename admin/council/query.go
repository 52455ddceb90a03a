package council

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"gatehouse/admin/markdown"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/council/ledger"
)

const (
	maxText = 6000 // characters of an answer to pick; the API has all of it
	older   = 24 * time.Hour
)

type queryBody struct {
	ledger.View
	CSRF  string
	Asker bool // the account is the user's who asked
	Cards []option
}

// An option is the answers that say the same, and can be picked.
type option struct {
	N      int
	Model  string   // whose answer is shown, and is picked
	Others []string // that say the same
	HTML   template.HTML
	Cut    bool
	Picked bool
	Shown  bool // as the answer
}

// Open reports whether one can be picked.
func (b *queryBody) Open() bool { return b.PickUntil != nil }

// query shows GET /admin/council/queries/{id}: how a question was answered.
func (p *Pages) query(w http.ResponseWriter, r *http.Request) error {
	v, err := p.o.Store.Query(r.Context(), 0, r.PathValue("id"))
	if core.KindOf(err) == core.NotFound {
		return core.Errorf(core.NotFound, "there is no such question, or it was deleted after 90 days")
	}
	if err != nil {
		return err
	}
	who, _ := page.Principal(r)
	b := queryBody{View: v, CSRF: page.Token(r), Asker: v.User == who.User, Cards: options(&v)}
	return p.frame.Show(w, r, http.StatusOK, "councilquery", page.View{Title: "Under the hood", In: "models", Body: &b})
}

// options returns the answers to a dispute, one for each claim, the best rated first: a pick
// does not change their order.
func options(v *ledger.View) (list []option) {
	runs := map[string]ledger.RunView{}
	for _, run := range v.Runs {
		if run.Round == ledger.RoundAnswer {
			runs[run.Model] = run
		}
	}
	sorted := slices.Clone(v.Options)
	core.Sort(sorted, func(a, b ledger.Option) int {
		x, y := runs[a.Model], runs[b.Model]
		return cmp.Or(cmp.Compare(value(y.Welfare), value(x.Welfare)), cmp.Compare(value(y.Utility), value(x.Utility)), cmp.Compare(x.ID, y.ID))
	})
	for _, o := range sorted {
		claim := runs[o.Model].Claim
		i := slices.IndexFunc(list, func(x option) bool { return claim != 0 && runs[x.Model].Claim == claim })
		if i >= 0 {
			list[i].Others = append(list[i].Others, o.Model)
			list[i].Picked = list[i].Picked || o.Model == v.Picked
			list[i].Shown = list[i].Shown || o.Model == v.Winner
			continue
		}
		text := core.CutRunes(o.Text, maxText)
		list = append(list, option{N: len(list) + 1, Model: o.Model, HTML: markdown.HTML(text), Cut: text != o.Text, Picked: o.Model == v.Picked, Shown: o.Model == v.Winner})
	}
	return list
}

func value(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// pick handles the button of an option. Who may pick is the ledger's decision.
func (p *Pages) pick(r *http.Request, by core.Actor) (page.Flash, string, error) {
	id, model := r.PathValue("id"), r.PostFormValue("model")
	_, err := p.o.Pick(r.Context(), by.User, id, model)
	return page.Good("You picked the answer of " + core.CutRunes(model, 100) + "."), queryURL(id), err
}

// Links returns links to how answers of councils in a conversation came about, by run, for
// runs since a time. What cannot be read is logged.
func (p *Pages) Links(ctx context.Context, conversation string, since time.Time) map[string]template.HTML {
	links := map[string]template.HTML{}
	if p.o.Store == nil {
		return links
	}
	f := ledger.Filter{Conversation: conversation, Limit: 200}
	for {
		list, next, err := p.o.Store.Queries(ctx, f)
		if err != nil {
			p.frame.Log.WarnContext(ctx, "links to answers of councils", "session", conversation, "err", err)
			return links
		}
		for _, v := range list {
			links[v.ID] = link(&v)
		}
		if next == "" || list[len(list)-1].Created.Before(since.Add(-older)) { // a run may wait long for its first answer
			return links
		}
		f.Cursor = next
	}
}

func link(v *ledger.View) template.HTML {
	to := template.HTMLEscapeString(queryURL(v.ID))
	if v.PickUntil != nil {
		return template.HTML(fmt.Sprintf(`<a href="%s#options">Under the hood: disputed</a>`, to))
	}
	return template.HTML(fmt.Sprintf(`<a href="%s">Under the hood</a>`, to))
}
