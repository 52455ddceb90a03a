package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/readback"
	"gatehouse/connectors/discord/rest"
	"gatehouse/core"
)

const (
	// intents are the kinds of events requested, together with messageContent, which
	// the owner must enable in the developer portal.
	intents = int(discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
		discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions)
	messageContent = int(discordgo.IntentMessageContent)

	// identifyEvery is the least time between two IDENTIFYs (Gateway, Sharding,
	// max_concurrency: one in 5 seconds).
	identifyEvery = 5 * time.Second
	// steady is how long a connection must have lived before the failures
	// before it are forgotten.
	steady = time.Minute
	// strayed is after how many failures in a row the session's own address is
	// given up for the general one.
	strayed = 3
	// farewell is how long the last writes of a Run may take.
	farewell = 2 * time.Second
)

// A place in the stream as the cursor holds it.
type position struct {
	gateway.Session
	Application string `json:"app,omitempty"`
	Limited     bool   `json:"limited,omitempty"` // identified without message content
}

// Run receives until ctx ends; see connectors.Connector. A page of events is Put with
// the session's position and only then counts as received: heartbeats and RESUME name
// the last stored event. Run returns early only if the platform refuses the bot
// permanently (core.Denied); it waits for everything else.
func (b *Bot) Run(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
	r := &receiver{bot: b, in: in, report: report, marks: connectors.NewLRU[string, *mark](maxMarks), intake: newIntake()}
	r.back = readback.New(readback.Options{Bot: b.o.Name, API: b.api, Decode: b.decoder.Decode, Clock: b.o.Clock, Random: b.o.Random, Log: b.o.Log, Beside: r.beside})
	defer r.tasks.Wait()
	defer r.leave(ctx)
	for ctx.Err() == nil {
		began := b.o.Clock.Now()
		err := r.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if core.KindOf(err) == core.Denied {
			return err
		}
		if r.up.Swap(false) && b.o.Clock.Now().Sub(began) >= steady {
			r.failures = 0
		}
		wait := r.trouble(err)
		level := slog.LevelWarn
		if errors.As(err, new(gateway.Invalid)) { // an expired session is not a fault
			level = slog.LevelInfo
		}
		b.o.Log.Log(ctx, level, "discord gateway", "bot", b.o.Name, "err", b.redact.Replace(err.Error()), "failures", r.failures, "retry_in", wait)
		core.Sleep(ctx, b.o.Clock, wait)
	}
	return ctx.Err()
}

// A receiver is the state of one Run. Its fields belong to process while a connection
// is open, and to Run between two connections.
type receiver struct {
	bot    *Bot
	in     connectors.Inbox
	report func(core.BotState)
	tasks  sync.WaitGroup
	intake *intake

	loaded     bool
	at         position
	kept       time.Time // when the position was last stored
	keptSeq    int64
	seen       int64 // the last event that came; beyond at.Seq are those that are held
	marks      *connectors.LRU[string, *mark]
	marksDirty bool
	marksSaved time.Time
	back       *readback.Reader
	gone       string // a channel that is gone: what was held of it is being stored, and does not record it again
	stuck      int    // stores that failed, since the last good one

	stored     atomic.Int64 // at.Seq, for the heartbeat
	up         atomic.Bool  // READY or RESUMED came
	noContent  bool         // the portal does not allow message content
	failures   int
	identified time.Time // not before the platform had the last IDENTIFY
}

