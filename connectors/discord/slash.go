package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// askCommand begins a turn like a message does; its option is the question.
const askCommand = "ask"

const (
	maxAbout   = 100              // Application Command Structure, description
	maxChoices = 25               // Interaction Callback Data, autocomplete
	maxChoice  = 100              // characters of one, name and value
	slotLife   = 14 * time.Minute // Interaction Callback: a token lives for 15 minutes
	slotIdle   = time.Minute      // how long "thinking…" may stand with nothing to say
	maxSlots   = 1000             // open at once; of further ones nobody takes the sign away
)

// A slash is one command as the platform registers it.
type slash struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Type        int           `json:"type"`
	Options     []slashOption `json:"options,omitempty"`
}

type slashOption struct {
	Type         int    `json:"type"` // 3: string
	Name         string `json:"name"`
	Description  string `json:"description"`
	Required     bool   `json:"required,omitempty"`
	Autocomplete bool   `json:"autocomplete,omitempty"`
}

// slashes are the commands of the menu, and /ask.
func slashes(menu []connectors.Command) []slash {
	out := []slash{{askCommand, texts.Text("about_ask"), 1, []slashOption{{Type: 3, Name: "question", Description: texts.Text("args_ask"), Required: true}}}}
	for _, c := range menu {
		s := slash{Name: c.Name, Description: cutRunes(c.Description, maxAbout), Type: 1}
		if c.Args != "" {
			s.Options = []slashOption{{Type: 3, Name: "words", Description: cutRunes(c.Args, maxAbout), Autocomplete: c.Completes}}
		}
		out = append(out, s)
	}
	return out
}

