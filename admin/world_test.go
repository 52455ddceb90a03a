package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/admin/chats"
	"gatehouse/admin/page"
	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/council/ledger"
	"gatehouse/core/journal"
	"gatehouse/core/memory"
	"gatehouse/core/nodes"
	"gatehouse/core/permission"
	"gatehouse/core/permission/raise"
	"gatehouse/core/project"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
	"gatehouse/web/auth"
)

// A world is every source of the panel in memory, so that a test can put
// anything on a page and see what a page did. broken makes every read fail.
type world struct {
	clock core.Clock

	logged   logWorld
	council  *ledger.Store
	members  []string // of the council
	judge    string
	finish   func(context.Context, ledger.Result) error // of a council
	reports  *reportWorld
	gateways []nodes.Node

	mu       sync.Mutex
	requests []core.PairingRequest
	access   []core.AccessRow
	blocks   []people.Blocked
	places   []places.Row
	others   []people.Person // people without access
	budgets  map[int64]usage.Budget
	monthly  map[int64]usage.Budget
	jobs     map[string]page.Job
	changed  map[string]string // settings
	policies map[string]settings.BotPolicy
	tokens   map[string]string // files, by bot
	added    map[string]bool   // bots, in the panel
	backups  []settings.BackupFile
	job      *page.Job // the backup

	restoring settings.Restoring
	bots      []core.BotState
	depths    []inspect.Depth
	lanes     []inspect.LaneRow
	dead      []inspect.DeadRow
	sends     []inspect.SendRow
	tries     []inspect.SendRow // that are retried
	waits     string            // the conversation in which a message waits
	asks      []ask.Ask
	grants    []permission.GrantRow
	raises    []raise.Raise
	used      []usage.Total
	vault     *vault.Vault // a real one, for files of agents
	agents    *agent.Agents
	servers   []mcp.Health
	chats     chatWorld
	find      *findWorld
	imports   *importWorld
	journal   *journal.Store
	memory    *memory.Store
	projects  projectWorld
	ledger    *attach.Ledger
	garden    project.Project // of Ines
	taxes     project.Project // of the operator
	blame     func(id string, delta int)
	answered  func(c memory.Correction, u memory.Use)
	daily     *dailyWorld
	active    []bus.Info
	level     string // the log's, as the panel has set it
	settings  []settings.Setting
	texts     map[string]string // of the bot family, that were written anew
	keys      *auth.Keys
	rolls     *usage.Rollups
	ada       string    // a conversation in a chat
	mine      string    // one of the operator's, being answered
	since     time.Time // what Usage was asked for
	broken    error
	owner     bool
	invites   []codes.Invitation
	said      []chats.Saying
	files     *attach.Keeper // in vault
	asked     []ask.Question
	did       []string // what was decided, in order
	actors    []core.Actor
	ears      map[chan core.Topic]bool
	topics    []core.Topic // that the newest of them listens to
	asker     int64        // who is asked; 0 is the operator
}

func (w *world) note(by core.Actor, format string, args ...any) {
	w.did = append(w.did, fmt.Sprintf(format, args...))
	w.actors = append(w.actors, by)
}

func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.did)
}

func (w *world) lastActor() core.Actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.actors) == 0 {
		return core.Actor{}
	}
	return w.actors[len(w.actors)-1]
}

// add puts a request in and rings.
func (w *world) add(q core.PairingRequest) {
	w.mu.Lock()
	w.requests = append(w.requests, q)
	w.mu.Unlock()
	w.ring(core.TopicPairing)
}

func (w *world) setBroken(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = err
}

func (w *world) Requests(_ context.Context, status string, limit int) ([]core.PairingRequest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []core.PairingRequest
	for _, q := range slices.Backward(w.requests) {
		if (status == "" || q.Status == status) && len(out) < limit {
			out = append(out, q)
		}
	}
	return out, w.broken
}

func (w *world) HasOwner(context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner, w.broken
}

