package schedule

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
)

// List returns the agents with how they are, by name, and the files that cannot be used.
func (s *Scheduler) List(ctx context.Context) ([]daily.Line, []daily.Fault, error) {
	set, err := s.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("read the files of daily agents: %w", err)
	}
	lines := make([]daily.Line, len(set.Agents))
	for i, a := range set.Agents {
		if lines[i], err = s.line(ctx, a); err != nil {
			return nil, nil, err
		}
	}
	return lines, set.Faults, nil
}

// Line returns an agent with how it is, as One does.
func (s *Scheduler) Line(ctx context.Context, name string) (daily.Line, error) {
	a, err := s.One(name)
	if err != nil {
		return daily.Line{}, err
	}
	return s.line(ctx, a)
}

func (s *Scheduler) line(ctx context.Context, a daily.Agent) (daily.Line, error) {
	l := daily.Line{Agent: a}
	if a.Enabled {
		l.Next = a.Rule.Next(s.o.Clock.Now())
	}
	var rows []runRow
	err := s.o.DB.Select(ctx, &rows, runColumns+`WHERE agent = $1 ORDER BY created DESC, n DESC LIMIT 1`, a.Name)
	if err != nil {
		return daily.Line{}, fmt.Errorf("runs of a daily agent: %w", err)
	}
	if len(rows) > 0 {
		last := rows[0].value()
		l.Last = &last
	}
	return l, nil
}

// Switch has an agent run by its schedule, or not, by a line of its file.
func (s *Scheduler) Switch(ctx context.Context, name string, on bool, by core.Actor) error {
	if err := s.Enable(name, on); err != nil {
		return err
	}
	s.Wake()
	action := "daily.disable"
	if on {
		action = "daily.enable"
	}
	return s.o.DB.Audit(ctx, by, action, name, nil)
}

// Add writes a sample into the vault.
func (s *Scheduler) Add(ctx context.Context, name string, by core.Actor) error {
	if err := s.AddSample(name); err != nil {
		return err
	}
	s.Wake()
	return s.o.DB.Audit(ctx, by, "daily.add", name, nil)
}
