package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/report"
)

// A side is one bot under load, on its own platforms.
type side struct {
	*field.Field
	*child.Child
	dir      string
	server   string   // the address of its database on a server; "": a file in dir
	settings []string // of the gateway, next to those that all have
}

func (b *bench) gateway(ctx context.Context, chats int, dir string) (*side, error) {
	return b.side(ctx, chats, dir, func(s *side) (c *child.Child, err error) {
		if b.c.Database != "" {
			if s.server, err = b.schemas.Create(ctx); err != nil {
				return nil, err
			}
			s.settings = append(s.settings, "GATEHOUSE_DATABASE_URL="+s.server)
		}
		return child.Gateway(ctx, b.c.Program, s.Field, s.dir, s.settings)
	})
}

func (b *bench) bare(ctx context.Context, chats int) (*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.side(ctx, chats, "", func(s *side) (*child.Child, error) {
		env := bareEnv(s.Platforms)
		if b.model != nil {
			env = append(env, "LOADGEN_MODEL_URL="+b.model.URL())
		}
		return child.Start(ctx, s.Field, s.dir, env, []string{self, "bare"})
	})
}

func bareEnv(platforms []*crowd.Platform) (env []string) {
	for _, p := range platforms {
		for k, v := range p.Settings(p.URL) {
			env = append(env, "LOADGEN_"+k+"="+v)
		}
	}
	return env
}

func (b *bench) side(_ context.Context, chats int, dir string, start func(*side) (*child.Child, error)) (*side, error) {
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp(b.dir, "bot-"); err != nil {
			return nil, err
		}
	}
	s := &side{dir: dir}
	if b.model != nil {
		s.settings = modelEnv(b.model)
	}
	if s.Field, err = field.New(chats, b.c.Discord); err != nil {
		return nil, err
	}
	if s.Child, err = start(s); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// again starts a gateway that has ended once more, on the same platforms.
func (b *bench) again(ctx context.Context, s *side) (err error) {
	for end := time.Now().Add(child.StopWait); slices.ContainsFunc(s.Platforms, (*crowd.Platform).Online); time.Sleep(time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			return errors.New("a platform still has the gateway that has ended")
		}
	}
	s.Child, err = child.Gateway(ctx, b.c.Program, s.Field, s.dir, s.settings)
	return err
}

// end stops the bot and its platforms.
func (s *side) end() error {
	if s == nil {
		return nil
	}
	err := s.Child.Stop()
	s.Close()
	return err
}

// settle ends a gateway and judges what it did.
func (b *bench) settle(ctx context.Context, s *side) (report.Verdict, error) {
	v, err := b.judge(ctx, s)
	if !b.c.Keep && err == nil && !v.Bad() {
		_ = os.RemoveAll(s.dir)
	}
	return v, err
}

// judge returns settle without removing the directory.
func (b *bench) judge(ctx context.Context, s *side) (report.Verdict, error) {
	if err := s.Child.Stop(); err != nil {
		return report.Verdict{}, errors.Join(err, s.end())
	}
	found, err := s.Check(ctx, s.dir, s.server)
	s.Close()
	for platform, v := range found {
		b.data.Judged.Add(platform, v)
	}
	b.data.Verdict = b.data.Judged.All()
	return found.All(), err
}

// pair starts a gateway and a bare bot, each with n chats, which have been
// answered in once unless cold.
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
		if _, err := s.OneByOne(ctx, 2*n); err != nil {
			return nil, nil, errors.Join(err, gw.end(), bare.end())
		}
	}
	return gw, bare, nil
}
