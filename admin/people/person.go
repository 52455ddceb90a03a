package people

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
	"gatehouse/web/auth"
)

type personBody struct {
	person
	Broken                                 string
	Rows                                   page.Part[[]accessView]
	Where                                  []page.Choice // where else they can be given access
	Levels                                 []core.Trust
	Ends                                   []end
	Spending                               page.Part[spendingView]
	Keys                                   page.Part[[]auth.KeyRow]
	HasTerms, HasBlocks, HasMoney, HasData bool
	Forget, Export                         *page.Job
	Gone                                   bool // erased just now
}

// An accessView is an access with what can be chosen for it.
type accessView struct {
	core.AccessRow
	Group  string // its name, where that is known
	Levels []level
	Ends   []end
}

type spendingView struct {
	usage.Standing
	Amount          string // of their own, as it is written into the field
	Mode            string // general, off, own
	Monthly         string // of a month, as it is written into the field
	Part, MonthPart int    // of today's budget and of the month's, in percent; -1 without one
}

// personEnds returns the choices of how long an access is valid.
func personEnds(keep time.Time) (list []end) {
	if !keep.IsZero() {
		list = append(list, end{"keep", "As it is", true})
	}
	for i, e := range ends {
		list = append(list, end{e.value, e.label, keep.IsZero() && i == 0})
	}
	return list
}

func (p *personPages) personPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	user, err := page.Number(r, "user")
	if err != nil {
		return err
	}
	b := personBody{Levels: []core.Trust{core.Sandboxed, core.Vault}, Ends: personEnds(time.Time{}),
		HasTerms: p.o.Terms != nil, HasBlocks: p.o.Blocks != nil, HasMoney: p.o.Spending != nil, HasData: p.o.PersonalData != nil && user != core.Operator}
	every := b.jobs(p, user)
	row, err := p.o.Persons.PersonOf(ctx, user)
	switch {
	case core.KindOf(err) == core.NotFound && b.Forget != nil && b.Forget.Error == "":
		b.Gone = !b.Forget.Running
		row = people.Person{User: user}
	case core.KindOf(err) == core.NotFound:
		return err
	case err != nil:
		b.Broken = page.Load(ctx, p.frame, "This person", func(context.Context) (int, error) { return 0, err }).Broken
	}
	b.person = personOf(row, nil)
	b.User = user
	p.fill(ctx, &b, page.Token(r))
	title := b.Name
	if title == "" || b.Gone {
		title = "A person"
	}
	return p.frame.Show(w, r, http.StatusOK, "person", page.View{Title: title, In: "people", Topics: []core.Topic{core.TopicPeople, core.TopicPairing}, Every: every, Body: b})
}

// fill reads what the page shows of a user.
func (p *personPages) fill(ctx context.Context, b *personBody, token string) {
	var blocks []blockView
	if p.o.Blocks != nil {
		list := page.Load(ctx, p.frame, "The list of blocked people", p.blocks)
		blocks, b.Broken = list.Value, cmp.Or(b.Broken, list.Broken)
	}
	b.Rows = page.Load(ctx, p.frame, "What they may do", func(ctx context.Context) (out []accessView, err error) {
		rows, err := p.o.Persons.AccessOf(ctx, b.User)
		for _, a := range rows {
			v := accessView{AccessRow: a, Ends: personEnds(a.ExpiresAt)}
			for _, t := range b.Levels {
				v.Levels = append(v.Levels, level{Trust: t, Checked: t == a.Trust})
			}
			out = append(out, v)
		}
		b.person = personOf(b.Person, rows)
		b.Revokes = b.Revokes[:min(len(b.Revokes), maxRows)]
		b.More = page.Cut(&out, maxOwnRows)
		return out, err
	})
	b.Keys = page.Load(ctx, p.frame, "Their API keys", func(ctx context.Context) ([]auth.KeyRow, error) { return p.o.Keys(ctx, b.User) })
	b.Alone = true
	b.complete(token, blocks, p.seen(ctx, b.person))
	var groups []places.Row
	if p.o.Places != nil {
		groups = page.Load(ctx, p.frame, "The list of groups", p.o.Places.Places).Value
	}
	for i, a := range b.Rows.Value {
		for _, g := range groups {
			if g.Bot == a.Bot && g.Place == a.Place {
				b.Rows.Value[i].Group = g.Name
			}
		}
	}
	if b.HasTerms {
		b.Where = p.elsewhere(b.Person, groups)
	}
	if b.HasMoney {
		b.Spending = page.Load(ctx, p.frame, "What they use", func(ctx context.Context) (spendingView, error) {
			s, err := p.o.Spending.Standing(ctx, b.User)
			return spendingOf(s), err
		})
	}
}

func spendingOf(s usage.Standing) spendingView {
	v := spendingView{Standing: s, Mode: "general", Part: partOf(s.Today, s.Budget), Monthly: amountOf(s.MonthBudget), MonthPart: partOf(s.Month, s.MonthBudget)}
	switch {
	case s.Own && s.Budget == (usage.Budget{}):
		v.Mode = "off"
	case s.Own:
		v.Mode, v.Amount = "own", amountOf(s.Budget)
	}
	return v
}

