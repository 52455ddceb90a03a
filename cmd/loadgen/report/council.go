package report

import "fmt"

// Council is what a turn adds to the time of its models: of each stage the slowest
// member's.
type Council struct {
	Members int         `json:"members"`
	Ratings int         `json:"ratings"` // of all answers of the others, one by each member
	Single  Percentiles `json:"single"`  // a turn of one member alone
	All     Percentiles `json:"all"`     // a turn of the council at high
	Own     float64     `json:"own_ms"`  // the council's: p50 of its turn less that of a single member's
}

// ownTime is what a council may take beside its models, in milliseconds.
func (c *Council) ownTime() float64 {
	if c.Members < 9 {
		return 5
	}
	return 50
}

// councilGoals judges councils.
func (b *Report) councilGoals() (out []line) {
	for _, c := range b.Councils {
		what := fmt.Sprintf("a council of %d with %d ratings: added to its slowest members' time, beside what a turn of one adds, p50", c.Members, c.Ratings)
		out = append(out, atMost(what, c.Own, c.ownTime(), "ms", short(c.Single.P50)+" ms"))
	}
	return out
}

func (b *Report) councilRows(row func(string, Percentiles)) {
	for _, c := range b.Councils {
		row(fmt.Sprintf("added to the models' time, council of %d", c.Members), c.All)
		row(fmt.Sprintf("added to the model's time, one of the %d alone", c.Members), c.Single)
	}
}
