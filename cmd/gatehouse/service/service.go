// Package service tells the service manager that started the program how it is, by the
// protocol of sd_notify(3). Without one, or with one that does not listen, it does nothing.
package service

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gatehouse/core"
)

// share is how often within its time the service manager hears that the program is alive.
const share = 3

// A Manager is the service manager of this process. A nil one is told nothing.
type Manager struct {
	log   *slog.Logger
	every time.Duration // 0: it does not ask for signs of life
	check atomic.Pointer[func(context.Context)]
}

// Find returns the service manager that the environment names: NOTIFY_SOCKET,
// WATCHDOG_USEC and WATCHDOG_PID.
func Find(log *slog.Logger) *Manager {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not heard", "err", err)
	}
	return &Manager{log: log, every: within / share}
}

// Serving says that the program has started, and what it does, in one line.
func (m *Manager) Serving(status string) { m.say(daemon.SdNotifyReady + "\nSTATUS=" + status) }

// Stopping says that the program ends.
func (m *Manager) Stopping() { m.say(daemon.SdNotifyStopping + "\nSTATUS=finishing what has begun") }

func (m *Manager) say(state string) {
	if m == nil {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager cannot be told", "err", err)
	}
}

// Check has f called before each sign of life from now on: while f does not return, the
// program gives none. f may fail in any other way.
func (m *Manager) Check(f func(context.Context)) {
	if m != nil {
		m.check.Store(&f)
	}
}

// Live gives signs of life until ctx ends, if the service manager asks for them.
func (m *Manager) Live(ctx context.Context) {
	for m.every > 0 && ctx.Err() == nil {
		if f := m.check.Load(); f != nil {
			(*f)(ctx)
		}
		m.say(daemon.SdNotifyWatchdog)
		core.Sleep(ctx, core.System{}, m.every)
	}
}
