package orchestrator

import (
	"context"
	"time"

	"gatehouse/core"
)

// A Raise is trust for a turn above what its sender and session have, until its
// time has ended or it is taken back. The zero value is none.
type Raise struct {
	Trust core.Trust
	Since time.Time
	Until time.Time
}

// Raised reports whether the turn has trust for a time, above its Base.
func (t *Turn) Raised() bool { return t.Trust > t.Base && !t.RaisedUntil.IsZero() }

// trust returns the run's current trust: what it began with, until a raise has ended.
func (r *run) trust() core.Trust {
	if r.loweredKit.Load() != nil {
		return r.t.Base
	}
	return r.t.Trust
}

// kitNow returns what the run may use now; nil without tools.
func (r *run) kitNow() *Kit {
	if k := r.loweredKit.Load(); k != nil && r.kit != nil {
		return k
	}
	return r.kit
}

// over reports whether the time of the run's raise has come.
func (r *run) over() bool {
	return r.t.Raised() && r.loweredKit.Load() == nil && !r.o.Clock.Now().Before(r.t.RaisedUntil)
}

// lower has the rest of the run go on as if there had been no raise. A call
// that is running ends as it began; none begins at the higher level any more.
func (r *run) lower(ctx context.Context) error {
	r.lowering.Lock()
	defer r.lowering.Unlock()
	if r.loweredKit.Load() != nil {
		return nil
	}
	kit := &Kit{}
	if r.kit != nil {
		t := *r.t
		t.Trust = t.Base
		dir, _, err := r.o.workingDirectory(&t)
		if err != nil {
			return err
		}
		if kit, err = r.o.Equip(ctx, &t, dir, r.agent); err != nil {
			return err
		}
		kit.Profile.Named = r.named
	}
	r.loweredKit.Store(kit)
	r.emit(core.Warning{Code: "trust_lowered", Message: "The time at trust " + r.t.Trust.String() + " is over: the rest is done at trust " + r.t.Base.String() + "."})
	return nil
}

// stillRaised reports, before a call, whether the run may go on: its raised trust
// is still in effect, or it has none.
func (r *run) stillRaised(ctx context.Context) (bool, error) {
	if !r.t.Raised() || r.loweredKit.Load() != nil {
		return true, nil
	}
	return r.checkTrust(ctx, false)
}

// settleTrust leaves the turn with the trust that its end has: what the answer
// shows of files is read with it.
func (r *run) settleTrust(ctx context.Context) {
	if !r.t.Raised() {
		return
	}
	if ok, err := r.checkTrust(ctx, false); err != nil || !ok || r.loweredKit.Load() != nil {
		r.t.Trust = r.t.Base
	}
}
