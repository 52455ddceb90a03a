package postgres

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAConnectionWhosePacketsVanishEnds(t *testing.T) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c, err := config("postgres://u@"+in.Addr().String()+"/x", false)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.DialFunc(t.Context(), "tcp", in.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var unacknowledged, alive int
	if err := raw.Control(func(fd uintptr) {
		unacknowledged, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		alive, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	}); err != nil {
		t.Fatal(err)
	}
	if unacknowledged != 30_000 || alive != 15 {
		t.Errorf("data may be unacknowledged for %d ms, and silence lasts %d s before the other end is asked", unacknowledged, alive)
	}
	if c.RuntimeParams["tcp_keepalives_idle"] != "15" {
		t.Errorf("the server keeps the session of a machine that is gone: %v", c.RuntimeParams)
	}
}
