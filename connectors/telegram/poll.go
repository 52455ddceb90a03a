package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/core"
)

const (
	pageLimit = 100 // getUpdates: "Values between 1-100 are accepted"
	// offsetLife is how long a cursor is good without an update. The platform
	// numbers updates again after a week without any (Update.update_id); an
	// offset above the new numbers would confirm them all unseen.
	offsetLife = 6 * 24 * time.Hour
	// silence is how long polls may remain unanswered before the transport is
	// replaced: a connection can break without an error.
	silence = 120 * time.Second
	// conflictWait bounds the wait after a 409: the other poller is usually our
	// own former self, gone within half a minute.
	conflictWait = 10 * time.Second
	pollMargin   = 10 * time.Second
	// maxPollPause bounds the pause that the platform may ask of the poll: it keeps updates for a day.
	maxPollPause = time.Hour
)

// allowed names every kind of update we take. Without a list the platform
// leaves out reactions and member changes (getUpdates, allowed_updates).
const allowed = `["message","edited_message","channel_post","edited_channel_post","callback_query","message_reaction","my_chat_member","chat_member"]`

// Run polls for updates until ctx ends; see connectors.Connector. A page is Put with the
// offset after it, and only then is that offset requested, which confirms the page to
// the platform. Run returns early only if the platform refuses the token (core.Denied);
// it waits for everything else.
func (b *Bot) Run(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
	p := &poller{bot: b, in: in, report: report, answered: b.o.Clock.Now()}
	defer p.tasks.Wait()
	for ctx.Err() == nil {
		err := p.step(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if core.KindOf(err) == core.Denied {
			return err
		}
		wait := p.trouble(err)
		b.o.Log.WarnContext(ctx, "telegram poll", "bot", b.o.Name, "err", err, "failures", p.failures, "retry_in", wait)
		core.Sleep(ctx, b.o.Clock, wait)
	}
	return ctx.Err()
}

// A poller is the state of one Run.
type poller struct {
	bot    *Bot
	in     connectors.Inbox
	report func(core.BotState)
	tasks  sync.WaitGroup

	loaded   bool      // offset and fresh are read
	offset   int64     // next; 0 is none
	fresh    time.Time // when the last update came
	well     bool      // the last poll succeeded
	rivals   bool      // the last poll ended with 409
	failures int       // polls that failed, since the last good one
	stuck    int       // stores that failed, since the last good one
	answered time.Time // when any poll was last answered, well or not
	menu     bool      // the command menu was looked after
	named    time.Time // when the bot's name was asked last; zero: not in this Run
}

// nameLife is how long a name is relied on: its owner may change it at any time.
const nameLife = 24 * time.Hour

// errStore is a fault on our side: the platform is well.
type errStore struct{ err error }

func (e errStore) Error() string { return "store updates: " + e.err.Error() }

// step does the next thing that is to be done.
func (p *poller) step(ctx context.Context) error {
	b := p.bot
	if !p.loaded {
		if err := p.load(ctx); err != nil {
			return errStore{err}
		}
	}
	if _, known := b.decoder.Username(); !known || b.o.Clock.Now().Sub(p.named).Abs() >= nameLife {
		if _, f := b.getMe(ctx, b.polls); f != nil && !known {
			return p.failed(f)
		}
		p.named = b.o.Clock.Now()
	}
	page, f := p.poll(ctx)
	if f != nil {
		return p.failed(f)
	}
	now := b.o.Clock.Now()
	p.failures, p.well, p.rivals, p.answered = 0, true, false, now
	b.o.Metrics.polled(b.o.Name, now)
	p.setMenu(ctx)
	if err := p.put(ctx, page); err != nil {
		p.well = false
		return err
	}
	p.stuck = 0
	name, _ := b.decoder.Username()
	p.report(core.BotState{State: core.Running, LastSuccess: now, Username: name})
	return nil
}

// load reads the cursor that the last Put stored.
func (p *poller) load(ctx context.Context) error {
	value, updated, err := p.bot.o.Cursors.Cursor(ctx, p.bot.cursorName())
	if err != nil {
		return err
	}
	if value != "" {
		if p.offset, err = strconv.ParseInt(value, 10, 64); err != nil {
			p.offset = 0 // damaged: poll without one, dedupe decides
			p.bot.o.Log.WarnContext(ctx, "cursor ignored", "bot", p.bot.o.Name, "err", err)
		}
	}
	p.fresh, p.loaded = updated, true
	return nil
}

func (b *Bot) cursorName() string { return "telegram:" + b.id }

// poll asks for one page. After a start or a failure it asks without waiting,
// so that the state is known at once; but not after a 409, which only a poll
// that waits can meet again.
func (p *poller) poll(ctx context.Context) ([]json.RawMessage, *failure) {
	b := p.bot
	seconds := 0
	if p.well || p.rivals {
		seconds = int(b.o.PollTimeout / time.Second)
	}
	params := tgbotapi.Params{
		"timeout":         strconv.Itoa(seconds),
		"limit":           strconv.Itoa(pageLimit),
		"allowed_updates": allowed,
	}
	if p.offset != 0 && b.o.Clock.Now().Sub(p.fresh) <= offsetLife {
		params["offset"] = strconv.FormatInt(p.offset, 10)
	}
	raw, f := b.call(ctx, b.polls, b.o.PollTimeout+b.margin, "getUpdates", params)
	if f != nil {
		return nil, f
	}
	var page []json.RawMessage
	if bytes.Equal(raw, []byte("[]")) {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, &failure{status: 200, text: "the answer to getUpdates is no list"}
	}
	return page, nil
}

// put stores a page and moves the offset after it. A poll without an offset may return
// a page that was stored before; duplicates are dropped.
func (p *poller) put(ctx context.Context, raw []json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	now := p.bot.o.Clock.Now()
	page, last := make([]core.Inbound, 0, len(raw)), int64(0)
	for _, r := range raw {
		in, id := p.bot.decoder.Decode(r, now)
		page = append(page, in)
		last = max(last, id)
	}
	next := last + 1
	if last == 0 {
		// Not one id can be read. Ids are sequential, so the oldest of these is
		// the one that the present offset names: step over that one alone.
		next = p.offset + 1
	}
	cursor := &core.Cursor{Name: p.bot.cursorName(), Value: strconv.FormatInt(next, 10)}
	if err := p.in.Put(ctx, page, cursor); err != nil {
		return errStore{err}
	}
	p.offset, p.fresh = next, now
	if last == 0 {
		return fmt.Errorf("%d updates without a readable id", len(raw)) // go on, but slowly
	}
	return nil
}

// failed notes that a poll came to nothing, and has the transport rebuilt when
// nothing at all has come back for long.
func (p *poller) failed(f *failure) error {
	b := p.bot
	p.well, p.rivals = false, f.code == 409
	if f.status != 0 {
		p.answered = b.o.Clock.Now()
	} else if b.o.Clock.Now().Sub(p.answered) >= silence {
		b.o.Log.Warn("telegram poll: no answer for too long, reconnecting", "bot", b.o.Name)
		b.polls.rebuild()
		p.answered = b.o.Clock.Now()
	}
	if f.refusesToken() {
		return b.denied(f)
	}
	return f
}

// trouble counts and reports a failure, and returns how long to wait.
func (p *poller) trouble(err error) time.Duration {
	b := p.bot
	s := core.BotState{State: core.Reconnecting, LastError: b.redact.Replace(err.Error())}
	var store errStore
	if errors.As(err, &store) {
		p.stuck++
		s.State, s.Reason = core.Degraded, "updates cannot be stored; Telegram keeps them until they can"
		p.report(s)
		return connectors.Backoff(p.stuck, b.o.Random)
	}
	p.failures++
	wait := connectors.Backoff(p.failures, b.o.Random)
	var f *failure
	switch {
	case !errors.As(err, &f):
		s.Reason = "Telegram's answer is invalid"
	case f.after > 0:
		wait = min(f.after, maxPollPause)
		b.o.Metrics.asked(b.o.Name, wait)
		s.State, s.Reason = core.Degraded, fmt.Sprintf("Telegram asks to wait %v", wait)
	case f.code == 409:
		wait = min(wait, conflictWait)
		s.State, s.Reason = core.Degraded, conflict(f.text)
	case f.status != 0:
		s.Reason = "Telegram answers with an error; trying again"
	default:
		s.Reason = "Telegram cannot be reached; retrying"
	}
	p.report(s)
	return wait
}

// conflict returns the reason for a 409: a webhook, or another poller.
func conflict(text string) string {
	if bytes.Contains([]byte(text), []byte("webhook")) {
		return "a webhook is set for this bot, so Telegram sends no updates here: remove it (deleteWebhook), or use another bot"
	}
	return "another program polls with this bot's token; normal for half a minute after a restart, else stop the other one or revoke the token"
}

// setMenu looks after the command menu once per Run, next to the polling.
func (p *poller) setMenu(ctx context.Context) {
	b := p.bot
	if p.menu || b.o.Menu == nil {
		return
	}
	p.menu = true
	connectors.Go(&p.tasks, b.o.Log, b.o.Name, "set the menu", func() {
		if err := b.SetCommands(ctx, b.o.Menu); err != nil && ctx.Err() == nil {
			b.o.Log.WarnContext(ctx, "command menu not set", "bot", b.o.Name, "err", err)
		}
	})
}
