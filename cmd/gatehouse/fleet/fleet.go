package fleet

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/connectors"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// The Hub has a place for each bot, and no more.
var _ = [1]struct{}{}[configs.MaxBots-connectors.MaxBots]

// A send that is marked has a connection, and a quarter of them is for what is not a send.
var _ = [connectors.MaxConnections - connectors.MaxConnections/4 - outbox.MaxAtOnce + 1]struct{}{}

// Each send that is made at once has a record.
var _ = [outbox.MaxBots - configs.MaxBots + 1]struct{}{}

// Options are what a Fleet is made of; all are needed.
type Options struct {
	Bots      *Bots
	Settings  *live.Settings
	Platforms *Platforms
	Queue     *queue.Queue
	Outbox    *outbox.Outbox
	DB        *store.DB
	Ring      func(topics ...core.Topic) // reports that bots changed
	Clock     core.Clock
	Log       *slog.Logger
	Registry  prometheus.Registerer
}

// A Fleet keeps one running connector for each configured bot.
type Fleet struct {
	Options
	Hub *connectors.Hub

	changing sync.Mutex // one reload at a time
	paused   []string   // see Pause; with changing
	leaving  []string   // bots that were removed and have not stopped yet; with changing
	adding   sync.Mutex // one bot is added or removed at a time
}