// decide is compare-and-set on the status, like the book's.
func (w *world) decide(id, from, to string, by core.Actor, trust core.Trust) (core.PairingRequest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.requests {
		q := &w.requests[i]
		if q.ID != id {
			continue
		}
		if from == "pending" && q.Status != "pending" {
			return core.PairingRequest{}, core.Errorf(core.Conflict, "already %s by %s at %s", q.Status, q.ResolvedBy, q.ResolvedAt.UTC().Format("15:04 UTC"))
		}
		if from == "decided" && q.Status == "approved" {
			return core.PairingRequest{}, core.Errorf(core.Conflict, "an approval cannot be undone: revoke the access instead")
		}
		if from == "decided" && w.clock.Now().Sub(q.ResolvedAt) > 10*time.Second {
			return core.PairingRequest{}, core.Errorf(core.Conflict, "too late to undo: a decision can be taken back for 10 seconds")
		}
		q.Blocked, q.Status, q.ResolvedAt, q.ResolvedBy, q.ApprovedTrustLevel = false, to, w.clock.Now(), "operator via "+by.Via, trust
		w.note(by, "%s %s %s", to, id, trust)
		return *q, nil
	}
	return core.PairingRequest{}, core.Errorf(core.NotFound, "there is no request %s", id)
}

func (w *world) Approve(_ context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error) {
	q, err := w.decide(ref, "pending", "approved", by, a.Trust)
	if err == nil {
		w.mu.Lock()
		if !a.ExpiresAt.IsZero() {
			w.note(by, "until %s", core.Stamp(a.ExpiresAt))
		}
		w.access = append(w.access, core.AccessRow{ID: int64(len(w.access) + 100), Bot: q.Bot, User: 9, Display: q.Display, Role: "guest",
			Platform: q.Platform, PlatformUserID: q.PlatformUserID, Scope: q.Scope, Place: q.Place, Trust: a.Trust, ExpiresAt: a.ExpiresAt, By: "operator", At: w.clock.Now()})
		w.mu.Unlock()
	}
	w.ring(core.TopicPairing, core.TopicPeople)
	return q, err
}

func (w *world) Deny(_ context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	q, err := w.decide(ref, "pending", "denied", by, 0)
	w.ring(core.TopicPairing)
	return q, err
}

func (w *world) Block(_ context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	q, err := w.decide(ref, "pending", "denied", by, 0)
	if err == nil {
		w.mu.Lock()
		w.note(by, "block %s", q.PlatformUserID)
		for i := range w.requests {
			w.requests[i].Blocked = w.requests[i].Blocked || w.requests[i].ID == q.ID
		}
		q.Blocked = true
		w.blocks = append(w.blocks, people.Blocked{Platform: q.Platform, PlatformUserID: q.PlatformUserID, Display: q.Display, Bot: q.Bot, By: "operator", At: w.clock.Now()})
		w.mu.Unlock()
	}
	w.ring(core.TopicPairing, core.TopicPeople)
	return q, err
}

func (w *world) Undo(_ context.Context, id string, by core.Actor) (core.PairingRequest, error) {
	q, err := w.decide(id, "decided", "pending", by, 0)
	w.ring(core.TopicPairing)
	return q, err
}

func (w *world) Access(_ context.Context, limit int) ([]core.AccessRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.access[:min(limit, len(w.access))]), w.broken
}

func (w *world) RemoveAccess(_ context.Context, id int64, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.access)
	w.access = slices.DeleteFunc(w.access, func(a core.AccessRow) bool { return a.ID == id })
	if len(w.access) == n {
		return core.Errorf(core.NotFound, "there is no access %d", id)
	}
	w.note(by, "remove %d", id)
	return nil
}

func (w *world) Revoke(_ context.Context, bot, user string, by core.Actor) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.access)
	w.access = slices.DeleteFunc(w.access, func(a core.AccessRow) bool { return a.Bot == bot && a.PlatformUserID == user })
	w.note(by, "revoke %s %s", bot, user)
	return n - len(w.access), nil
}