// once makes one connection and stays until it has ended and all that came
// over it is stored.
func (r *receiver) once(ctx context.Context) error {
	b := r.bot
	if err := r.load(ctx); err != nil {
		return errStore{err}
	}
	address, err := r.address(ctx)
	if err != nil {
		return err
	}
	resuming := r.at.ID != ""
	if !resuming {
		if !core.Sleep(ctx, b.o.Clock, r.identified.Add(identifyEvery).Sub(b.o.Clock.Now())) {
			return ctx.Err()
		}
		r.at.Limited = r.noContent
	}
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	over, done := make(chan struct{}), make(chan error, 1)
	r.intake.clear()
	r.seen = r.at.Seq
	r.back.Begin()
	session, wanted := r.at.Session, r.intents()
	go func() {
		defer cancel()
		done <- r.process(ctx, over)
	}()
	err = gateway.Config{
		Token: b.o.Token, Intents: wanted, Clock: b.o.Clock, Random: b.o.Random, Log: b.o.Log,
		Take: r.intake.take, Stored: r.stored.Load,
		Alive: func() {
			b.o.Metrics.alive(b.o.Name, b.o.Clock.Now())
			r.report(core.BotState{LastSuccess: b.o.Clock.Now()})
		},
	}.Run(live, address, session)
	if ctx.Err() == nil && live.Err() == nil {
		r.report(core.BotState{State: core.Reconnecting, Reason: "the connection to Discord ended; connecting again", LastError: b.redact.Replace(err.Error())})
	}
	close(over)
	failed := <-done
	if !resuming && !r.up.Load() { // else greet has noted it
		r.identified = b.o.Clock.Now()
	}
	if failed != nil {
		return failed
	}
	return r.ended(err, resuming)
}

func (r *receiver) intents() int {
	if r.at.Limited {
		return intents
	}
	return intents | messageContent
}

// address returns the gateway's address: the session's own, or the one that the
// platform names together with the number of sessions that may be started.
func (r *receiver) address(ctx context.Context) (string, error) {
	b := r.bot
	if r.at.ID != "" && r.at.URL != "" && r.failures < strayed {
		return r.at.URL, b.trusted(r.at.URL)
	}
	var told discordgo.GatewayBotResponse
	if f := b.api.Call(ctx, "GET", "/gateway/bot", nil, &told); f != nil {
		if f.RefusesToken() {
			return "", b.denied("401 " + f.Text)
		}
		return "", f
	}
	limit := told.SessionStartLimit
	if r.at.ID == "" && limit.Total > 0 && limit.Remaining <= 0 {
		return "", errNoStarts{time.Duration(max(limit.ResetAfter, 1000)) * time.Millisecond}
	}
	return told.URL, b.trusted(told.URL)
}

// trusted refuses a gateway without encryption where the API has it: the
// token would be readable on the way.
func (b *Bot) trusted(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || b.secure && u.Scheme != "wss" {
		return errors.New("the platform names a gateway that is not of the form wss://host")
	}
	return nil
}

// errNoStarts means that the day's new sessions are used up.
type errNoStarts struct{ wait time.Duration }

func (e errNoStarts) Error() string { return fmt.Sprintf("no new session may begin for %v", e.wait) }

// errStore is a fault on our side: the platform is well.
type errStore struct{ err error }

func (e errStore) Error() string { return "store updates: " + e.err.Error() }

// fatal are close codes that connecting again can't cure, and what can.
var fatal = map[int]string{
	gateway.CloseInvalidShard:    "Discord refuses the connection's shard (4010): this is a fault in the gateway program, please report it",
	gateway.CloseShardingNeeded:  "the bot is in too many servers for one connection (4011): remove it from some (Discord asks for sharding from 2,500 on), then restart",
	gateway.CloseInvalidVersion:  "Discord does not support gateway version " + gateway.Version + " (4012): update the gateway program",
	gateway.CloseInvalidIntents:  "Discord does not know the requested intents (4013): update the gateway program",
	gateway.CloseDisallowIntents: "Discord does not allow the intents that are asked for (4014): open https://discord.com/developers/applications, choose the application, Bot → Privileged Gateway Intents, switch on what is off there (Message Content Intent), then restart the bot",
}

const contentOff = "the Message Content Intent is off, so the bot reads only direct messages and messages that mention it. To let it read all: https://discord.com/developers/applications, choose the application, Bot → Privileged Gateway Intents → Message Content Intent, then stop and start the bot"

// ended draws the conclusions from how a connection ended.
func (r *receiver) ended(err error, resuming bool) error {
	var closed gateway.Closed
	var invalid gateway.Invalid
	lost := false
	switch {
	case errors.As(err, &closed):
		switch code := closed.Code; {
		case code == gateway.CloseAuthentication:
			return r.bot.denied("gateway close code 4004")
		case code == gateway.CloseDisallowIntents && !r.at.Limited:
			r.noContent, lost = true, true
		case fatal[code] != "":
			return core.Errorf(core.Denied, "%s", fatal[code])
		default:
			lost = code == gateway.CloseNotAuthenticated || code == gateway.CloseInvalidSeq || code == gateway.CloseSessionTimedOut
		}
	case errors.As(err, &invalid):
		lost = !invalid.Resumable
	}
	if lost {
		if resuming {
			r.bot.o.Metrics.resume(r.bot.o.Name, refused)
		}
		r.forget()
	}
	return err
}

