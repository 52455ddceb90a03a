package interactions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// askCommand starts a turn like a message; its option is the question.
const askCommand = "ask"

const (
	maxAbout   = 100 // Application Command Structure, description
	maxChoices = 25  // Interaction Callback Data, autocomplete
	maxChoice  = 100 // characters of its name and of its value
)

// A slash is a command as the platform registers it.
type slash struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Type        int           `json:"type"`
	Options     []slashOption `json:"options,omitempty"`
	Installs    []int         `json:"integration_types"`
	Contexts    []int         `json:"contexts"`
}

// installs and contexts restrict a command to servers with the bot and to direct
// messages with it (Application Command Object; Interaction Context Types).
var (
	installs = []int{0}
	contexts = []int{0, 1}
)

type slashOption struct {
	Type         int    `json:"type"` // 3: string
	Name         string `json:"name"`
	Description  string `json:"description"`
	Required     bool   `json:"required,omitempty"`
	Autocomplete bool   `json:"autocomplete,omitempty"`
}

// slashes returns the commands of the menu, and /ask.
func slashes(menu []connectors.Command) []slash {
	question := slashOption{Type: 3, Name: "question", Description: texts.Text("args_ask"), Required: true}
	out := []slash{{askCommand, texts.Text("about_ask"), 1, []slashOption{question}, installs, contexts}}
	for _, c := range menu {
		s := slash{Name: c.Name, Description: cutRunes(c.Description, maxAbout), Type: 1, Installs: installs, Contexts: contexts}
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

// Deploy registers the menu as slash commands of application if it differs from the
// one that the platform was last given, because registrations are limited per day. A
// failure is logged.
func (r *Responder) Deploy(ctx context.Context, application string) {
	if r.o.Menu == nil || !wire.IsID(application) {
		return
	}
	list := slashes(r.o.Menu)
	raw, err := json.Marshal(list)
	if err != nil {
		return
	}
	sum := sha256.Sum256(raw)
	key, hash := "discord:"+r.o.ID+":commands", hex.EncodeToString(sum[:])
	if r.o.Memory != nil {
		if known, err := r.o.Memory.Load(ctx, key); err == nil && known == hash {
			return
		}
	}
	if f := r.api.Call(ctx, http.MethodPut, "/applications/"+application+"/commands", list, nil); f != nil {
		if ctx.Err() == nil {
			r.o.Log.WarnContext(ctx, "discord slash commands not set; commands typed as text work", "bot", r.o.Bot, "err", f)
		}
		return
	}
	if r.o.Memory != nil {
		if err := r.o.Memory.Save(ctx, key, hash); err != nil {
			r.o.Log.WarnContext(ctx, "discord slash commands will be set again", "bot", r.o.Bot, "err", err)
		}
	}
}

// readCommand reads a used slash command into in.
func readCommand(i *wire.Interaction, in *core.Inbound) {
	var words []string
	for _, o := range i.Data.Options {
		var s string
		if json.Unmarshal(o.Value, &s) == nil && strings.TrimSpace(s) != "" {
			words = append(words, strings.TrimSpace(s))
		}
	}
	in.Text, in.Addressed, in.MessageID = strings.Join(words, " "), true, i.ID
	in.Slot = slotPrefix + callbackID(i)
	if i.Data.Name == askCommand {
		in.Kind = core.KindMessage
		return
	}
	in.Kind, in.Command = core.KindCommand, strings.ToLower(i.Data.Name)
}

// Complete answers a completion request with what Options.Complete offers. Nothing is
// stored. A failure is logged.
func (r *Responder) Complete(ctx context.Context, raw json.RawMessage) {
	var i wire.Interaction
	if json.Unmarshal(raw, &i) != nil || r.o.Complete == nil || !wire.IsID(i.ID) {
		return
	}
	who := i.Who()
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
	for _, c := range r.o.Complete(ctx, who.Peer(), strings.ToLower(i.Data.Name), typed) {
		if len(choices) < maxChoices && c != "" && utf8.RuneCountInString(c) <= maxChoice {
			choices = append(choices, choice{c, c})
		}
	}
	if err := r.respond(ctx, callbackID(&i), discordgo.InteractionApplicationCommandAutocompleteResult, map[string]any{"choices": choices}); err != nil {
		r.o.Log.DebugContext(ctx, "discord completion", "bot", r.o.Bot, "err", err)
	}
}