func (w *world) Blocks(context.Context) ([]people.Blocked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.blocks), w.broken
}

func (w *world) BlockUser(_ context.Context, bot, platform, user string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "block %s %s %s", bot, platform, user)
	w.blocks = append(w.blocks, people.Blocked{Platform: platform, PlatformUserID: user, Bot: bot, By: "operator", At: w.clock.Now()})
	return nil
}

func (w *world) Unblock(_ context.Context, bot, platform, user string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "unblock %s %s %s", bot, platform, user)
	w.blocks = nil
	return nil
}

func (w *world) UndoBlock(_ context.Context, bot, platform, user string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range w.blocks {
		if b.Bot == bot && b.Platform == platform && b.PlatformUserID == user {
			if w.clock.Now().Sub(b.At) > 10*time.Second {
				return core.Errorf(core.Conflict, "a block can be undone for 10 seconds")
			}
			w.blocks = slices.Delete(w.blocks, i, i+1)
			w.note(by, "undo block %s %s %s", bot, platform, user)
			return nil
		}
	}
	return core.Errorf(core.NotFound, "this person is not blocked there any more")
}

func (w *world) Places(context.Context) ([]places.Row, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.places), w.broken
}

func (w *world) Enable(_ context.Context, bot, place, name string, level core.Trust, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "enable %s %s %s", bot, place, level)
	return nil
}

func (w *world) Disable(_ context.Context, bot, place string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "disable %s %s", bot, place)
	return nil
}

func (w *world) States() []core.BotState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.bots)
}

func (w *world) Start(bot string) error { return w.bot("start", bot) }
func (w *world) Stop(bot string) error  { return w.bot("stop", bot) }

func (w *world) bot(verb, bot string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.bots {
		if b.Bot == bot {
			w.note(core.Actor{}, "%s %s", verb, bot)
			return nil
		}
	}
	return core.Errorf(core.NotFound, "there is no bot named %q", bot)
}

func (w *world) Test(_ context.Context, bot string) (string, error) {
	return bot + "_bot", w.bot("test", bot)
}

func (w *world) Depths(context.Context) ([]inspect.Depth, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.depths), w.broken
}

func (w *world) Lanes(_ context.Context, limit int) ([]inspect.LaneRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lanes[:min(limit, len(w.lanes))]), w.broken
}

func (w *world) Dead(_ context.Context, limit int) ([]inspect.DeadRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dead[:min(limit, len(w.dead))]), w.broken
}

func (w *world) Retry(_ context.Context, seq int64, by core.Actor) error {
	return w.row("retry", seq, by)
}

func (w *world) Dismiss(_ context.Context, seq int64, by core.Actor) error {
	return w.row("dismiss", seq, by)
}

func (w *world) row(verb string, seq int64, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.dead)
	w.dead = slices.DeleteFunc(w.dead, func(d inspect.DeadRow) bool { return d.Seq == seq })
	if n == len(w.dead) {
		return core.Errorf(core.NotFound, "no dead message has the number %d", seq)
	}
	w.note(by, "%s %d", verb, seq)
	return nil
}

func (w *world) Unsure(_ context.Context, limit int) ([]inspect.SendRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sends[:min(limit, len(w.sends))]), w.broken
}

func (w *world) SendAgain(_ context.Context, seq int64, by core.Actor) error {
	return w.send("again", seq, by)
}

func (w *world) Settle(_ context.Context, seq int64, by core.Actor) error {
	return w.send("settle", seq, by)
}

func (w *world) Retrying(_ context.Context, limit int) ([]inspect.SendRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tries[:min(limit, len(w.tries))]), w.broken
}

func (w *world) RetryNow(_ context.Context, seq int64, by core.Actor) error {
	return w.send("retry now", seq, by)
}

func (w *world) GiveUp(_ context.Context, seq int64, by core.Actor) error {
	return w.send("give up", seq, by)
}

