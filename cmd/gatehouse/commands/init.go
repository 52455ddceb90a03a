package commands

import (
	"context"
	"io"
	"net/http"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/models"
	"gatehouse/cmd/gatehouse/setup"
	"gatehouse/configs"
)

// An Init asks five questions and writes the settings that serve begins with.
type Init struct {
	setup.Flags
}

func (c *Init) Help() string {
	return "Writes --env-file, or ~/.config/gatehouse/gatehouse.env, with mode 0600. What a flag answers is not asked. " +
		"Without a terminal the lines of standard input are the answers, in the order of the questions: Telegram token, Discord token, model key or address, password, y for a claim code; an empty line skips one, the end of input skips the rest, and an invalid answer ends it without writing anything. " +
		"The servers that are asked are those of GATEHOUSE_TELEGRAM_API_URL and so on; settings of the environment are kept."
}

func (c *Init) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	return setup.Run(p.Context, cfg, setup.Options{Flags: c.Flags, In: p.Stdin, Out: p.Stdout, Path: p.EnvFile, TryModel: models.OneToken, NewClaim: func(ctx context.Context) (string, time.Time, error) { return newClaim(ctx, p) }})
}

// newClaim returns a new claim code. It prints nothing.
func newClaim(ctx context.Context, p *console.Process) (code string, expires time.Time, err error) {
	quiet := *p
	quiet.Context, quiet.Stdout, quiet.Stderr = ctx, io.Discard, io.Discard
	var made control.ClaimCode
	err = quiet.Request(http.MethodPost, "/control/claim", control.ClaimRequest{}, &made)
	return made.Code, made.ExpiresAt, err
}
