package service

import (
	"log/slog"
	"testing"
)

func TestWithoutAServiceManagerNothingIsSaid(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	m := Find(slog.New(slog.DiscardHandler))
	m.Serving("serving")
	m.Live(t.Context()) // returns
	(*Manager)(nil).Stopping()
}