func (w *world) send(verb string, seq int64, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rows := range []*[]inspect.SendRow{&w.sends, &w.tries} {
		*rows = slices.DeleteFunc(*rows, func(s inspect.SendRow) bool { return s.Seq == seq })
	}
	w.note(by, "%s %d", verb, seq)
	return nil
}

// Listen is the bus's: a bell of its own per listener, closed with ctx.
func (w *world) Listen(ctx context.Context, topics ...core.Topic) <-chan core.Topic {
	c := make(chan core.Topic, 16)
	w.mu.Lock()
	w.topics = topics
	if w.ears == nil {
		w.ears = map[chan core.Topic]bool{}
	}
	w.ears[c] = true
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ears, c)
		close(c)
	})
	return c
}

func (w *world) ring(topics ...core.Topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.ears {
		for _, t := range topics {
			select {
			case c <- t:
			default:
			}
		}
	}
}

// Invites and the two below are the book's.
func (w *world) Invites(context.Context) ([]codes.Invitation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.invites), w.broken
}

func (w *world) Invite(_ context.Context, inv codes.Invitation, by core.Actor) (string, codes.Invitation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "invite to %s", inv.Bot)
	return "ABCD2345", inv, nil
}

func (w *world) RevokeInvite(_ context.Context, id string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "revoke invitation %s", id)
	return nil
}

// preview is the gateway's: a small vault.
func (w *world) preview(_ context.Context, level core.Trust) (core.AccessPreview, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := core.AccessPreview{Agent: "vault-agent", Model: "anthropic/claude-sonnet-4-5", Files: 2, Examples: []string{"Public/allotment.md", "Public/seeds.md"}, Tools: []string{"Read", "Glob", "Grep", "Write", "Edit"},
		Unasked: []string{"read Public/allotment.md", "write in a folder of their own"}, Asks: []string{"change notes of yours"}}
	if level == core.Vault {
		v.Files, v.AtLeast, v.Tools = 18_402, true, append(v.Tools, "Bash", "WebFetch")
	}
	return v, w.broken
}

func (w *world) usage(_ context.Context, since time.Time) ([]usage.Total, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = since
	return slices.Clone(w.used), w.broken
}

