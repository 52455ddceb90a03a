package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// Conversations are scripts: what the people do, what the people see. Those in
// testdata/conversations/both are played on each platform, with each platform's
// simulator and a whole gateway. In a script, line by line:
//
//	olga owns                     olga claims the bot
//	ada joins                     ada is let in, and her first message answered
//	ada appears                   ada has an account and nothing else
//	group Garden: olga ada        a group with the bot; olga made it
//	forum Garden: olga ada        likewise, with topics, or a channel for threads
//	basic group Garden: olga ada  and "Garden becomes a supergroup" (Telegram)
//	topic Tea in Garden           from then on Garden/Tea is a place to write in
//	board Help in Garden: TAG TAG a forum of the same server (Discord)
//	ada in Help posts Spots TAG: TEXT   from then on Help/Spots is a place
//	ada: TEXT                     ada writes to the bot
//	ada in Garden: TEXT           ada writes in a group ({bot} addresses the bot)
//	ada sends FILE FILE: TEXT     files of the script, at once: pictures, voice (.oga) or documents
//	ada replies to OLD: TEXT      in answer to the newest message with OLD in it
//	ada forwards from eve: TEXT   a message that eve wrote elsewhere
//	ada edits OLD: TEXT
//	ada uses /NAME OPTION=VALUE   a slash command (Discord)
//	ada reacts EMOJI to OLD
//	ada presses LABEL             of the newest message with such a button in her chat
//	ada presses the first LABEL   of the oldest one
//	told ada: TEXT                what she alone is told on a press (told ada in Garden)
//	ada opens LABEL               presses it, and a form opens (Discord)
//	ada chooses A + B             entries of the newest menu, at once (Discord)
//	ada fills: A | B              in the fields of that form, and sends it
//	ada removes the bot from Garden   or adds it, promotes it there (Telegram), on Discord in the whole server
//	ada blocks the bot            or unblocks it (Telegram)
//	bot to ada: TEXT              the bot's next message there has this in it
//	bot in Garden: TEXT
//	bot buttons to ada: A | B     the newest message's buttons
//	bot no buttons to ada         it has none
//	bot quotes OLD in Garden      its last message that was looked at answers the one with OLD
//	bot file to ada: FILE         its next message has this file, or "photo"
//	all buttons to ada: A | B     of all messages there
//	file to ada: NAME: TEXT       the bot's newest file is called so, and has this in it
//	bot to ada in any order: TEXT | TEXT   it says each of these
//	bot edits to ada: TEXT        one of its messages has come to say this
//	bot shows to ada: TEXT        likewise, or what it is still writing says it
//	bot silent to ada             it has said nothing since
//	reaction to ada: TEXT         stands under her newest message ("" for none)
//	note NAME = REGEXP            the group in the bot's last words; {NAME} from then on
//	model says: TEXT              its next answer; {n} is a new line, {leaves 9} nine sentences
//	model waits                   its next answer does not end by itself
//	model uses TOOL {JSON}        its next answer is a tool call
//	model called N                so many calls in all, when all is quiet
//	model busy N                  it has been asked N times, and may not have answered
//	model read: TEXT              its last request has this in it
//	model not read: TEXT
//	vault writes FILE: TEXT       and the file is indexed
//	bot not last: TEXT            the bot's message that was looked at last has not this in it
//	vault FILE: TEXT              the vault's file has this in it; "" when there is none
//	command: WORDS                the command line, as orders to the gateway
//	the platform goes away        and "comes back"
//	operator confirm trust full   or deny, end: by the form on the panel's page Approvals; "confirm nothing": there is no such form
//	panel shows: TEXT             on that page
//	audit: ACTION ACTION          what the log says of trust for a time, in order
//	the gateway starts anew
//	16 minutes pass               or seconds, on the gateway's clock
//	the tool works                the tool Deaf, which heeds no stop, was called; "the tool ends": it is done
//	quiet                         everything is answered and sent
//
// All that ada does can be done "in Garden". Files of a script are its sections;
// those called vault/… lie in the vault at the start. A name may say its platform
// (ada@discord); {id ada} is ada's number there.
func TestConversations(t *testing.T) {
	for _, platform := range []string{"telegram", "discord"} {
		for _, dir := range []string{"both", platform} {
			files, err := filepath.Glob(filepath.Join("testdata", "conversations", dir, "*.txtar"))
			if err != nil {
				t.Fatal(err)
			}
			if dir == "both" && len(files) < 2 {
				t.Fatalf("%d conversations", len(files))
			}
			for _, f := range files {
				t.Run(platform+"/"+strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
					t.Parallel()
					play(t, f, platform)
				})
			}
		}
	}
}

