// Package stage is what the demo runs on: the sample vault, the simulated platforms with
// what they keep between starts, and the page of phones.
package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/vault"
)

// Simulators are the simulated platforms, nil where one is not open.
type Simulators struct {
	Telegram *telegramtest.Server
	Discord  *discordtest.Server
}

// States returns the files next to the vault in which the simulators keep ids,
// users and histories: a start without them would assign the same ids again, and the
// gateway would treat new messages as repeats.
func States(vault string) (telegram, discord string) {
	return vault + ".simulator.json", vault + ".simulator-discord.json"
}

// Open starts both. What is open is to be closed, also after an error.
func Open(vault string) (s Simulators, err error) {
	telegram, discord := States(vault)
	if s.Telegram, err = telegramtest.Open(telegramtest.Options{StateFile: telegram}); err != nil {
		return s, err
	}
	s.Discord, err = discordtest.Open(discordtest.Options{StateFile: discord, Bots: []discordtest.BotAccount{{Intents: discordtest.IntentContent}}})
	return s, err
}

// Close stops both; they write what they keep.
func (s Simulators) Close() error {
	var errs []error
	if s.Telegram != nil {
		errs = append(errs, s.Telegram.Close())
	}
	if s.Discord != nil {
		errs = append(errs, s.Discord.Close())
	}
	return errors.Join(errs...)
}

// Page returns the phones page for both, with users to play.
func (s Simulators) Page(opt phones.Options) (http.Handler, error) {
	telegram, err := phones.Telegram(s.Telegram)
	if err != nil {
		return nil, err
	}
	discord, err := phones.Discord(s.Discord)
	if err != nil {
		return nil, err
	}
	return phones.New(opt, telegram, discord)
}

// VaultFree fails when a gateway works on the vault already: its files and the
// simulators' are left alone then.
func VaultFree(path string) error {
	if _, err := os.Stat(filepath.Join(path, ".parachute", "lock")); err != nil {
		return nil // it does not exist, or opening it will fail
	}
	v, err := vault.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(v.Lock(true), v.Close())
}

// Listen listens on loopback at port, or at any free one.
func Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}

// Serve serves the page until stop is called.
func Serve(l net.Listener, page http.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	return func() {
		cancel()
		_ = server.Close()
		<-done
	}
}
