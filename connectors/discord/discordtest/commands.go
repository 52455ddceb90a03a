package discordtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

// A command is an application command as it was registered.
type command struct {
	ID      ID              `json:"id"`
	Name    string          `json:"name"`
	Type    int             `json:"type"`
	Fields  json.RawMessage `json:"fields"` // as it was sent
	Version ID              `json:"version"`
}

// commandLetters are those of [commands] "Application Command Naming".
var commandLetters = core.Pattern(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]+$`) // compiled at the first use: each start of the program would pay

// isCommandName counts the 32 characters itself: a repetition of so large a
// class would take 1 MiB of every program that links the simulator.
func isCommandName(name string) bool {
	return utf8.RuneCountInString(name) <= 32 && commandLetters().MatchString(name)
}

const (
	maxCommands = 100 // [commands] "Registering": 100 global CHAT_INPUT commands
	maxCreates  = 200 // "a global rate limit of 200 application command creates per day, per guild"
)

func (c command) wire(app, guild ID) map[string]any {
	w := map[string]any{}
	json.Unmarshal(c.Fields, &w)
	w["id"], w["application_id"], w["version"], w["type"], w["name"] = c.ID, app, c.Version, c.Type, c.Name
	for key, v := range map[string]any{"default_member_permissions": nil, "nsfw": false} {
		if _, ok := w[key]; !ok {
			w[key] = v
		}
	}
	if guild != 0 {
		w["guild_id"] = guild
	}
	return w
}

// commandsOf checks whose application it is, and the guild.
func (s *Server) commandsOf(c *call) (ID, *apiError) {
	switch app := c.id("app"); {
	case s.byBot[app] == nil:
		return 0, errUnknownApp
	case app != c.bot.account.ID:
		return 0, errNotYourApp
	case c.args["guild"] == "":
		return 0, nil
	}
	g, fault := s.guildOf(c)
	if fault != nil {
		return 0, fault
	}
	return g.id, nil
}

func (s *Server) getCommands(c *call) (any, *apiError) {
	in, fault := s.commandsOf(c)
	if fault != nil {
		return nil, fault
	}
	out := []map[string]any{}
	for _, cmd := range c.bot.commands[in] {
		out = append(out, cmd.wire(c.bot.account.ID, in))
	}
	return out, nil
}

// overwriteCommands implements [commands] "Bulk Overwrite Global Application Commands":
// commands "that do not already exist will count toward daily application
// command create limits".
func (s *Server) overwriteCommands(c *call) (any, *apiError) {
	in, fault := s.commandsOf(c)
	if fault != nil {
		return nil, fault
	}
	var list []json.RawMessage
	if json.Unmarshal(c.f.raw, &list) != nil {
		return nil, invalid("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
	}
	next, fault := readCommands(list)
	if fault != nil {
		return nil, fault
	}
	known := map[string]ID{}
	for _, old := range c.bot.commands[in] {
		known[old.Name] = old.ID
	}
	fresh := 0
	for _, cmd := range next {
		if known[cmd.Name] == 0 {
			fresh++
		}
	}
	if !c.bot.creations(in, fresh, c.now) {
		return nil, errTooManyCreates
	}
	for i := range next {
		next[i].ID, next[i].Version = known[next[i].Name], s.newID()
		if next[i].ID == 0 {
			next[i].ID = s.newID()
		}
	}
	c.bot.commands[in] = next
	s.emit(Change{Kind: ChangeCommands, Guild: in, User: &c.bot.account})
	return s.getCommands(c)
}

// creations spends n of a day's creates; a bot in 200,000 guilds would keep 200,000
// windows.
func (b *bot) creations(in ID, n int, now time.Time) bool {
	if b.creates == nil {
		b.creates = map[ID]*window{}
	}
	w := b.creates[in]
	if w == nil {
		w = &window{limit: maxCreates, per: 24 * time.Hour, ends: now.Add(24 * time.Hour)}
		b.creates[in] = w
	}
	if !now.Before(w.ends) {
		w.used, w.ends = 0, now.Add(w.per)
	}
	if w.used+n > w.limit {
		return false
	}
	w.used += n
	return true
}

func readCommands(list []json.RawMessage) ([]command, *apiError) {
	f := &form{}
	next := []command{}
	names := map[string]bool{}
	for i, raw := range list {
		at := strconv.Itoa(i)
		one := &form{}
		json.Unmarshal(raw, &one.fields)
		cmd := command{Name: one.text("name"), Type: one.integer("type"), Fields: raw}
		if cmd.Type == 0 {
			cmd.Type = 1
		}
		f.command(at, cmd, one)
		key := strconv.Itoa(cmd.Type) + cmd.Name
		if names[key] {
			f.wrong("", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique") // [practice]
		}
		names[key] = true
		next = append(next, cmd)
	}
	if len(list) > maxCommands {
		return nil, &apiError{status: 400, code: 30032, text: "Maximum number of application commands reached (100)."}
	}
	return next, f.check()
}

func (f *form) command(at string, cmd command, one *form) {
	switch {
	case !one.has("name"):
		f.required(at + ".name")
	case cmd.Type == 1 && (!isCommandName(cmd.Name) || cmd.Name != strings.ToLower(cmd.Name)):
		f.wrong(at+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid") // [practice]
	}
	n := utf8.RuneCountInString(one.text("description"))
	if cmd.Type == 1 && !one.has("description") {
		f.required(at + ".description")
	} else if cmd.Type == 1 && (n < 1 || n > 100) {
		f.badLength(at+".description", 1, 100)
	}
	f.options(at, one)
	f.oneOf(at+".integration_types", one.array("integration_types"), "0, 1")
	f.oneOf(at+".contexts", one.array("contexts"), "0, 1, 2")
}

// oneOf checks a list of numbers, each among those of all.
func (f *form) oneOf(path string, list []json.RawMessage, all string) {
	for i, raw := range list {
		if !slices.Contains(strings.Split(all, ", "), string(raw)) {
			f.choices(path+"."+strconv.Itoa(i), all)
		}
	}
}

// options are checked one level deep: name, description, type ([commands]
// "Application Command Option Structure").
func (f *form) options(at string, one *form) {
	list := one.array("options")
	if len(list) > 25 {
		f.tooLong(at+".options", 25)
	}
	optional := false
	for i, raw := range list {
		path := at + ".options." + strconv.Itoa(i)
		o := &form{}
		json.Unmarshal(raw, &o.fields)
		if name := o.text("name"); !isCommandName(name) || name != strings.ToLower(name) {
			f.wrong(path+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		if n := utf8.RuneCountInString(o.text("description")); n < 1 || n > 100 {
			f.badLength(path+".description", 1, 100)
		}
		if kind := o.integer("type"); kind < 1 || kind > 11 {
			f.choices(path+".type", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")
		}
		required := o.boolean("required", false)
		if required && optional { // "Required options must be listed before optional options"
			f.wrong(path, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !required
	}
}

// Commands returns the names of the bot's commands in a guild; 0 is the global ones.
func (b Bot) Commands(guild ID) []string {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	var out []string
	for _, c := range b.b.commands[guild] {
		out = append(out, c.Name)
	}
	return out
}
