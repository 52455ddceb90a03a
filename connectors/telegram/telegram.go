// Package telegram is the connector for the Telegram Bot API
// (https://core.telegram.org/bots/api), by long polling.
//
// The cursor is named "telegram:<numeric bot id>" and holds the next offset. It is
// named by the bot's number and not by its configured name, so that a new token
// under an old name starts afresh. Package inbound documents the ids of updates
// and chats.
package telegram

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/connectors/markdown"
	"gatehouse/connectors/telegram/inbound"
	"gatehouse/core"
)

var (
	_ connectors.Connector    = (*Bot)(nil)
	_ connectors.Platformer   = (*Bot)(nil)
	_ connectors.Typer        = (*Bot)(nil)
	_ connectors.Previewer    = (*Bot)(nil)
	_ connectors.Acknowledger = (*Bot)(nil)
	_ connectors.Pacer        = (*Bot)(nil)
	_ connectors.Tester       = (*Bot)(nil)
	_ connectors.Renderer     = (*Bot)(nil)
	_ connectors.Fetcher      = (*Bot)(nil)
)

const (
	// Platform is the platform's name in every address, row and label.
	Platform = inbound.Platform
	// DefaultAPIURL is the real platform.
	DefaultAPIURL = "https://api.telegram.org"
	// MaxText is the longest text of a message, in UTF-16 units after entity
	// parsing (Bot API, sendMessage).
	MaxText = 4096
)

// Options are what a Bot is made of. Name, Token and Cursors are needed.
type Options struct {
	Name    string // configured name
	Token   string // "<numeric bot id>:<secret>"
	APIURL  string // scheme://host[:port]; DefaultAPIURL when empty
	Cursors connectors.Cursors
	Memory  connectors.Memory    // remembers the menu's hash; nil: the menu is set at each start
	Menu    []connectors.Command // set once per change, after the first good poll; nil leaves the menu alone
	Pace    bool                 // hold the platform's pace (one message a second per chat, …); retry_after is obeyed anyway
	Files   fs.FS                // what parts that are files are read from; nil: none can be sent
	Hears   bool                 // voice messages are written down; without it one is answered with a plain sentence
	Clock   core.Clock           // core.System
	Log     *slog.Logger         // discarded
	Metrics *Metrics             // unregistered
	Random  func(n int64) int64  // draws from [0, n) for backoff; math/rand/v2

	PollTimeout time.Duration // how long a poll waits for updates, whole seconds; 50 s. A poll is cut off 10 s later
	SendTimeout time.Duration // per request that is not a poll; 30 s
}

// A Bot is one bot on Telegram. Everything but Run may be called from
// several goroutines at once, whether or not Run runs.
type Bot struct {
	o        Options
	id       string // numeric, as text
	base     string // of the configured server, without slash at the end
	endpoint string // for tgbotapi: base/bot%s/%s
	redact   *strings.Replacer
	markdown *markdown.Renderer
	polls    *line
	sends    *line
	pace     *connectors.Pace[int64]
	numbers  *draftNumbers
	turns    connectors.Turns[int64]
	failing  connectors.FileFailures
	margin   time.Duration // how much longer than PollTimeout a poll may take
	drafts   atomic.Bool   // the server has sendMessageDraft
	decoder  *inbound.Decoder

	uploadTimeout func(size int64) time.Duration
}

var tokenForm = core.Pattern(`^([1-9][0-9]{0,18}):[A-Za-z0-9_-]+$`)