// A script is one conversation being played.
type script struct {
	t        *testing.T
	w        *world
	model    *llmtest.Server
	platform string
	scenes   map[string]scene
	ids      map[string]string // of people, by name@platform
	notes    map[string]string
	seen     map[string]int    // how many messages of a room are behind us
	last     line              // what the bot said last, of what the script looked at
	files    map[string]string // of the script, by name
	calls    int               // of tools that the model was told to make
	where    string            // file and line
	deaf     *deafTool
}

func play(t *testing.T, file, platform string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
	}
	s := newScript(t, platform, parts)
	if len(a.Files) == 0 || parts["conversation"] == "" {
		t.Fatalf("%s has no conversation", file)
	}
	for i, text := range strings.Split(parts["conversation"], "\n") {
		s.where = fmt.Sprintf("%s, conversation line %d: %s", filepath.Base(file), i+1, text)
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "#") {
			s.step(s.fill(text))
		}
	}
}

// newScript starts a gateway with a bot on each platform and a model.
func newScript(t *testing.T, platform string, parts map[string]string) *script {
	model := llmtest.New(t, llmtest.Options{Models: []string{"fake-1", "fake-2", "fake-3"}})
	dc := newDiscord(t)
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	w := newWorldAt(t, sim, t.TempDir(), &leaps{}, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(dc.Token()), dc.URL()
		for line := range strings.Lines(parts["settings"]) {
			set(t, c, strings.TrimSpace(line))
		}
	})
	for name, text := range parts {
		if name, ok := strings.CutPrefix(name, "vault/"); ok {
			w.puts(map[string]string{name: text})
		}
	}
	deaf := newDeafTool(t)
	w.app.tools.Tools = append(slices.Clip(w.app.tools.Tools), deaf.tool())
	w.until("the bots are online", func() bool {
		states := w.app.hub.States()
		return len(states) == 2 && !slices.ContainsFunc(states, func(b core.BotState) bool { return b.State != core.Running && b.State != core.Degraded })
	})
	return &script{t: t, w: w, deaf: deaf, model: model, platform: platform, files: parts, ids: map[string]string{}, notes: map[string]string{}, seen: map[string]int{},
		scenes: map[string]scene{
			"telegram": &telegramScene{w, map[string]*telegramtest.User{}, map[string]*telegramtest.Group{}, map[string]int{}, map[string]*telegramtest.User{}, map[string]string{}},
			"discord":  &discordScene{w, dc, map[string]*discordtest.User{}, map[string]discordtest.ID{}, map[string]*discordtest.User{}, map[string]discordtest.ID{}},
		}}
}

// set is one line of settings: a field of the configuration as text.
func set(t *testing.T, c *configs.Config, line string) {
	name, value, ok := strings.Cut(line, "=")
	if line == "" {
		return
	}
	f := reflect.ValueOf(c).Elem().FieldByName(strings.TrimSpace(name))
	if !ok || !f.IsValid() {
		t.Fatalf("settings: %q", line)
	}
	value = strings.TrimSpace(value)
	if u, is := f.Addr().Interface().(interface{ Decode(string) error }); is {
		if err := u.Decode(value); err != nil {
			t.Fatalf("settings: %q: %v", line, err)
		}
		return
	}
	switch f.Interface().(type) {
	case string:
		f.SetString(value)
	case values.List:
		f.Set(reflect.ValueOf(values.List(strings.Split(value, ","))))
	default:
		t.Fatalf("settings: %s is no text", name)
	}
}

