package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/core/store"
)

// A Chat has what users can send to a bot next to messages.
type Chat interface {
	Menu() []connectors.Command     // of the commands that a menu shows
	Commands() []connectors.Command // all
	Complete(ctx context.Context, who core.Peer, name, typed string) []string
	Form(ctx context.Context, in *core.Inbound) (connectors.Form, error)
}

// Platforms builds connectors. Connectors of one platform share its metrics.
type Platforms struct {
	cursors  connectors.Cursors
	db       *store.DB
	chat     Chat
	files    fs.FS
	pace     bool
	hears    bool
	clock    core.Clock
	log      *slog.Logger
	telegram *telegram.Metrics
	discord  *discord.Metrics
}

// NewPlatforms returns what builds the connectors of cfg's bots. files is the
// vault, from which attachments are sent.
func NewPlatforms(cfg *configs.Config, cursors connectors.Cursors, db *store.DB, c Chat, files fs.FS, clock core.Clock, log *slog.Logger, reg prometheus.Registerer) *Platforms {
	return &Platforms{cursors: cursors, db: db, chat: c, files: files, pace: bool(cfg.Pace), hears: cfg.TranscribeURL != "" || cfg.TranscribeCommand != "", clock: clock, log: log,
		telegram: telegram.NewMetrics(reg), discord: discord.NewMetrics(reg)}
}

// Connect returns a connector for a bot. A new platform is one more case.
func (p *Platforms) Connect(b configs.Bot) (connectors.Connector, error) {
	switch b.Platform {
	case telegram.Platform:
		return telegram.New(telegram.Options{
			Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL,
			Cursors: p.cursors, Memory: p.db, Menu: p.chat.Menu(), Pace: p.pace, Hears: p.hears, Files: p.files,
			Clock: p.clock, Log: p.log, Metrics: p.telegram,
		})
	case discord.Platform:
		return discord.New(discord.Options{
			Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL,
			Cursors: p.cursors, Memory: p.db, Menu: p.chat.Commands(), Complete: p.chat.Complete, Form: p.chat.Form, Pace: p.pace, Hears: p.hears, Files: p.files,
			Clock: p.clock, Log: p.log, Metrics: p.discord,
		})
	}
	return nil, core.Errorf(core.Invalid, "bot %s: no such platform", b.Name)
}

// Test asks the platform which account a bot's token belongs to.
func Test(ctx context.Context, b configs.Bot) (username string, err error) {
	c, err := newProbe(b)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Test(ctx)
}

// A probe is a connector that is only asked which account it is.
type probe interface {
	connectors.Tester
	Close() error
}

func newProbe(b configs.Bot) (probe, error) {
	switch b.Platform {
	case telegram.Platform:
		return telegram.New(telegram.Options{Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL, Cursors: connectors.NoCursors{}})
	case discord.Platform:
		return discord.New(discord.Options{Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL, Cursors: connectors.NoCursors{}})
	}
	return nil, fmt.Errorf("bot %s: no such platform", b.Name)
}
