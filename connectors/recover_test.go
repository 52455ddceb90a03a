package connectors_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"gatehouse/connectors"
)

func TestAPanicBesideAConnectorIsLoggedAndEndsNothing(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var tasks sync.WaitGroup
	connectors.Go(&tasks, log, "ada_bot", "answer", func() { panic("at the disco") })
	tasks.Wait()
	if got := out.String(); !strings.Contains(got, "at the disco") || !strings.Contains(got, "bot=ada_bot") || !strings.Contains(got, "recover_test.go") {
		t.Errorf("logged: %s", got)
	}
	read := func() (n int, err error) {
		defer connectors.Recover(log, "ada_bot", "read", &err)
		panic("again")
	}
	if _, err := read(); err == nil || !strings.Contains(err.Error(), "read ada_bot: the connector panicked: again") {
		t.Errorf("returned: %v", err)
	}
}
