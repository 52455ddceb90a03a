package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/cmd/gatehouse/setup"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
)

// initCmd asks five questions and writes what serve begins with.
type initCmd struct {
	setup.Flags
}

func (c *initCmd) Help() string {
	return "Writes --env-file, or ~/.config/gatehouse/gatehouse.env, with mode 0600. What a flag answers is not asked. " +
		"Without a terminal the lines of standard input are the answers, in the order of the questions: Telegram token, Discord token, model key or address, password, y for a claim code; an empty line skips one, the end of input skips the rest, and an invalid answer ends it without writing anything. " +
		"The servers that are asked are those of GATEHOUSE_TELEGRAM_API_URL and so on; settings of the environment are kept."
}

func (c *initCmd) Run(p *process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	return setup.Run(p.ctx, cfg, setup.Options{Flags: c.Flags, In: p.stdin, Out: p.stdout, Path: p.envFile, TryModel: oneToken, NewClaim: quietClaim})
}

// quietClaim returns a new claim code, from the running gateway or its files.
func quietClaim(ctx context.Context) (code string, expires time.Time, err error) {
	p := &process{ctx: ctx, stdout: io.Discard, stderr: io.Discard}
	var made control.ClaimCode
	err = p.request(http.MethodPost, "/control/claim", control.ClaimRequest{}, &made)
	return made.Code, made.ExpiresAt, err
}

// oneToken asks the first model of cfg for one token and returns the model's name.
func oneToken(ctx context.Context, cfg *configs.Config) (name string, err error) {
	m, err := newModels(cfg, nil, core.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(ctx, doctor.Wait)
	defer cancel()
	var f *llm.Fault
	switch _, _, err = registry.Try(ctx, m.First, core.System{}); {
	case errors.As(err, &f):
		return "", core.Errorf(core.Busy, "The model does not answer: %s", f.Text)
	case err != nil:
		return "", core.Errorf(core.Busy, "The model cannot be reached")
	}
	return m.Default(), nil
}
