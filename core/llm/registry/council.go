package registry

import (
	"context"
	"iter"
	"slices"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// A Sitting is the models of a council.
type Sitting struct {
	Members []llm.Model // in the order of the setting; none: there is no council
	Judge   llm.Model   // nil: a member judges
}

// A seat has the name of a council's level among the models. Turns that name it are
// answered by the council; what else is asked of it, its first members answer.
type seat struct {
	name    string
	members []llm.Model
	first   llm.Model
}

// About is what all members can do.
func (s *seat) About() llm.About {
	about := s.members[0].About()
	for _, m := range s.members[1:] {
		a := m.About()
		about.Images, about.Documents = about.Images && a.Images, about.Documents && a.Documents
		if a.Window > 0 && (about.Window == 0 || a.Window < about.Window) {
			about.Window = a.Window
		}
	}
	about.Name, about.PricedAs, about.Search = s.name, s.members[0].About().Priced(), false
	return about
}

func (s *seat) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return s.first.Reply(ctx, req)
}

// seats adds the council of c and its levels.
func (m *Models) seats(c Config, o Options) error {
	if len(c.Council) == 0 {
		return nil
	}
	for _, name := range slices.Concat(c.Council, judgeOf(c)) {
		model, known := m.byName[name]
		if !known {
			var err error
			if model, err = m.add(c, name, o); err != nil {
				return err
			}
			m.listed[name] = true
		}
		if slices.Contains(c.Council, name) {
			m.Sitting.Members = append(m.Sitting.Members, model)
		}
		if name == c.Judge {
			m.Sitting.Judge = model
		}
	}
	first := llm.Fallback(m.Sitting.Members...)
	for _, level := range core.AccuracyLevels() {
		name := core.CouncilModel(level)
		m.byName[name], m.listed[name], m.Names = &seat{name, m.Sitting.Members, first}, true, append(m.Names, name)
	}
	const balanced = "council/balanced" // another name of it
	m.byName[balanced], m.listed[balanced] = m.byName[core.CouncilModel("balanced")], true
	return nil
}

func judgeOf(c Config) []string {
	if c.Judge == "" || slices.Contains(c.Council, c.Judge) {
		return nil
	}
	return []string{c.Judge}
}

// seated returns the council's level of that name, which a setting names.
func (m *Models) seated(name string) (llm.Model, error) {
	s := m.byName[name]
	if s == nil {
		return nil, core.Errorf(core.Invalid, "GATEHOUSE_MODEL: %s needs GATEHOUSE_COUNCIL", name)
	}
	return s, nil
}

// forGuests returns the model that answers guests where no model is set for them:
// never the council.
func (m *Models) forGuests() llm.Model {
	if core.CouncilLevel(m.Default()) != "" {
		return llm.Fallback(m.Sitting.Members...)
	}
	return m.First
}
