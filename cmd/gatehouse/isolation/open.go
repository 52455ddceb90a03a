package isolation

import (
	"log/slog"
	"sync"

	"gatehouse/configs"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// A Sandbox is what runs programs below full trust. Its methods wait until it is open.
type Sandbox struct {
	opening sync.WaitGroup
	box     sandbox.Box
	noBox   string
	limits  string
	end     func()
}

// Open opens the sandbox that SANDBOX selects, with its limits. There is no fallback: auto
// is bubblewrap only, because a container engine has more rights than the gateway, and the
// operator decides whether to use one. self is the program that is the stage inside. It
// does not wait for the trials. The caller closes the Sandbox.
func (t *Trials) Open(cfg *configs.Config, runtime, self string, log *slog.Logger) *Sandbox {
	s := &Sandbox{end: func() {}}
	s.opening.Go(func() { s.open(t, cfg, runtime, self, log) })
	return s
}

func (s *Sandbox) open(t *Trials, cfg *configs.Config, runtime, self string, log *slog.Logger) {
	if cfg.Sandbox == sandbox.Container {
		o, err := Container(cfg, runtime, self)
		if err != nil {
			s.noBox = err.Error()
			return
		}
		o.Log = log
		if s.box, s.noBox = container.Open(o); s.box != nil {
			s.end = func() { container.Close(s.box) }
		}
	} else {
		s.box, s.noBox = t.Box()
	}
	switch {
	case s.box == nil:
		return
	case s.box.Name() == sandbox.Container:
		s.limits = "the kernel holds memory, processes, processor time of each container (control groups that the container engine makes)"
	default:
		var groups *sandbox.Groups
		groups, s.limits = sandbox.OpenGroups(cfg.SandboxCgroup, log)
		s.box = sandbox.Limited(s.box, groups)
	}
	log.Info("limits of commands below full trust", "how", s.limits)
}

// Box returns what isolates programs, or nil and why nothing does.
func (s *Sandbox) Box() (box sandbox.Box, why string) {
	s.opening.Wait()
	return s.box, s.noBox
}

// Limits returns what holds programs to their limits, as text for users; "" without a Box.
func (s *Sandbox) Limits() string {
	s.opening.Wait()
	return s.limits
}

// Close ends what Open started.
func (s *Sandbox) Close() error {
	s.opening.Wait()
	s.end()
	return nil
}
