package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	_, err := probe(ctx, cfg.Addr)
	return err
}

// gatewayAt reports whether a gateway answers at addr, whatever its user and vault.
func gatewayAt(ctx context.Context, addr string) bool {
	body, err := probe(ctx, addr)
	var answer struct{ Status string }
	return err == nil && json.Unmarshal(body, &answer) == nil && answer.Status == "ok"
}

// probe returns the answer of what listens on addr when it is asked for its health, up to
// 1,000 bytes; an error if it is none or not 200.
func probe(ctx context.Context, addr string) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, LiveWait)
	defer cancel()
	if addr, err = liveAddr(addr); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no gateway answers at %s: start it with 'gatehouse serve', or set GATEHOUSE_ADDR to where it serves: %w", addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the gateway at %s answers %s", addr, resp.Status)
	}
	body, _ = io.ReadAll(io.LimitReader(resp.Body, 1000)) // the status alone says that it works
	return body, nil
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