func (s *script) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n%s", s.where, fmt.Sprintf(format, args...))
}

var blank = regexp.MustCompile(`\{([A-Za-z]+)(?: ([a-z0-9@]+))?\}`)

// fill puts in what was noted.
func (s *script) fill(text string) string {
	return blank.ReplaceAllStringFunc(text, func(b string) string {
		m := blank.FindStringSubmatch(b)
		switch {
		case m[1] == "bot":
			return s.scenes[s.platform].called()
		case m[1] == "id":
			return s.ids[s.person(m[2])]
		case m[1] == "platform":
			return s.platform
		case m[1] == "n":
			return "\n"
		case m[1] == "leaves":
			return leaves(m[2])
		case s.notes[m[1]] == "":
			s.fatalf("nothing noted as %s; there is %v", m[1], slices.Sorted(maps.Keys(s.notes)))
		}
		return s.notes[m[1]]
	})
}

// person is a name with its platform.
func (s *script) person(name string) string {
	if strings.Contains(name, "@") {
		return name
	}
	return name + "@" + s.platform
}

// room is where a name or group is, and on which platform.
func (s *script) room(name string) (scene, string, string) {
	room, platform, _ := strings.Cut(s.person(name), "@")
	if name == strings.ToLower(name) {
		room = "dm:" + room
	}
	return s.scenes[platform], room, platform + "/" + room
}

type scriptStep struct {
	form *regexp.Regexp
	do   func(s *script, m []string)
}

// In the forms WHO is somebody, alone or in a group, and ROOM somebody's direct
// chat or a group; each is one group of the expression.
var scriptSteps = forms([]scriptForm{
	{`(group|forum) (\w+): (.+)`, (*script).gathers},
	{`basic group (\w+): (.+)`, func(s *script, m []string) { s.scenes["telegram"].(*telegramScene).basic(m[1], strings.Fields(m[2])) }},
	{`(\w+) becomes a supergroup`, (*script).grows},
	{`the platform goes (away)`, (*script).goes},
	{`the platform comes (back)`, (*script).goes},
	{`WHO uses /(.+)`, (*script).commands},
	{`topic (\w+) in (\w+)`, func(s *script, m []string) { s.must(s.scenes[s.platform].topic(m[2], m[1])) }},
	{`bot (?:to|in) ROOM in any order: (.*)`, (*script).hearsAll},
	{`bot (?:to|in) ROOM: (?s:(.*))`, (*script).hears},
	{`bot quotes (.+) (?:to|in) ROOM`, (*script).quoted},
	{`bot file (?:to|in) ROOM: (.+)`, (*script).handed},
	{`bot (?:edits|shows) (?:to|in) ROOM: (.*)`, (*script).shown},
	{`bot buttons (?:to|in) ROOM: (.*)`, (*script).buttons},
	{`bot silent (?:to|in) ROOM`, (*script).silent},
	{`reaction (?:to|in) ROOM: ?(.*)`, (*script).reaction},
	{`note (\w+) = (.+)`, (*script).note},
	{`model (says|read|not read): (?s:(.*))`, (*script).modelSays},
	{`model uses (\w+) (\{.*\})`, (*script).modelUses},
	{`model (waits)`, func(s *script, _ []string) { s.model.Script(llmtest.Reply{Text: []string{"One. "}, Hang: true}) }},
	{`model (called|busy) (\d+)`, (*script).modelCalled},
	{`vault (\S+): ?(.*)`, (*script).inVault},
	{`vault writes (\S+): (.*)`, func(s *script, m []string) { s.w.document(m[1], m[2]) }},
	{`bot not last: (.*)`, (*script).notLast},
	{`command: (.+)`, (*script).command},
	{`operator (confirm|deny|end) (nothing|trust full)`, (*script).operates},
	{`panel shows: (.+)`, (*script).panelShows},
	{`audit: (.+)`, (*script).audited},
	{`the tool (works|ends)`, (*script).tool},
	{`the gateway starts (anew)`, (*script).restarts},
	{`(\d+) (minutes|seconds) pass`, (*script).passes},
	{`(quiet)`, func(s *script, _ []string) { s.w.quiet() }},
	{`WHO presses the first (.+)`, (*script).pressesFirst},
	{`WHO presses (.+)`, (*script).presses},
	{`told WHO: (.*)`, (*script).told},
	{`bot no buttons to ([a-z@]+)()`, (*script).buttons},
	{`all buttons (?:to|in) ROOM: (.*)`, (*script).allButtons},
	{`file (?:to|in) ROOM: (.+?): (?s:(.*))`, (*script).file},
	{`board (\w+) in (\w+): (.+)`, (*script).boards},
	{`WHO posts (\w+) (\w+): (.+)`, (*script).publishes},
	{`WHO chooses (.+)`, (*script).choosesSeveral},
	{`WHO opens (.+)`, (*script).opens},
	{`WHO (removes|adds|promotes) the bot (?:from|to|in) (\w+)`, (*script).stands},
	{`WHO (blocks|unblocks) the bot`, (*script).blocks},
	{`WHO fills: (.+)`, (*script).fills},
	{`WHO edits (.+?): (.+)`, (*script).edits},
	{`WHO reacts (\S+) to (.+)`, (*script).reacts},
	{`WHO replies to (.+?): (.+)`, (*script).replies},
	{`WHO forwards from (\w+): (.+)`, func(s *script, m []string) { s.posts(m[1], post{text: m[3], from: m[2]}) }},
	{`WHO sends ([^:]+): ?(.*)`, (*script).sends},
	{`WHO: (?s:(.+))`, func(s *script, m []string) { s.posts(m[1], post{text: m[2]}) }},
})

