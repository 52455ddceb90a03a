// Package service tells the service manager that started the program how it is, by the
// protocol of sd_notify(3). Without one, or with one that does not listen, it does nothing.
package service

import (
	"context"
	"log/slog"
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

// Live gives signs of life until ctx ends, if the service manager asks for them. They say
// that the process runs, and not that every part of it goes on: what is slow is not to be ended.
func (m *Manager) Live(ctx context.Context) {
	for m.every > 0 && ctx.Err() == nil {
		m.say(daemon.SdNotifyWatchdog)
		core.Sleep(ctx, core.System{}, m.every)
	}
}