// forget gives the session up: the next connection identifies itself.
func (r *receiver) forget() {
	r.at = position{Application: r.at.Application}
	r.stored.Store(0)
}

// trouble counts and reports a failure, and returns how long to wait.
func (r *receiver) trouble(err error) time.Duration {
	b := r.bot
	s := core.BotState{State: core.Reconnecting, LastError: b.redact.Replace(err.Error())}
	var store errStore
	if errors.As(err, &store) {
		r.stuck++
		s.State, s.Reason = core.Degraded, storeReason
		r.report(s)
		return connectors.Backoff(r.stuck, b.o.Random)
	}
	r.failures++
	wait := connectors.Backoff(r.failures, b.o.Random)
	var f *rest.Failure
	var starts errNoStarts
	var invalid gateway.Invalid
	switch {
	case errors.As(err, &starts):
		wait = starts.wait
		s.State, s.Reason = core.Degraded, fmt.Sprintf("Discord allows no new session for %v: the bot connected too often today", wait)
	case errors.As(err, &f) && (f.After > 0 || f.Status == 429):
		wait = cmp.Or(f.After, connectors.UnnamedWait)
		b.o.Metrics.asked(b.o.Name, wait)
		s.State, s.Reason = core.Degraded, fmt.Sprintf("Discord asks to wait %v", wait)
	case errors.As(err, &f) && f.Status != 0:
		s.Reason = "Discord answers with an error; trying again"
	case errors.As(err, &f):
		s.Reason = "Discord cannot be reached; retrying"
	case errors.As(err, &invalid):
		// "wait a random amount of time between 1 and 5 seconds" (Resuming)
		wait = max(wait, time.Second+time.Duration(b.o.Random(int64(4*time.Second))))
		s.Reason = "Discord has given the session up; beginning a new one"
	default:
		s.Reason = "the connection to Discord ended; connecting again"
	}
	r.report(s)
	return wait
}

const storeReason = "updates cannot be stored; Discord keeps them until they can, for as long as it keeps them"

// cursorName names both the cursor and the memory of channels.
func (b *Bot) cursorName() string { return "discord:" + b.id }

// load reads where the last Run stopped.
func (r *receiver) load(ctx context.Context) error {
	b := r.bot
	if r.loaded {
		return nil
	}
	value, _, err := b.o.Cursors.Cursor(ctx, b.cursorName())
	if err != nil {
		return err
	}
	if value != "" && json.Unmarshal([]byte(value), &r.at) != nil {
		r.at = position{} // damaged: begin a session; the channels are read back
		b.o.Log.WarnContext(ctx, "cursor ignored", "bot", b.o.Name)
	}
	if err := r.loadMarks(ctx); err != nil {
		return err
	}
	if r.at.Limited && r.contentAllowed(ctx) {
		r.forget() // the owner enabled it: a new session gets message content
	}
	r.noContent = r.at.Limited
	r.stored.Store(r.at.Seq)
	r.keptSeq, r.kept, r.loaded = r.at.Seq, b.o.Clock.Now(), true
	return nil
}

// contentAllowed asks whether the portal allows message content (Application
// Flags: GATEWAY_MESSAGE_CONTENT and …_LIMITED).
func (r *receiver) contentAllowed(ctx context.Context) bool {
	var app struct {
		Flags int64 `json:"flags"`
	}
	return r.bot.api.Call(ctx, "GET", "/applications/@me", nil, &app) == nil && app.Flags&(1<<18|1<<19) != 0
}

// leave stores what a Run that ends has not stored yet, so that the next one
// goes on right behind it.
func (r *receiver) leave(ctx context.Context) {
	if !r.loaded {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if r.at.ID != "" && r.at.Seq != r.keptSeq {
		if err := r.in.Put(ctx, nil, r.cursor(r.at.Seq)); err != nil {
			r.bot.o.Log.WarnContext(ctx, "position not stored", "bot", r.bot.o.Name, "err", err)
		}
	}
	r.saveMarks(ctx, true)
}