// New makes a Bot without asking the platform anything. Invalid: the name, the
// token's form or the URL is wrong; the error never shows the token.
func New(o Options) (*Bot, error) {
	m := tokenForm().FindStringSubmatch(o.Token)
	if m == nil {
		return nil, core.Errorf(core.Invalid, "the Telegram token of bot %q is not of the form 123456789:AbC…: copy it again from @BotFather", o.Name)
	}
	if o.Name == "" || o.Cursors == nil {
		return nil, core.Errorf(core.Invalid, "a Telegram bot needs a name and stored cursors")
	}
	o.setDefaults()
	base, err := url.Parse(strings.TrimRight(o.APIURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.User != nil {
		return nil, core.Errorf(core.Invalid, "the Telegram API URL of bot %q is not of the form https://host:port", o.Name)
	}
	number, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the Telegram token of bot %q begins with a number out of range", o.Name)
	}
	b := &Bot{
		o: o, id: m[1], base: base.String(),
		endpoint: strings.ReplaceAll(base.String(), "%", "%%") + "/bot%s/%s",
		redact:   strings.NewReplacer(o.Token, "[token]", url.QueryEscape(o.Token), "[token]", strings.TrimPrefix(o.Token, m[1]+":"), "[token]"),
		markdown: markdown.New(MaxText-repeatRoom, "http", "https", "tg"),
		polls:    newLine(1),
		sends:    newLine(connectors.MaxConnections),
		pace:     newGate(o.Clock, o.Pace),
		numbers:  newDraftNumbers(),
		margin:   pollMargin,

		uploadTimeout: uploadTimeout,
		decoder:       inbound.New(inbound.Options{Bot: o.Name, ID: number, Hears: o.Hears, Log: o.Log}),
	}
	b.drafts.Store(true)
	quietLibrary(o.Log)
	o.Metrics.start(o.Name, o.Clock.Now())
	return b, nil
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
	if o.PollTimeout <= 0 {
		o.PollTimeout = 50 * time.Second
	}
	if o.SendTimeout <= 0 {
		o.SendTimeout = 30 * time.Second
	}
}

// Name returns the bot's configured name.
func (b *Bot) Name() string { return b.o.Name }

// Platform returns "telegram".
func (b *Bot) Platform() string { return Platform }

// repeatRoom is kept free in every part, so that one which must be marked as a
// possible repeat is still within MaxText.
const repeatRoom = 24

// Render makes parts from Markdown, each a little shorter than MaxText.
func (b *Bot) Render(source string) []core.Part { return b.markdown.Render(source) }

// Close lets idle connections go. It ends no request.
func (b *Bot) Close() error {
	b.polls.close()
	b.sends.close()
	return nil
}

// Test asks the platform who the token is (getMe). Denied: the token is
// refused. Busy: the platform can't be reached or doesn't answer well.
func (b *Bot) Test(ctx context.Context) (username string, err error) {
	me, f := b.getMe(ctx, b.sends)
	if f != nil {
		if f.refusesToken() {
			return "", b.denied(f)
		}
		return "", core.Errorf(core.Busy, "Telegram cannot be asked about bot %s: %s", b.o.Name, f.Error())
	}
	return me, nil
}

// denied is the error that ends Run: it reports what an operator can do.
func (b *Bot) denied(f *failure) error {
	if f.code == 404 {
		return core.Errorf(core.Denied, "Telegram knows no bot with the token of %s (404 %s): ask @BotFather for the bot's token (/mybots), and replace the old one: a file is read again at once, for a setting restart. With an own API URL, check that too", b.o.Name, f.text)
	}
	return core.Errorf(core.Denied, "Telegram refuses the token of bot %s (401 %s): it was revoked or is mistyped. Ask @BotFather for a new one (/token), and replace the old one: a file is read again at once, for a setting restart", b.o.Name, f.text)
}

// quiet guards the library's one package variable for a logger.
var quiet sync.Once

// quietLibrary gives the library a logger that can't print a token. The
// library has one for all bots and no lock, so it is set before the first
// request and never again.
func quietLibrary(log *slog.Logger) {
	quiet.Do(func() {
		if err := tgbotapi.SetLogger(libraryLog{log}); err != nil {
			log.Error("telegram library keeps its own logger", "err", err)
		}
	})
}

type libraryLog struct{ log *slog.Logger }

var anyToken = core.Pattern(`[0-9]+:[A-Za-z0-9_-]{10,}`)

func (l libraryLog) Println(v ...any) {
	l.log.Warn("telegram library", "text", anyToken().ReplaceAllString(fmt.Sprint(v...), "[token]"))
}

func (l libraryLog) Printf(format string, v ...any) {
	l.log.Warn("telegram library", "text", anyToken().ReplaceAllString(fmt.Sprintf(format, v...), "[token]"))
}

var errAddress = errors.New("the address is not one of Telegram's")
