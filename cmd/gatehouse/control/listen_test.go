package control

import (
	"net"
	"path/filepath"
	"testing"
)

// A gateway that was replaced while it was frozen ends later than the other one has begun.
func TestTheEndOfOneGatewayLeavesTheSocketOfTheNext(t *testing.T) {
	dir := t.TempDir()
	first, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	conn, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatalf("the second cannot be reached: %v", err)
	}
	_ = conn.Close()
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