// full fills the world with what a busy evening looks like.
func (w *world) full() {
	now := w.clock.Now()
	w.owner = true
	w.evening()
	w.shelf()
	w.talks()
	w.notes()
	w.brought(false)
	w.writes()
	w.about()
	w.quarrel("How deep do I plant potatoes?", "garden.potatoes", "")
	w.members, w.judge = []string{"one/alpha", "two/beta", "three/gamma"}, "anthropic/claude-haiku-4-5"
	w.crashes("the journal was not written", "journal")
	w.grouped()
	w.twoOf()
	w.mornings()
	w.figures()
	w.used = []usage.Total{
		{Model: "anthropic/claude-sonnet-4-5", Calls: 41, Input: 90_211, Output: 20_310, CacheRead: 1_203_388, MicroUSD: 1_840_000},
		{Model: "local/quote", Calls: 12, Input: 1800, Output: 420, Unpriced: 12},
	}
	w.requests = []core.PairingRequest{
		{ID: "d1", Bot: "telegram", Platform: "telegram", PlatformUserID: "39902211", Display: "Ines Carvalho", Scope: core.ScopeDM, Status: "approved", ApprovedTrustLevel: core.Vault, CreatedAt: now.Add(-26 * time.Hour), ResolvedAt: now.Add(-25 * time.Hour), ResolvedBy: "operator via chat"},
		{ID: "d2", Bot: "family", Platform: "telegram", PlatformUserID: "611003377", Display: "crypto_support_77", Scope: core.ScopeDM, Status: "denied", CreatedAt: now.Add(-9 * time.Hour), ResolvedAt: now.Add(-8 * time.Hour), ResolvedBy: "operator via panel"},
		{ID: "d3", Bot: "telegram", Platform: "telegram", PlatformUserID: "9120031", Display: "", Scope: core.ScopeDM, Status: "expired", CreatedAt: now.Add(-15 * 24 * time.Hour), ResolvedAt: now.Add(-24 * time.Hour)},
		{ID: "r1", Bot: "telegram", Platform: "telegram", PlatformUserID: "7214450193", Display: "Ada Okafor", Scope: core.ScopeDM, Status: "pending", Code: "KX7PQ29M", CodeExpiresAt: now.Add(40 * time.Minute), ExpiresAt: now.Add(14 * 24 * time.Hour), CreatedAt: now.Add(-14 * time.Minute), FirstMessage: "Hi! Matteo gave me this bot. Can it tell me when the allotment meeting is, and who brings the seed potatoes?", Held: 3},
		{ID: "r2", Bot: "family", Platform: "telegram", PlatformUserID: "90071992547409931", Display: "سارة محمود", Scope: core.ScopeGroup, Place: "-1001882734410", Status: "pending", Code: "3F8WTRNH", CodeExpiresAt: now.Add(-time.Minute), ExpiresAt: now.Add(14 * 24 * time.Hour), CreatedAt: now.Add(-2 * time.Minute), FirstMessage: "مرحبا، هل يمكنك مساعدتي في تلخيص الملاحظات؟", Held: 1},
	}
	w.access = []core.AccessRow{
		{ID: 1, Bot: "telegram", User: 1, Display: "Matteo", Role: "owner", Platform: "telegram", PlatformUserID: "5501202", Scope: core.ScopeDM, Trust: core.Vault, By: "claim", At: now.Add(-40 * 24 * time.Hour)},
		{ID: 2, Bot: "telegram", User: 2, Display: "Ines Carvalho", Role: "guest", Platform: "telegram", PlatformUserID: "39902211", Scope: core.ScopeDM, Trust: core.Vault, By: "operator via chat", At: now.Add(-25 * time.Hour)},
		{ID: 3, Bot: "family", User: 2, Display: "Ines Carvalho", Role: "guest", Platform: "telegram", PlatformUserID: "39902211", Scope: core.ScopeGroup, Place: "-1001882734410", Trust: core.Sandboxed, ExpiresAt: now.Add(5 * 24 * time.Hour), By: "operator via panel", At: now.Add(-3 * time.Hour)},
		{ID: 4, Bot: "family", User: 3, Display: "Jun-ho Park with a name that goes on for a while", Role: "admin", Platform: "telegram", PlatformUserID: "7700431189", Scope: core.ScopeDM, Trust: core.Sandboxed, By: "operator via panel", At: now.Add(-12 * 24 * time.Hour)},
	}
	w.access = append(w.access, core.AccessRow{ID: 5, Bot: "club", User: 2, Display: "Ines Carvalho", Role: "guest", Platform: "discord", PlatformUserID: "881204417730001", Scope: core.ScopeDM, Trust: core.Vault, By: "operator via chat", At: now.Add(-20 * time.Hour)})
	w.others = []people.Person{{User: 4, Display: "Old Neighbour", Role: "guest", Since: now.Add(-200 * 24 * time.Hour), Accounts: []people.Account{{Platform: "telegram", ID: "1200345", Display: "Old Neighbour", Since: now.Add(-200 * 24 * time.Hour)}}}}
	w.invites = []codes.Invitation{
		{ID: "i1", Bot: "family", Trust: core.Sandboxed, UsesLeft: 4, ExpiresAt: now.Add(6 * 24 * time.Hour), At: now.Add(-24 * time.Hour)},
		{ID: "i2", Bot: "telegram", Trust: core.Vault, Lasts: 24 * time.Hour, UsesLeft: 1, ExpiresAt: now.Add(50 * time.Hour), At: now.Add(-3 * time.Hour)},
	}
	w.texts = map[string]string{"code": "Hello {{.Name}}! This is our family's bot. Your code is {{.Code}}.\n\nTell it to Matteo, and he lets you in."}
	w.backups = []settings.BackupFile{{Name: backupOne, Path: "/srv/gatehouse-backups/" + backupOne, Size: 37_101_004, At: now.Add(-24 * time.Hour), SHA256: strings.Repeat("2c26b46b68ffc68f", 4)}}
	w.blocks = []people.Blocked{{Platform: "telegram", PlatformUserID: "611003377", Display: "Spam Sender", Bot: "*", By: "operator via panel", At: now.Add(-8 * time.Hour)}}
	w.places = []places.Row{
		{Bot: "family", Place: "-1001882734410", Name: "Allotment 14", Enabled: true, Level: core.Sandboxed, Mention: places.MentionContext, By: "operator via chat", At: now.Add(-30 * 24 * time.Hour)},
		{Bot: "telegram", Place: "-1004410022", Name: "Flatmates", At: now.Add(-2 * time.Hour)},
	}
	w.bots = []core.BotState{
		{Bot: "family", Platform: "telegram", State: core.Running, Since: now.Add(-6 * 24 * time.Hour), LastSuccess: now.Add(-4 * time.Second), Username: "park_family_bot"},
		{Bot: "telegram", Platform: "telegram", State: core.Degraded, Reason: "Another program polls with this bot’s token. Stop it, or make a new token with @BotFather.", Since: now.Add(-11 * time.Minute), LastSuccess: now.Add(-90 * time.Second), LastError: "getUpdates: 409 Conflict: terminated by other getUpdates request", Username: "gatehouse_bot"},
		{Bot: "workshop", Platform: "telegram", State: core.FailedPhase, Reason: "Telegram refuses the token. Set a new one and start the bot again.", Since: now.Add(-3 * time.Hour), LastError: "getMe: 401 Unauthorized"},
		{Bot: "old", Platform: "telegram", State: core.Stopped, Since: now.Add(-9 * 24 * time.Hour), LastSuccess: now.Add(-9 * 24 * time.Hour), Username: "old_garden_bot"},
	}
	w.depths = []inspect.Depth{
		{Bot: "family", Ready: 2, Held: 1, OldestReady: 3 * time.Second, OutboxOpen: 1, OutboxOldest: time.Second},
		{Bot: "telegram", Ready: 14, Held: 3, Limited: 6, Dead: 1, OldestReady: 95 * time.Second, OutboxUnknown: 1, OutboxFailed: 1},
	}
	w.lanes = []inspect.LaneRow{
		{Key: "telegram|5501202", Owner: "node-1", Ready: 3, LeaseUntil: now.Add(25 * time.Second)},
		{Key: "telegram|39902211", Ready: 1, NotBefore: now.Add(8 * time.Second)},
		{Key: "family|-1001882734410/17", Ready: 2},
	}
	w.dead = []inspect.DeadRow{{Seq: 8812, Bot: "telegram", Chat: "39902211", Sender: "39902211", Name: "Ines Carvalho", Kind: "message", Text: "Can you turn the minutes into a list of who promised what?", Error: "The model’s provider answered 500 five times in a row.", Attempts: 5, ReceivedAt: now.Add(-50 * time.Minute)}}
	w.tries = []inspect.SendRow{{Seq: 5544, Bot: "family", Chat: "77", Key: "run:0192fa-3c44", Text: "Here is the list for Saturday.", State: "ready",
		Error: "500 Internal Server Error", Attempts: 6, CreatedAt: now.Add(-4 * time.Minute), NotBefore: now.Add(32 * time.Second)}}
	w.sends = []inspect.SendRow{
		{Seq: 5521, Bot: "telegram", Chat: "5501202", Key: "run:0192fa-3c41", Text: "The meeting is on Thursday at seven, in the shed by the gate (Public/allotment.md).", State: "unknown", Error: "The gateway stopped while the reply was on the wire.", Attempts: 1, CreatedAt: now.Add(-33 * time.Minute)},
		{Seq: 5530, Bot: "telegram", Chat: "611003377", Key: "notice:8790", Text: "One moment please: too many messages at once.", State: "failed", Error: "403 Forbidden: bot was blocked by the user", Attempts: 1, CreatedAt: now.Add(-8 * time.Hour)},
	}
}
