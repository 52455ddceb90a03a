package telegramtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

// Rules of the update queue.
const (
	keepUpdates  = 24 * time.Hour     // [api] "Getting updates": "will not be kept longer than 24 hours"
	idleReset    = 7 * 24 * time.Hour // [api] Update.update_id: after a week without updates the next id is chosen randomly
	maxPolls     = 50 * time.Second   // [server] Client.h LONG_POLL_MAX_TIMEOUT
	maxUpdates   = 100_000            // [td] TQueue.cpp MAX_QUEUE_EVENTS; further ones are lost
	maxPage      = 1 << 22            // bytes of one answer; [server] JsonUpdates
	conflictRest = 3 * time.Second    // [server] fail_query_conflict: one at once, further ones 3 s late
)

// Update kinds that are off unless asked for ([api] getUpdates allowed_updates).
var offByDefault = []string{"chat_member", "message_reaction", "message_reaction_count"}

var updateKinds = []string{
	"message", "edited_message", "channel_post", "edited_channel_post", "business_connection", "business_message",
	"edited_business_message", "deleted_business_messages", "message_reaction", "message_reaction_count", "inline_query",
	"chosen_inline_result", "callback_query", "shipping_query", "pre_checkout_query", "purchased_paid_media", "poll",
	"poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost", "removed_chat_boost",
}

// An update is one queued update; data is its whole JSON, built once.
type update struct {
	id      int64
	data    []byte
	expires time.Time
}

// A poll is one getUpdates that waits.
type poll struct {
	wake chan struct{}
	end  chan *apiError
}

// A bot is one bot account with its queue. Guarded by Server.mu.
type bot struct {
	account  Account
	token    string
	privacy  bool
	commands map[string][]Command // by scope and language

	queue    []update // ids ascend
	nextID   int64
	lastPush time.Time
	allowed  []string // nil is the default set
	poll     *poll
	conflict time.Time // before it a further conflict is answered late
	lastPoll time.Time
	lastFrom int64
	polled   bool
	webhook  string

	pace     meter
	nextMsg  int // message ids of its private chats
	queries  map[int64]*query
	queryAge []int64
}

// A Bot is a bot account, for those who check the platform from outside.
type Bot struct {
	s *Server
	b *bot
}

// Bot returns the first bot.
func (s *Server) Bot() Bot { return Bot{s, s.bots[0]} }

// Bots returns all bots, in the order of Options.
func (s *Server) Bots() []Bot {
	out := make([]Bot, len(s.bots))
	for i, b := range s.bots {
		out[i] = Bot{s, b}
	}
	return out
}

// Account returns what the platform reports of the bot.
func (b Bot) Account() Account { return b.b.account }

// Rename gives the bot another username, as its owner does at @BotFather. The bot is not told.
func (b Bot) Rename(username string) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.b.account.Username = username
}

// Token returns the bot's token; Revoke replaces it.
func (b Bot) Token() string {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.b.token
}

// Pending counts the updates that wait to be fetched or confirmed.
func (b Bot) Pending() int {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.b.expire(b.s.clock.Now())
	return len(b.b.queue)
}

// Polling reports whether a getUpdates waits now.
func (b Bot) Polling() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.b.poll != nil
}

// NextUpdateID returns the id that the next update will have; 0 before the first.
func (b Bot) NextUpdateID() int64 {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.b.nextID
}

// SetNextUpdateID makes the next update's id n, which may lie beyond 2^53.
// A lower id than before forgets what waits, as on the platform, where ids
// only begin again when everything has expired.
func (b Bot) SetNextUpdateID(n int64) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if n < b.b.nextID {
		b.b.queue = nil
	}
	b.b.nextID = n
	b.s.Touch()
}

// IdleWeek lets the bot's update ids begin again, as after a week without any:
// what waits has expired, the next id is random.
func (b Bot) IdleWeek() {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.b.queue = nil
	b.b.nextID = b.s.randomID()
	b.s.Touch()
}

// InjectRaw queues one update's text as it is, except that "{id}" becomes
// the update's id: malformed objects, unknown kinds, huge numbers. It returns
// that id. allowed_updates doesn't matter.
func (b Bot) InjectRaw(raw string) int64 {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.s.queueRaw(b.b, func(id int64) []byte {
		return []byte(strings.ReplaceAll(raw, "{id}", strconv.FormatInt(id, 10)))
	})
}

// Revoke makes the token unknown from now on (401, a waiting poll too) and
// returns the bot's new one.
func (b Bot) Revoke() string {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	old := b.b.token
	number, _, _ := strings.Cut(old, ":")
	fresh := make([]byte, 35)
	for i := range fresh {
		fresh[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[b.s.rand.IntN(62)]
	}
	b.b.token = number + ":" + string(fresh)
	delete(b.s.byToken, old)
	b.s.byToken[b.b.token] = b.b
	b.b.endPoll(errUnauthorized)
	b.s.Touch()
	return b.b.token
}

func (s *Server) addBot(a BotAccount) error {
	number, _, _ := strings.Cut(a.Token, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || s.byBot[id] != nil || s.names[strings.ToLower(a.Username)] != 0 {
		return core.Errorf(core.Invalid, "two bots have the number or the name of %s", a.Username)
	}
	b := &bot{
		account: Account{ID: id, IsBot: true, FirstName: a.Name, Username: a.Username}, token: a.Token, privacy: a.Privacy,
		commands: map[string][]Command{}, queries: map[int64]*query{}, nextMsg: 1,
	}
	s.bots = append(s.bots, b)
	s.byToken[a.Token], s.byBot[id] = b, b
	s.names[strings.ToLower(a.Username)] = id
	return nil
}

// randomID returns a start for update ids within the platform's range
// ([td] TQueue.cpp push).
func (s *Server) randomID() int64 { return 2_000_001 + s.rand.Int64N(1<<30-2_000_001) }

// push queues an update of one kind for b, unless b does not want the kind.
// The kinds wanted count when the update is made ([api] getUpdates:
// allowed_updates "doesn't affect updates created before the call").
func (s *Server) push(b *bot, kind string, payload any) {
	if !b.wants(kind) {
		return
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return
	}
	s.queueRaw(b, func(id int64) []byte {
		data := make([]byte, 0, len(body)+len(kind)+40)
		data = append(data, `{"update_id":`...)
		data = strconv.AppendInt(data, id, 10)
		data = append(data, `,"`+kind+`":`...)
		data = append(data, body...)
		return append(data, '}')
	})
}

func (b *bot) wants(kind string) bool {
	if b.allowed == nil {
		return !slices.Contains(offByDefault, kind)
	}
	return slices.Contains(b.allowed, kind)
}

func (s *Server) queueRaw(b *bot, build func(id int64) []byte) int64 {
	now := s.clock.Now()
	b.expire(now)
	if b.nextID == 0 || !b.lastPush.IsZero() && now.Sub(b.lastPush) >= idleReset {
		b.queue, b.nextID = nil, s.randomID()
	}
	if len(b.queue) >= maxUpdates {
		return 0
	}
	id := b.nextID
	b.nextID++
	b.lastPush = now
	b.queue = append(b.queue, update{id, build(id), now.Add(keepUpdates)})
	s.Touch()
	if b.poll != nil {
		select {
		case b.poll.wake <- struct{}{}:
		default:
		}
	}
	return id
}

func (b *bot) expire(now time.Time) {
	n := 0
	for n < len(b.queue) && !b.queue[n].expires.After(now) {
		n++
	}
	b.drop(n)
}

func (b *bot) drop(n int) {
	if n > 0 {
		clear(b.queue[:n])
		b.queue = b.queue[n:]
	}
}
