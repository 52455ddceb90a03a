package shell

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
)

// Room is what a program of t sees that lives longer than one command, below
// full trust: what a command would see, but all of the vault read-only, for
// what such a program writes could not be looked through before others read
// it. /tmp is the run's, as for commands. It is as the vault stands now: the
// caller calls release once the program is shut in, or will never be; until
// then no command writes the same folders. Env is the caller's.
func (s *Shell) Room(ctx context.Context, t *tool.Turn) (spec sandbox.Spec, release func(), err error) {
	if t.Trust != core.Vault && t.Trust != core.Sandboxed {
		return spec, nil, core.Errorf(core.Denied, "nothing is shut in at this trust")
	}
	scratch, err := s.scratchOf(t.Run)
	if err != nil {
		return spec, nil, err
	}
	release, err = s.enter(ctx, area(t))
	if err != nil {
		return spec, nil, core.Errorf(core.Busy, "a command works in the same folders")
	}
	v, err := look(t)
	if err != nil {
		release()
		return spec, nil, err
	}
	return sandbox.Spec{
		ReadOnly: slices.Concat(v.readOnly, v.writable), Masked: v.masked, Scratch: scratch, Dir: v.dir, Limits: s.o.Limits,
	}, release, nil
}

// Still waits until no command below full trust works in the vault as a whole,
// and keeps others from beginning until release: what such commands must not
// write is gone by then.
func (s *Shell) Still(ctx context.Context) (release func(), err error) {
	return s.enter(ctx, ".")
}
