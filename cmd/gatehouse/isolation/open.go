package isolation

import (
	"log/slog"

	"gatehouse/configs"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// A Sandbox is what runs programs below full trust.
type Sandbox struct {
	Box    sandbox.Box // nil: nothing runs isolated
	NoBox  string      // why Box is nil
	Limits string      // what holds programs to their limits, as text for users; "" without a Box
	end    func()
}

// Open opens the sandbox that SANDBOX selects, with its limits. There is no fallback: auto
// is bubblewrap only, because a container engine has more rights than the gateway, and the
// operator decides whether to use one. self is the program that is the stage inside. The
// caller closes the Sandbox.
func (t *Trials) Open(cfg *configs.Config, runtime, self string, log *slog.Logger) Sandbox {
	s := Sandbox{end: func() {}}
	if cfg.Sandbox == sandbox.Container {
		o, err := Container(cfg, runtime, self)
		if err != nil {
			s.NoBox = err.Error()
			return s
		}
		o.Log = log
		if s.Box, s.NoBox = container.Open(o); s.Box != nil {
			s.end = func() { container.Close(s.Box) }
		}
	} else {
		s.Box, s.NoBox = t.Box()
	}
	switch {
	case s.Box == nil:
		return s
	case s.Box.Name() == sandbox.Container:
		s.Limits = "the kernel holds memory, processes, processor time of each container (control groups that the container engine makes)"
	default:
		var groups *sandbox.Groups
		groups, s.Limits = sandbox.OpenGroups(cfg.SandboxCgroup, log)
		s.Box = sandbox.Limited(s.Box, groups)
	}
	log.Info("limits of commands below full trust", "how", s.Limits)
	return s
}

// Close ends what Open started.
func (s Sandbox) Close() error {
	s.end()
	return nil
}
