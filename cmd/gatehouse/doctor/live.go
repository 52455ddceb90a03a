package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"gatehouse/configs"
)

// LiveWait bounds a request to the running gateway for its state.
const LiveWait = 3 * time.Second

// Alive returns nil if the gateway at cfg's address reports that it works.
// Containers run it repeatedly: it opens no file and is not audited.
func Alive(ctx context.Context, cfg *configs.Config) error {
	ctx, cancel := context.WithTimeout(ctx, LiveWait)
	defer cancel()
	addr, err := liveAddr(cfg.Addr)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no gateway answers at %s: %w", addr, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway at %s answers %s", addr, resp.Status)
	}
	return nil
}

// liveAddr returns where this machine reaches a listener on addr: one that listens
// everywhere is asked on loopback.
func liveAddr(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	switch ip, err := netip.ParseAddr(host); {
	case host == "", err == nil && ip == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
