package main

import (
	"context"
	"errors"
	"os"
)

// A side is one bot under load, on its own platform.
type side struct {
	*field
	*child
	dir string
}

func (b *bench) gateway(ctx context.Context, users int, dir string) (*side, error) {
	return b.side(ctx, users, dir, func(s *side) (*child, error) { return startGateway(ctx, b.c.Program, s.sim, s.dir) })
}

func (b *bench) bare(ctx context.Context, users int) (*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.side(ctx, users, "", func(s *side) (*child, error) {
		return start(ctx, s.sim, s.dir, []string{"LOADGEN_TOKEN=" + s.sim.Token()}, []string{self, "bare", s.sim.URL()})
	})
}

func (b *bench) side(_ context.Context, users int, dir string, start func(*side) (*child, error)) (*side, error) {
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp(b.dir, "bot-"); err != nil {
			return nil, err
		}
	}
	s := &side{dir: dir}
	if s.field, err = newField(users); err != nil {
		return nil, err
	}
	if s.child, err = start(s); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// end stops the bot and its platform.
func (s *side) end() error {
	if s == nil {
		return nil
	}
	err := s.child.stop()
	s.close()
	return err
}

// settle ends a gateway and judges what it did.
func (b *bench) settle(ctx context.Context, s *side) (verdict, error) {
	if err := s.child.stop(); err != nil {
		return verdict{}, errors.Join(err, s.end())
	}
	v, err := s.check(ctx, s.dir)
	s.close()
	b.data.Verdict.add(v)
	if !b.c.Keep && err == nil && !v.bad() {
		_ = os.RemoveAll(s.dir)
	}
	return v, err
}

// pair starts a gateway and a bare bot, each with n people, who have been
// answered once unless cold.
func (b *bench) pair(ctx context.Context, n int, cold bool) (gw, bare *side, err error) {
	if gw, err = b.gateway(ctx, n, ""); err != nil {
		return nil, nil, err
	}
	if bare, err = b.bare(ctx, n); err != nil {
		return nil, nil, errors.Join(err, gw.end())
	}
	for _, s := range []*side{gw, bare} {
		if cold {
			break
		}
		if _, err := s.oneByOne(ctx, 2*n); err != nil {
			return nil, nil, errors.Join(err, gw.end(), bare.end())
		}
	}
	return gw, bare, nil
}

// settleTraced is settle without removing the folder, which holds the trace.
func (b *bench) settleTraced(ctx context.Context, s *side) (verdict, error) {
	if err := s.child.stop(); err != nil {
		return verdict{}, errors.Join(err, s.end())
	}
	v, err := s.check(ctx, s.dir)
	s.close()
	b.data.Verdict.add(v)
	return v, err
}