type scriptForm struct {
	form string
	do   func(s *script, m []string)
}

func forms(all []scriptForm) (out []scriptStep) {
	for _, f := range all {
		form := strings.ReplaceAll(f.form, "WHO", `([a-z@]+(?: in [\w/@]+)?)`)
		out = append(out, scriptStep{regexp.MustCompile("^" + strings.ReplaceAll(form, "ROOM", `([\w/@]+)`) + "$"), f.do})
	}
	return out
}

var enterStep = regexp.MustCompile(`^([a-z@]+) (owns|joins|appears)$`)

func (s *script) step(text string) {
	if m := enterStep.FindStringSubmatch(text); m != nil {
		s.enter(m)
		return
	}
	for _, st := range scriptSteps {
		if m := st.form.FindStringSubmatch(text); m != nil {
			st.do(s, m)
			return
		}
	}
	s.fatalf("the script says nothing that is known")
}

func (s *script) notLast(m []string) {
	if strings.Contains(s.last.text, m[1]) {
		s.fatalf("it says %q", s.last.text)
	}
}

func (s *script) enter(m []string) {
	name := s.person(m[1])
	who, platform, _ := strings.Cut(name, "@")
	s.ids[name] = s.scenes[platform].join(who)
	ctx := s.t.Context()
	switch m[2] {
	case "owns":
		code, _, err := s.w.app.pairing.Codes.NewClaim(ctx, true)
		if err != nil {
			s.fatalf("%v", err)
		}
		s.step(name + ": /claim " + code)
		s.step("bot to " + name + ": You are the owner now")
	case "joins":
		s.step(name + ": hello")
		s.step("bot to " + name + ": Your code is")
		if _, err := s.w.app.pairing.Approve(ctx, requestOn(s.w, platform, s.ids[name]).ID, core.Approval{}, cli); err != nil {
			s.fatalf("%v", err)
		}
		s.step("bot to " + name + ": Your request was approved")
		s.step("bot to " + name + ": " + fakeSays)
	}
	s.w.quiet()
}

