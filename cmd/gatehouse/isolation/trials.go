package isolation

import (
	"sync"

	"gatehouse/core/sandbox"
)

// Trials run the programs by which the sandbox sees what works on this machine, all at
// the same time and while the gateway opens what it needs: each takes tens of
// milliseconds, and nothing of the gateway's.
type Trials struct {
	running sync.WaitGroup
	box     sandbox.Box
	noBox   string
	veil    sandbox.VeilTrial
}

// Begin begins the trials that mode, SANDBOX, wants. self is the program that is the
// stage inside. The caller closes them.
func Begin(mode, self string) *Trials {
	t := &Trials{}
	t.running.Go(func() { t.veil = sandbox.TryVeil(mode) })
	if mode != sandbox.Container { // which package container tries
		t.running.Go(func() { t.box, t.noBox = sandbox.Open(mode, self) })
	}
	return t
}

// Box returns what sandbox.Open returned.
func (t *Trials) Box() (sandbox.Box, string) {
	t.running.Wait()
	return t.box, t.noBox
}

// Veil returns what sandbox.TryVeil returned.
func (t *Trials) Veil() sandbox.VeilTrial {
	t.running.Wait()
	return t.veil
}

// Close waits for programs that still run.
func (t *Trials) Close() error {
	t.running.Wait()
	return nil
}