func cutRunes(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// deploy registers the menu as slash commands when it is another one than the
// platform was last given: there is a daily bound on registrations.
func (b *Bot) deploy(ctx context.Context, application string) {
	if b.o.Menu == nil || !isID(application) {
		return
	}
	list := slashes(b.o.Menu)
	raw, err := json.Marshal(list)
	if err != nil {
		return
	}
	sum := sha256.Sum256(raw)
	key, hash := "discord:"+b.id+":commands", hex.EncodeToString(sum[:])
	if b.o.Memory != nil {
		if known, err := b.o.Memory.Load(ctx, key); err == nil && known == hash {
			return
		}
	}
	if f := b.call(ctx, http.MethodPut, "/applications/"+application+"/commands", list, nil); f != nil {
		if ctx.Err() == nil {
			b.o.Log.WarnContext(ctx, "discord slash commands not set; commands typed as text work", "bot", b.o.Name, "err", f)
		}
		return
	}
	if b.o.Memory != nil {
		if err := b.o.Memory.Save(ctx, key, hash); err != nil {
			b.o.Log.WarnContext(ctx, "discord slash commands will be set again", "bot", b.o.Name, "err", err)
		}
	}
}

// command reads a used slash command into in.
func (i *interaction) command(in *core.Inbound) {
	var words []string
	for _, o := range i.Data.Options {
		var s string
		if json.Unmarshal(o.Value, &s) == nil && strings.TrimSpace(s) != "" {
			words = append(words, strings.TrimSpace(s))
		}
	}
	in.Text, in.Addressed, in.MessageID = strings.Join(words, " "), true, i.ID
	in.Slot = slotPrefix + i.ID + "/" + i.Application + "/" + i.Token
	if i.Data.Name == askCommand {
		in.Kind = core.KindMessage
		return
	}
	in.Kind, in.Command = core.KindCommand, strings.ToLower(i.Data.Name)
}

// slotPrefix marks a slot among the ids of messages. Behind it stand
// interaction, application and token, as in a callback's id.
const slotPrefix = "slot:"

// slots are the slash commands whose "thinking…" stands in a chat and waits
// for the answer; at most maxSlots.
type slots struct {
	mu   sync.Mutex
	open map[string]bool
}

func (s *slots) add(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSlots {
		return false
	}
	if s.open == nil {
		s.open = map[string]bool{}
	}
	s.open[slot] = true
	return true
}

// take reports whether slot is open, and closes it.
func (s *slots) take(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.open[slot]
	delete(s.open, slot)
	return ok
}

// think tells the platform that a slash command, which is stored, was heard:
// "thinking…" stands there until the answer comes. What is nobody else's
// business is seen by who asked alone. Where nothing comes, the sign goes.
func (b *Bot) think(ctx context.Context, in *core.Inbound) {
	id := strings.TrimPrefix(in.Slot, slotPrefix)
	defer b.acks.drop([]string{id})
	interaction, _, token, ok := press(id)
	if !ok {
		return
	}
	data := map[string]any{}
	if in.Aside != "" {
		data["flags"] = int(discordgo.MessageFlagsEphemeral)
	}
	tracked := b.slots.add(in.Slot)
	short, cancel := context.WithTimeout(ctx, ackTime)
	f := b.call(short, http.MethodPost, "/interactions/"+interaction+"/"+token+"/callback",
		map[string]any{"type": int(discordgo.InteractionResponseDeferredChannelMessageWithSource), "data": data}, nil)
	cancel()
	if f != nil {
		b.slots.take(in.Slot)
		b.o.Log.WarnContext(ctx, "discord command not answered", "bot", b.o.Name, "err", strings.ReplaceAll(f.Error(), token, "[interaction]"))
		return
	}
	b.acks.drop([]string{id})
	if tracked && core.Sleep(ctx, b.o.Clock, slotIdle) && b.slots.take(in.Slot) {
		_ = b.hook(ctx, http.MethodDelete, in.Slot, original, nil, nil) // the answer, if there is one, is then a message of its own
	}
}

func (b *Bot) private(command string) bool {
	return slices.ContainsFunc(b.o.Menu, func(c connectors.Command) bool { return c.Name == command && c.Private })
}

// original names a slot's own message among those that were sent by its token.
const original = "@original"

// hook makes a request about a message that was sent by a slot's token, or with
// POST for a further one.
func (b *Bot) hook(ctx context.Context, method, slot, message string, body, out any) *failure {
	_, application, token, ok := press(strings.TrimPrefix(slot, slotPrefix))
	if !ok {
		return &failure{status: http.StatusNotFound, told: true, code: discordgo.ErrCodeUnknownMessage, text: "no such answer"}
	}
	if application == "" {
		application = b.id
	}
	path := "/webhooks/" + application + "/" + token
	if method == http.MethodPost {
		path += "?wait=true"
	} else {
		path += "/messages/" + message
	}
	f := b.call(ctx, method, path, body, out)
	if f != nil {
		f.text = strings.ReplaceAll(f.text, token, "[interaction]")
	}
	return f
}

// fill puts an answer, or a preview of it, where "thinking…" stands, and gives
// the id of that message.
func (b *Bot) fill(ctx context.Context, slot string, body outgoing) (string, *failure) {
	b.acks.wait(ctx, strings.TrimPrefix(slot, slotPrefix))
	b.slots.take(slot)
	body.Reference, body.Nonce, body.EnforceNonce = nil, "", false
	body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	var m struct {
		ID string `json:"id"`
	}
	f := b.hook(ctx, http.MethodPatch, slot, original, body, &m)
	return m.ID, f
}

// ended reports whether a slot's token or message is no more.
func (f *failure) ended() bool {
	return f.gone() || f.code == discordgo.ErrCodeUnknownWebhook || f.code == discordgo.ErrCodeInvalidWebhookTokenProvided ||
		f.code == discordgo.ErrCodeUnknownInteraction
}

// complete offers what a half typed option may become. It is answered at once
// and never stored; whom it may be offered to is for Options.Complete to say.
func (b *Bot) complete(ctx context.Context, raw json.RawMessage) {
	var i interaction
	if json.Unmarshal(raw, &i) != nil || b.o.Complete == nil || !isID(i.ID) {
		return
	}
	who := i.User
	if i.Member != nil && i.Member.User != nil {
		who = i.Member.User
	}
	if who == nil || strings.ContainsAny(i.Token, "/?# ") || i.Token == "" {
		return
	}
	typed := ""
	for _, o := range i.Data.Options {
		if o.Focused {
			_ = json.Unmarshal(o.Value, &typed)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	type choice struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	choices := []choice{}
	for _, c := range b.o.Complete(ctx, who.peer(), strings.ToLower(i.Data.Name), typed) {
		if len(choices) < maxChoices && c != "" && utf8.RuneCountInString(c) <= maxChoice {
			choices = append(choices, choice{c, c})
		}
	}
	f := b.call(ctx, http.MethodPost, "/interactions/"+i.ID+"/"+i.Token+"/callback",
		map[string]any{"type": int(discordgo.InteractionApplicationCommandAutocompleteResult), "data": map[string]any{"choices": choices}}, nil)
	if f != nil {
		b.o.Log.DebugContext(ctx, "discord completion", "bot", b.o.Name, "err", strings.ReplaceAll(f.Error(), i.Token, "[interaction]"))
	}
}