// Open returns a fleet with a connector for each bot; none runs before the
// Hub does. The caller closes the Hub.
func Open(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{Options: o}
	var cs []connectors.Connector
	for _, b := range o.Bots.All() {
		if b.Fault != "" {
			continue // its token file was named in the panel: holdBack reports it
		}
		c, err := o.Platforms.Connect(b)
		if err != nil {
			return nil, err
		}
		if err := f.settleAccount(ctx, b, false); err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	var err error
	f.Hub, err = connectors.NewHub(o.Queue, connectors.HubOptions{Clock: o.Clock, Log: o.Log, Metrics: connectors.NewMetrics(o.Registry)}, cs...)
	if err != nil {
		return nil, err
	}
	f.Hub.OnChange(func(core.BotState) { f.ring() })
	if err := f.holdBack(); err != nil {
		return nil, errors.Join(err, f.Hub.Close())
	}
	return f, nil
}

func (f *Fleet) ring() { f.Ring(core.TopicBots) }

// holdBack keeps a bot from starting if it was stopped in the panel, or if its
// token file, named there, contains no valid token.
func (f *Fleet) holdBack() error {
	for _, b := range f.Bots.All() {
		if b.Fault != "" {
			if err := f.Hub.Fail(b.Name, b.Platform, b.Fault); err != nil {
				return err
			}
		}
		if b.Off {
			if err := f.Hub.Stop(b.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// States returns the bots' states. Bots of the file of bots name what is wrong
// with it.
func (f *Fleet) States() []core.BotState {
	states := f.Hub.States()
	trouble, _ := f.Bots.Trouble()
	for i, s := range states {
		if b, ok := f.Bots.Find(s.Bot); ok && b.InFile && trouble != "" {
			states[i].Reason = strings.TrimPrefix(s.Reason+"; ", "; ") + "it stays as it was: " + trouble
		}
	}
	return states
}

// StatesWithFile returns States and, if the file of bots has a fault and none of
// its bots is there to show it, one more for the file.
func (f *Fleet) StatesWithFile() []core.BotState {
	states := f.States()
	trouble, since := f.Bots.Trouble()
	if trouble == "" || slices.ContainsFunc(f.Bots.All(), func(b configs.Bot) bool { return b.InFile }) {
		return states
	}
	return append(states, core.BotState{Bot: "bots file", State: core.FailedPhase, Reason: trouble, Since: since})
}

// InviteLink returns the address that opens a chat with the bot and uses the code;
// "" where the platform has none, or the bot's name there is not known yet.
func (f *Fleet) InviteLink(bot, code string) string {
	if f == nil || f.Bots.Platform(bot) != telegram.Platform {
		return ""
	}
	for _, s := range f.Hub.States() {
		if s.Bot == bot && s.Username != "" {
			return "https://t.me/" + strings.TrimPrefix(s.Username, "@") + "?start=" + url.QueryEscape(code)
		}
	}
	return ""
}

// Start starts a bot, also for the gateway's next start.
func (f *Fleet) Start(ctx context.Context, bot string) error {
	if err := f.Hub.Start(bot); err != nil {
		return err
	}
	return f.setOff(ctx, bot, false)
}

// Stop stops a bot, also for the gateway's next start. Busy: it receives no
// more and ends soon.
func (f *Fleet) Stop(ctx context.Context, bot string) error {
	err := f.Hub.Stop(bot)
	if err != nil && core.KindOf(err) != core.Busy {
		return err
	}
	return errors.Join(err, f.setOff(ctx, bot, true))
}

// setOff stores whether a bot stays stopped after a restart.
func (f *Fleet) setOff(ctx context.Context, bot string, off bool) error {
	if b, ok := f.Bots.Find(bot); !ok || b.Off == off {
		return nil
	}
	// Start and stop have an audit row of their own.
	return f.Change(ctx, bot, core.Actor{Via: "upkeep"}, map[string]any{"off": off}, func(c *configs.BotChange) { c.Off = off }, nil)
}

// SetPolicy changes how a bot treats strangers; nil is as configured.
func (f *Fleet) SetPolicy(ctx context.Context, bot string, p *configs.BotPolicy, by core.Actor) error {
	detail := map[string]any{"policy": "as configured"}
	if p != nil {
		detail = map[string]any{"policy": p.DMPolicy, "dm_trust": p.DMTrust, "group_trust": p.GroupTrust, "allowed": len(p.AllowedUsers)}
	}
	return f.Change(ctx, bot, by, detail, func(c *configs.BotChange) { c.Policy = p }, nil)
}

// SetTokenFile has a bot use the token in a file, if the platform accepts it;
// "" is as configured.
func (f *Fleet) SetTokenFile(ctx context.Context, bot, path string, by core.Actor) error {
	return f.Change(ctx, bot, by, map[string]any{"token_file": path != ""}, func(c *configs.BotChange) { c.TokenFile = path }, func(next *configs.Config) error {
		list, err := next.ReadBots(f.Bots.All())
		b, known := named(list, bot)
		switch {
		case err != nil && !known:
			return err
		case b.Fault != "":
			return core.Errorf(core.Invalid, "token file: %s", b.Fault)
		}
		if _, err := Test(ctx, b); err != nil {
			return core.Errorf(core.Invalid, "token file: %s does not take its token: %s", b.Platform, core.TextOf(err))
		}
		return nil
	})
}

// Change changes the settings of one bot and applies them. check may refuse the
// settings that would result; nil: nothing more is checked.
func (f *Fleet) Change(ctx context.Context, bot string, by core.Actor, detail map[string]any, edit func(*configs.BotChange), check func(*configs.Config) error) error {
	b, ok := f.Bots.Find(bot)
	if !ok {
		return noBot(bot)
	}
	err := f.Settings.Change(ctx, by, live.Change{Subject: "bot " + bot, Detail: detail,
		Edit: func(ch *configs.Changes) {
			c := ch.Bots[bot]
			if c.Added != nil && !b.Added { // a bot added in the panel had the name before
				c = configs.BotChange{}
			}
			edit(&c)
			if ch.Bots[bot] = c; c.Empty() {
				delete(ch.Bots, bot)
			}
		},
		Prepare: func(now, next *configs.Config) (func(), error) {
			if b.Added && now.BotChanges()[bot].Added == nil { // removed concurrently
				return nil, noBot(bot)
			}
			if check != nil {
				return nil, check(next)
			}
			return nil, nil
		}})
	if err != nil {
		return err
	}
	f.changed(ctx)
	return nil
}

func noBot(name string) error {
	return core.Errorf(core.NotFound, "there is no bot named %s", core.CleanName(name))
}

// changed applies what is stored, also when ctx has ended since.
func (f *Fleet) changed(ctx context.Context) {
	f.reload(context.WithoutCancel(ctx))
	f.ring()
}