// partOf returns how much of a budget is used, in percent; -1 without one.
func partOf(used, b usage.Budget) int {
	switch {
	case b.MicroUSD > 0:
		return int(100 * used.MicroUSD / b.MicroUSD)
	case b.Tokens > 0:
		return int(100 * used.Tokens / b.Tokens)
	}
	return -1
}

// amountOf returns a budget as its field takes it.
func amountOf(b usage.Budget) string {
	switch {
	case b.MicroUSD > 0:
		return "$" + strconv.FormatFloat(float64(b.MicroUSD)/1e6, 'f', -1, 64)
	case b.Tokens > 0:
		return strconv.FormatInt(b.Tokens, 10)
	}
	return ""
}

// elsewhere returns the bots and enabled groups that this person can be given
// access to: "bot place", the place empty for direct messages.
func (p *personPages) elsewhere(x people.Person, places []places.Row) (out []page.Choice) {
	for _, s := range p.bots() {
		for _, a := range x.Accounts {
			if a.Platform == s.Platform {
				out = append(out, page.Choice{Value: s.Bot + " ", Label: s.Bot + ": direct messages"})
				break
			}
		}
	}
	dms := out
	for _, g := range places {
		for _, c := range dms {
			if g.Enabled && c.Value == g.Bot+" " && len(out) < maxPlaces+len(dms) {
				out = append(out, page.Choice{Value: g.Bot + " " + g.Place, Label: g.Bot + ": group " + page.DisplayName(g.Name)})
			}
		}
	}
	return out
}

// ---- budget, export, forgetting

// jobs sets the state of the user's operations and returns how often the page
// refetches itself: each second while one runs.
func (b *personBody) jobs(p *personPages, user int64) (every int) {
	if p.o.PersonalData == nil {
		return 0
	}
	for kind, to := range map[string]**page.Job{"forget": &b.Forget, "export": &b.Export} {
		if j, ok := p.o.PersonalData.Job(kind, user); ok {
			*to = &j
			if j.Running {
				every = 1
			}
		}
	}
	return every
}

func (p *personPages) setBudget(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	said, amount := "", ""
	switch r.PostFormValue("mode") {
	case "general":
		said = "Their daily limits are the default ones."
	case "off":
		amount, said = "off", "They may use without bound; budgets of the bot and the gateway still hold."
	case "own":
		amount = strings.TrimSpace(r.PostFormValue("amount"))
		said = "Their budget is " + amount + " a day. It holds from the next call on."
		if amount == "" || amount == "off" {
			err = core.Errorf(core.Invalid, "amount: give tokens (200k) or dollars ($2)")
		}
	default:
		err = core.Errorf(core.Invalid, "budget: choose one of the three")
	}
	month := strings.TrimSpace(r.PostFormValue("month"))
	if month != "" && month != "off" {
		said += " In a month: " + month + "."
	}
	if err == nil {
		err = p.o.Spending.SetBudget(r.Context(), user, amount, month, by)
	}
	return page.Good(said), personPath(user), err
}

// forgetWord is what the operator types to confirm an erasure.
const forgetWord = "forget"

func (p *personPages) forget(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	if !strings.EqualFold(strings.TrimSpace(r.PostFormValue("sure")), forgetWord) {
		return page.Flash{}, personPath(user), core.Errorf(core.Invalid, "confirmation: type %q to confirm; nothing was changed", forgetWord)
	}
	return page.Note("Forgetting has begun. This page shows how far it is."), personPath(user), p.o.PersonalData.Forget(r.Context(), user, by)
}

func (p *personPages) export(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	return page.Note("The export is being made. This page offers it when it is ready."), personPath(user), p.o.PersonalData.Export(r.Context(), user, by)
}

// exported sends the file of an export.
func (p *personPages) exported(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	user, err := page.Number(r, "user")
	if err != nil {
		return err
	}
	f, at, err := p.o.PersonalData.OpenExport(r.Context(), user, who.Actor())
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="person-%d.zip"`, user))
	w.Header().Set("Content-Type", "application/zip")
	http.ServeContent(page.Slow(w), r, "", at, f)
	return nil
}

func budgetText(b usage.Budget) string {
	switch {
	case b.MicroUSD > 0:
		return core.Dollars(b.MicroUSD)
	case b.Tokens > 0:
		return page.Grouped(b.Tokens) + " tokens"
	}
	return "no bound"
}

// usedText returns tokens and cost, where they are known.
func usedText(b usage.Budget) string {
	if b.Tokens == 0 && b.MicroUSD == 0 {
		return "nothing"
	}
	text := page.Grouped(b.Tokens) + " tokens"
	if b.MicroUSD > 0 {
		text += ", " + core.Dollars(b.MicroUSD)
	}
	return text
}
