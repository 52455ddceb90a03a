// Package discord is the connector for Discord
// (https://discord.com/developers/docs): events come over the gateway (package
// gateway), everything else goes by REST with discordgo's session and types.
//
// The cursor is named "discord:<the bot's id>", which the token begins with,
// and holds the gateway session and the number of its last stored event: a
// start soon after a stop goes on with that session. Memory keeps, under the
// same name, the newest message stored of each known channel, for the backfill
// when the session is gone.
//
// Package inbound documents the ids of updates and chats.
package discord

import (
	"context"
	"encoding/base64"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/inbound"
	"gatehouse/connectors/discord/interactions"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

var (
	_ connectors.Connector    = (*Bot)(nil)
	_ connectors.Platformer   = (*Bot)(nil)
	_ connectors.Typer        = (*Bot)(nil)
	_ connectors.Previewer    = (*Bot)(nil)
	_ connectors.Acknowledger = (*Bot)(nil)
	_ connectors.Pacer        = (*Bot)(nil)
	_ connectors.Repeater     = (*Bot)(nil)
	_ connectors.Tester       = (*Bot)(nil)
	_ connectors.Renderer     = (*Bot)(nil)
	_ connectors.Fetcher      = (*Bot)(nil)
)

const (
	// Platform is the platform's name in every address, row and label.
	Platform = wire.Platform
	// DefaultAPIURL is the real platform.
	DefaultAPIURL = "https://discord.com"
	apiPath       = "/api/v10"
)

// Options are what a Bot is made of. Name, Token and Cursors are needed.
type Options struct {
	Name    string // configured name
	Token   string // as the developer portal shows it, without "Bot "
	APIURL  string // scheme://host[:port]; DefaultAPIURL when empty
	Cursors connectors.Cursors
	Memory  connectors.Memory    // remembers channels for the backfill; nil: what is missed while no session lives is lost
	Menu    []connectors.Command // registered as slash commands when it has changed; nil leaves them alone
	// Complete returns completions for a command's option. who may be a stranger.
	// Nil: no completions.
	Complete func(ctx context.Context, who core.Peer, command, typed string) []string
	// Form returns the form that a pressed button of kind Form opens. An error's
	// text is shown only to the user who pressed it. The press is not stored, so
	// Form checks who may open it; the submitted form passes the gate. Nil: no forms.
	Form    func(ctx context.Context, in *core.Inbound) (connectors.Form, error)
	Pace    bool                // hold about 5 messages in 5 s per channel; the platform's own limits are obeyed in any case
	Files   fs.FS               // what parts that are files are read from; nil: none can be sent
	Hears   bool                // voice messages are written down; without it one is answered with a plain sentence
	Clock   core.Clock          // core.System
	Log     *slog.Logger        // discarded
	Metrics *Metrics            // unregistered
	Random  func(n int64) int64 // draws from [0, n) for backoff and heartbeat; math/rand/v2

	SendTimeout time.Duration // per REST request; 30 s
}

// A Bot is one bot on Discord. Everything but Run may be called from several
// goroutines at once, whether or not Run runs.
type Bot struct {
	o       Options
	id      string // the bot user's id
	base    string // scheme://host/api/v10
	secure  bool   // the API is https: so must the gateway be
	redact  *strings.Replacer
	render  func(source string) []core.Part
	line    *http.Transport
	api     *rest.Client
	answers *interactions.Responder
	pace    *connectors.Pace[string]
	turns   connectors.Turns[string]
	failing connectors.FileFailures
	decoder *inbound.Decoder
}

var tokenForm = core.Pattern(`^([A-Za-z0-9_-]{10,40})\.[A-Za-z0-9_-]{4,20}\.[A-Za-z0-9_-]{10,120}$`)

// New makes a Bot without asking the platform anything. Invalid: the name, the
// token's form or the URL is wrong; the error never shows the token.
func New(o Options) (*Bot, error) {
	id := tokenID(o.Token)
	if id == "" {
		return nil, core.Errorf(core.Invalid, "the Discord token of bot %q is not of the form xxx.yyy.zzz: copy it again from the developer portal (your application, Bot, Reset Token)", o.Name)
	}
	if o.Name == "" || o.Cursors == nil {
		return nil, core.Errorf(core.Invalid, "a Discord bot needs a name and stored cursors")
	}
	o.setDefaults()
	base, err := url.Parse(strings.TrimRight(o.APIURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.User != nil {
		return nil, core.Errorf(core.Invalid, "the Discord API URL of bot %q is not of the form https://host:port", o.Name)
	}
	_, secret, _ := strings.Cut(o.Token, ".")
	b := &Bot{
		o: o, id: id, base: base.String() + apiPath, secure: base.Scheme == "https",
		redact: strings.NewReplacer(o.Token, "[token]", secret, "[token]", secret[strings.IndexByte(secret, '.')+1:], "[token]"),
		render: markup.NewRenderer(repeatRoom).Render,
		line:   connectors.NewTransport(connectors.MaxConnections),
		pace:   newGate(o.Clock, o.Pace),
	}
	b.api = rest.New(rest.Options{Token: o.Token, Base: b.base, Transport: b.line, Timeout: o.SendTimeout, Redact: b.redact})
	b.answers = interactions.New(interactions.Options{Bot: o.Name, ID: id, Clock: o.Clock, Log: o.Log, Memory: o.Memory, Menu: o.Menu, Complete: o.Complete, Form: o.Form}, b.api)
	b.decoder = inbound.New(inbound.Options{Bot: o.Name, ID: id, Hears: o.Hears, Log: o.Log, Clock: o.Clock, API: b.api, Interactions: b.answers})
	o.Metrics.start(o.Name, o.Clock.Now())
	return b, nil
}

// tokenID returns the bot's id, which is the first part of a token in base64; "" if
// the token has another form.
func tokenID(token string) string {
	m := tokenForm().FindStringSubmatch(token)
	if m == nil {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(m[1])
	if err != nil || !wire.IsID(string(raw)) {
		return ""
	}
	return string(raw)
}

func (o *Options) setDefaults() {
	if o.APIURL == "" {
		o.APIURL = DefaultAPIURL
	}
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Random == nil {
		o.Random = rand.Int64N
	}
	if o.SendTimeout <= 0 {
		o.SendTimeout = 30 * time.Second
	}
}

// Name returns the bot's configured name.
func (b *Bot) Name() string { return b.o.Name }

// Platform returns "discord".
func (b *Bot) Platform() string { return Platform }

// Render makes parts from Markdown, each within markup.MaxText once it is written in
// Discord's own markup.
func (b *Bot) Render(source string) []core.Part { return b.render(source) }

// Close lets idle connections go. It ends no request.
func (b *Bot) Close() error {
	b.line.CloseIdleConnections()
	return nil
}

// Test asks the platform who the token is. Denied: the token is refused. Busy:
// the platform can't be reached or doesn't answer well.
func (b *Bot) Test(ctx context.Context) (username string, err error) {
	var me wire.User
	if f := b.api.Call(ctx, "GET", "/users/@me", nil, &me); f != nil {
		if f.RefusesToken() {
			return "", b.denied("401 " + f.Text)
		}
		return "", core.Errorf(core.Busy, "Discord cannot be asked about bot %s: %s", b.o.Name, f.Error())
	}
	b.decoder.SetUsername(me.Username)
	return me.Username, nil
}

// denied returns the error that ends Run when the token is refused.
func (b *Bot) denied(text string) error {
	return core.Errorf(core.Denied, "Discord refuses the token of bot %s (%s): it was reset or is mistyped. Open https://discord.com/developers/applications, choose the application, press Bot → Reset Token, and replace the old token: a file is read again at once, for a setting restart", b.o.Name, text)
}
