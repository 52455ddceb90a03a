package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/council"
	"gatehouse/cmd/loadgen/report"
)

const (
	memberTime  = 20 * time.Millisecond // of each call of a member
	councilWarm = 5                     // questions before those that are timed
	councilMost = 200                   // questions that are timed
)

// councils measures what a council adds to its members' time.
func (b *bench) councils(ctx context.Context) error {
	for _, n := range []int{3, 9} {
		d, err := b.councilOf(ctx, n)
		if err != nil {
			return fmt.Errorf("%d members: %w", n, err)
		}
		b.data.Councils = append(b.data.Councils, d)
	}
	return nil
}

func (b *bench) councilOf(ctx context.Context, n int) (d report.Council, err error) {
	m, err := council.Open(n, memberTime)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	dir, err := os.MkdirTemp(b.dir, "bot-")
	if err != nil {
		return d, err
	}
	providers := filepath.Join(dir, "providers.yaml")
	if err := os.WriteFile(providers, []byte(m.Providers()), 0o600); err != nil {
		return d, err
	}
	addr, err := child.FreeAddr()
	if err != nil {
		return d, err
	}
	s, err := b.side(ctx, 1, dir, func(s *side) (*child.Child, error) {
		s.settings = []string{"GATEHOUSE_PROVIDERS_FILE=" + providers, "GATEHOUSE_COUNCIL=" + strings.Join(m.Names(), ","), "GATEHOUSE_MODEL=" + m.Names()[0], "GATEHOUSE_ADDR=" + addr}
		return child.Gateway(ctx, b.c.Program, s.Field, s.dir, s.settings)
	})
	if err != nil {
		return d, err
	}
	desk := &desk{side: s, url: "http://" + addr}
	d, err = desk.councils(ctx, m, min(b.c.Messages/10, councilMost))
	return d, errors.Join(err, s.end())
}

// councils asks a single member and the council in turn, each question in a session of
// its own.
func (d *desk) councils(ctx context.Context, m *council.Members, questions int) (report.Council, error) {
	n := len(m.Names())
	sides := []struct {
		model string
		calls int
		added []time.Duration // to the members' time
	}{{model: m.Names()[0], calls: 1}, {model: "council/high", calls: 2 * n}}
	for i := range questions + councilWarm {
		for k := range sides {
			s := &sides[k]
			began := time.Now()
			if _, err := d.send(ctx, map[string]string{"message": "When was the bridge opened?", "session_id": fmt.Sprintf("council-%d-%d", k, i), "model": s.model}); err != nil {
				return report.Council{}, err
			}
			took := time.Since(began)
			slowest, calls := m.Taken()
			if calls != s.calls {
				return report.Council{}, fmt.Errorf("%s took %d calls, want %d", s.model, calls, s.calls)
			}
			if i >= councilWarm {
				s.added = append(s.added, took-slowest)
			}
		}
	}
	out := report.Council{Members: n, Ratings: n, Single: report.Summary(sides[0].added), All: report.Summary(sides[1].added)}
	out.Own = out.All.P50 - out.Single.P50
	return out, nil
}
