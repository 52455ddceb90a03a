package telegram

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/core"
)

// Preview shows an answer that is not final; see connectors.Previewer. In
// private chats it is a draft (sendMessageDraft: it fades on its own and gives
// way to the next message), so id stays "". Elsewhere, and where the server
// has no drafts, it is a silent message edited in place.
func (b *Bot) Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error) {
	t, err := parseTarget(to)
	if err != nil {
		return id, err
	}
	if id != "" && part.Text == "" {
		return "", b.takeAway(ctx, t, id)
	}
	end, ok := b.turns.Preview(t.chat)
	if !ok {
		return id, connectors.ErrNotNow
	}
	if !b.pace.Try(t.chat, 1) {
		end()
		return id, connectors.ErrNotNow
	}
	short, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	shown, err := b.preview(short, t, id, part)
	if end() && id == "" && shown != "" {
		// A final came in the meantime, which can't know of this new message.
		return "", b.takeAway(ctx, t, shown)
	}
	return shown, err
}

func (b *Bot) takeAway(ctx context.Context, t target, id string) error {
	_, f := b.call(ctx, b.sends, b.o.SendTimeout, "deleteMessage", tgbotapi.Params{"chat_id": t.params()["chat_id"], "message_id": id})
	return asError(f)
}

// previewTimeout is how long a preview may take.
const previewTimeout = 5 * time.Second

func (b *Bot) preview(ctx context.Context, t target, id string, part core.Part) (string, error) {
	if id == "" && t.private() && b.drafts.Load() {
		if err := b.draft(ctx, t, part); err != errNoDrafts {
			return "", err
		}
	}
	var f *failure
	if id == "" {
		if id, f = b.send(ctx, t, part, true); f.doubtful() {
			return "", fmt.Errorf("%w: %w", core.ErrInDoubt, f)
		}
	} else {
		f = b.edit(ctx, t, id, part)
	}
	return id, b.dropped(t, f)
}

// errNoDrafts means that the server has no drafts (for this bot).
var errNoDrafts = errors.New("the server has no drafts")

// dropped turns a refusal for pace into ErrNotNow.
func (b *Bot) dropped(t target, f *failure) error {
	if f != nil && (f.code == 429 || f.status == 429) {
		b.hold(t, cmp.Or(f.after, connectors.UnnamedWait))
		return connectors.ErrNotNow
	}
	return asError(f)
}

// draftNumbers are the numbers of the drafts that are in chats. The chat that
// was idle longest is forgotten: its next draft has the number of its first.
type draftNumbers struct {
	mu    sync.Mutex
	ended *connectors.LRU[int64, int64] // how many, by chat
}

func newDraftNumbers() *draftNumbers {
	return &draftNumbers{ended: connectors.NewLRU[int64, int64](10_000)}
}

// now returns the number of the draft that is in the chat, from 1 on.
func (d *draftNumbers) now(chat int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _ := d.ended.Get(chat)
	return n + 1
}

// end gives the chat's next draft a new number.
func (d *draftNumbers) end(chat int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _ := d.ended.Get(chat)
	d.ended.Put(chat, n+1)
}

// draft shows part as a draft. Drafts of one number are animated into one
// another; the number changes with each message sent to the chat. A server
// that has no drafts, or not for this bot, is not asked again.
func (b *Bot) draft(ctx context.Context, t target, part core.Part) error {
	p := t.params()
	addText(p, part)
	p["draft_id"] = strconv.FormatInt(b.numbers.now(t.chat), 10)
	_, f := b.callPlain(ctx, "sendMessageDraft", p)
	if f != nil && f.noDrafts() {
		b.drafts.Store(false)
		b.o.Log.InfoContext(ctx, "no drafts on this server: previews are edited messages", "bot", b.o.Name, "reason", f.text)
		return errNoDrafts
	}
	return b.dropped(t, f)
}

// noDrafts reports whether the bot cannot send drafts at all, as opposed to now: an
// unknown method is 404, a bot that may not stream gets TEXTDRAFT_PEER_INVALID or an
// error about its forum topic mode (Bot API 9.3; since 9.5 every bot may).
func (f *failure) noDrafts() bool {
	if f.code == 404 {
		return true
	}
	text := strings.ToLower(f.text)
	return f.code == 400 && (strings.Contains(text, "textdraft") || strings.Contains(text, "draft can't") ||
		strings.Contains(text, "method") || strings.Contains(text, "topic mode") || strings.Contains(text, "not supported"))
}

// Typing shows "typing…" for five seconds (sendChatAction).
func (b *Bot) Typing(ctx context.Context, to core.Address) error {
	t, err := parseTarget(to)
	if err != nil {
		return err
	}
	if !b.pace.Try(t.chat, typingShare) {
		return connectors.ErrNotNow
	}
	p := t.params()
	p["action"] = "typing"
	_, f := b.call(ctx, b.sends, b.o.SendTimeout, "sendChatAction", p)
	return b.dropped(t, f)
}

// maxNotice is the longest text shown over a pressed button
// (answerCallbackQuery: 0-200 characters).
const maxNotice = 200

// Acknowledge answers a pressed button. One that waited too long (the
// platform keeps them for seconds to minutes) needs no answer any more.
func (b *Bot) Acknowledge(ctx context.Context, _ core.Address, callbackID, text string) error {
	p := tgbotapi.Params{"callback_query_id": callbackID}
	if text != "" {
		if r := []rune(text); len(r) > maxNotice {
			text = string(r[:maxNotice-1]) + "…"
		}
		p["text"] = text
	}
	_, f := b.call(ctx, b.sends, b.o.SendTimeout, "answerCallbackQuery", p)
	if f != nil && f.code == 400 && (strings.Contains(f.text, "query is too old") || strings.Contains(f.text, "QUERY_ID_INVALID")) {
		return nil
	}
	return asError(f)
}

// SetCommands sets the bot's command menu (setMyCommands, at most 100), unless
// Memory means that this very menu was set before.
func (b *Bot) SetCommands(ctx context.Context, menu []connectors.Command) error {
	type entry struct {
		Name        string `json:"command"`
		Description string `json:"description"`
	}
	list := make([]entry, 0, len(menu))
	for _, c := range menu {
		list = append(list, entry{c.Name, c.Description})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	key, hash := "telegram:"+b.id+":menu", hex.EncodeToString(sum[:])
	if b.o.Memory != nil {
		if was, err := b.o.Memory.Load(ctx, key); err != nil || was == hash {
			return err
		}
	}
	if _, f := b.call(ctx, b.sends, b.o.SendTimeout, "setMyCommands", tgbotapi.Params{"commands": string(raw)}); f != nil {
		return f
	}
	if b.o.Memory == nil {
		return nil
	}
	return b.o.Memory.Save(ctx, key, hash)
}