// await polls until f is content; the room is shown when it never is.
func (s *script) await(sc scene, room, what string, f func([]line) bool) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			var b strings.Builder
			for _, l := range sc.read(room) {
				fmt.Fprintf(&b, "\n  bot=%v %q %q %s", l.bot, l.text, l.buttons, l.reactions)
			}
			s.t.Logf("%s\nwanted: %s; the room:%s", s.where, what, b.String())
		}
	}()
	s.w.until(what, func() bool { return f(sc.read(room)) })
}

// hearsAll waits for several messages that nothing brings into an order.
func (s *script) hearsAll(m []string) {
	sc, room, key := s.room(m[1])
	s.await(sc, room, "the bot says "+m[2], func(all []line) bool {
		seen, from := s.seen[key], min(s.seen[key], len(all))
		for _, part := range strings.Split(m[2], " | ") {
			i := slices.IndexFunc(all[from:], func(l line) bool { return l.bot && strings.Contains(l.text, part) })
			if i < 0 {
				return false
			}
			seen = max(seen, from+i+1)
		}
		s.seen[key] = seen
		return true
	})
}

func (s *script) hears(m []string) {
	sc, room, key := s.room(m[1])
	s.await(sc, room, "the bot says "+m[2], func(all []line) bool {
		for i, l := range all {
			if i >= s.seen[key] && l.bot && strings.Contains(l.text, m[2]) {
				s.seen[key], s.last = i+1, l
				return true
			}
		}
		return false
	})
}

func (s *script) buttons(m []string) {
	sc, room, _ := s.room(m[1])
	s.await(sc, room, "the buttons "+m[2], func(all []line) bool {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].bot && !all[i].private {
				return strings.Join(all[i].buttons, " | ") == m[2]
			}
		}
		return false
	})
}

func (s *script) silent(m []string) {
	s.w.quiet()
	sc, room, key := s.room(m[1])
	for i, l := range sc.read(room) {
		if i >= s.seen[key] && l.bot {
			s.fatalf("the bot said %q", l.text)
		}
	}
}

func (s *script) reaction(m []string) {
	sc, room, _ := s.room(m[1])
	s.await(sc, room, "the reaction "+m[2], func(all []line) bool {
		for i := len(all) - 1; i >= 0; i-- {
			if !all[i].bot {
				return all[i].reactions == m[2]
			}
		}
		return false
	})
}

func (s *script) note(m []string) {
	found := regexp.MustCompile(m[2]).FindStringSubmatch(s.last.text)
	if len(found) < 2 {
		s.fatalf("not in %q", s.last.text)
	}
	s.notes[m[1]] = found[1]
}

func (s *script) modelSays(m []string) {
	if m[1] == "says" {
		s.model.Script(llmtest.Reply{Text: []string{m[2]}})
		return
	}
	all := s.model.Requests()
	if len(all) == 0 {
		s.fatalf("the model was not asked")
	}
	read := fmt.Sprintf("%+v", all[len(all)-1])
	if strings.Contains(read, m[2]) != (m[1] == "read") {
		s.fatalf("the model read %s", read)
	}
}

func (s *script) modelCalled(m []string) {
	if m[1] == "called" {
		s.w.quiet()
	}
	s.w.until("so many calls", func() bool { return fmt.Sprint(s.model.Total()) == m[2] })
}

// command makes a request of the command line: "pairing/revoke bot=telegram user=5".
func (s *script) command(m []string) {
	words := strings.Fields(m[1])
	given := map[string]string{}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		given[name] = value
	}
	if words[0] != "pairing/revoke" {
		s.fatalf("no such command")
	}
	var res map[string]any
	if err := s.w.overSocket("DELETE", control.Path("api", "bots", "pairing", given["bot"], given["user"]), nil, &res); err != nil {
		s.fatalf("%v", err)
	}
	s.last = line{text: fmt.Sprintf("%+v", res)}
}
