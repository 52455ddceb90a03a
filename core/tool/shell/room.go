package shell

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
)

// Room returns what a program of t sees that runs longer than one command, below
// full trust: what a command would see, but all of the vault read-only, because
// what such a program writes could not be checked before others read it. /tmp is
// the run's, as for commands. The caller calls release once the program is shut
// in, or will never be; until then no command writes the same directories. Env is
// the caller's.
func (s *Shell) Room(ctx context.Context, t *tool.Turn) (spec sandbox.Spec, release func(), err error) {
	if t.Trust != core.Vault && t.Trust != core.Sandboxed {
		return spec, nil, core.Errorf(core.Denied, "no command is confined at this trust")
	}
	scratch, err := s.scratchOf(t.Run)
	if err != nil {
		return spec, nil, err
	}
	except, release, err := s.areas.claim(ctx, area(t))
	if err != nil {
		return spec, nil, core.Errorf(core.Busy, "a command works in the same folders")
	}
	v, err := look(ctx, t, except)
	if err != nil {
		release()
		return spec, nil, err
	}
	spec = v.spec()
	spec.ReadOnly, spec.Writable = slices.Concat(spec.ReadOnly, spec.Writable), nil
	spec.Scratch, spec.Limits = scratch, s.o.Limits
	return spec, release, nil
}

// Still waits until no command below full trust works in the vault as a whole,
// and keeps others from starting until release: what such commands must not
// write is gone by then.
func (s *Shell) Still(ctx context.Context) (release func(), err error) {
	_, release, err = s.areas.claim(ctx, ".")
	return release, err
}
