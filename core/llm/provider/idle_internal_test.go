package provider

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Many answer at a time, and each new connection costs more than its request.
func TestConnectionsOfManyRequestsAtOnceAreUsedAgain(t *testing.T) {
	const many = maxIdle
	var opened atomic.Int32
	var arrived sync.WaitGroup
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // no request ends before all are there
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	tr := transport()
	defer tr.CloseIdleConnections()
	c := http.Client{Transport: tr}
	for range 2 {
		arrived.Add(many)
		var ended sync.WaitGroup
		for range many {
			ended.Go(func() {
				resp, err := c.Get(s.URL)
				if err != nil {
					t.Error(err)
					arrived.Done()
					return
				}
				_ = resp.Body.Close()
			})
		}
		ended.Wait()
	}
	if n := opened.Load(); n > many+many/4 { // one may be returned a moment after its answer was read
		t.Errorf("%d connections for twice %d requests", n, many)
	}
}
