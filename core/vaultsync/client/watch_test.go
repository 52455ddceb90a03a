package client_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/vaultsync/client"
)

func TestWatch_SendsAChangeAndFetchesWhatTheServerHasUntilItIsStopped(t *testing.T) {
	s, a, _ := pair(t)
	a.o.Clock = core.System{}
	write(t, s.dir, "from-server.md", "there")
	c, err := client.Open(a.o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	reports, ended := make(chan client.Report, 10), make(chan error, 1)
	go func() { ended <- c.Watch(ctx, func(r client.Report) { reports <- r }) }()
	if r := <-reports; r.Fetched != 1 || read(t, a.dir, "from-server.md") != "there" {
		t.Errorf("%+v", r)
	}
	write(t, a.dir, "Notes/from-here.md", "here")
	if r := <-reports; r.Sent != 1 || read(t, s.dir, "Notes/from-here.md") != "here" {
		t.Errorf("%+v", r)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
