package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// A seats is a council of three members on the wire.
type seats struct {
	*world
	servers []*llmtest.Server
}

// newSeats starts a gateway whose council answers with these texts.
func newSeats(t *testing.T, change func(*configs.Config), answers ...func(llmtest.Request) llmtest.Reply) *seats {
	t.Helper()
	s := &seats{}
	f := newProvidersFile(t)
	var file strings.Builder
	var names values.List
	file.WriteString("providers:\n")
	for i, answer := range answers {
		server := llmtest.New(t, llmtest.Options{Models: []string{"m"}, Choose: answer})
		s.servers = append(s.servers, server)
		name := fmt.Sprintf("member%c", 'a'+i)
		names = append(names, name+"/m")
		fmt.Fprintf(&file, "  - {name: %s, kind: openai, base_url: %q, models: [{name: m, input: 1, output: 1}]}\n", name, server.URL())
	}
	f.write("providers.yaml", file.String())
	s.world = newWorld(t, func(c *configs.Config) {
		c.ProvidersFile, c.Council, c.Model, c.Activity, c.CouncilWait = f.path, names, names[0], false, time.Second
		if change != nil {
			change(c)
		}
	})
	return s
}

// opinion answers the question with text, and judges, rates and reviews plainly.
func opinion(text string) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		switch r.Format {
		case "verdict":
			return llmtest.Say(`{"verdict":"contradict","points":["the year"]}`)
		case "review":
			return llmtest.Say(`{"verdict":"correct","issues":[],"correction":""}`)
		case "ratings":
			var list []string
			for i := range strings.Count(r.Messages[len(r.Messages)-1].Content, "<answer-") {
				list = append(list, fmt.Sprintf(`{"answer":"%c","score":0.5}`, 'A'+i))
			}
			return llmtest.Say(`{"ratings":[` + strings.Join(list, ",") + `]}`)
		}
		return llmtest.Say(text, "\nREPORT: {\"confidence\": 0.9, \"domain\": \"history\"}")
	}
}

func (s *seats) asked(member int) (n int) {
	for _, r := range s.servers[member].Requests() {
		if r.Format == "" && strings.HasSuffix(r.Path, "/completions") {
			n++
		}
	}
	return n
}

func TestTheCouncilShowsAContradictionInChat(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, opinion("It opened in 1932."), opinion("The bridge opened in 1932."), opinion("It opened in 1937."))
	boss := s.boss()
	if got := s.replies(boss, "/accuracy high"); !strings.Contains(got.Text, "high") {
		t.Fatal(got.Text)
	}
	got := s.replies(boss, "When was the bridge opened?")
	for _, want := range []string{"1932", "The models contradict each other", "Answer 2", "1937"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("%q lacks %q", got.Text, want)
		}
	}
	if strings.Contains(got.Text, "REPORT") {
		t.Error("the report is shown")
	}
	s.quiet()
	if n := s.count(`SELECT count(DISTINCT model) FROM usage WHERE model LIKE 'member%' AND state = 'settled'`); n != 3 {
		t.Errorf("%d members are billed", n)
	}
	if n := s.metric("gatehouse_council_disputes_total"); n != 1 {
		t.Errorf("%v disputes are counted", n)
	}
	if n := s.count(`SELECT count(*) FROM model_runs WHERE vcg_winner = 1`); n != 0 {
		t.Errorf("%d winners in a dispute", n)
	}
	if got := s.replies(boss, "/status"); !strings.Contains(got.Text, "last answer of several models: 7 calls, $0.") {
		t.Errorf("%q", got.Text)
	}
	s.replies(boss, "/accuracy off")
	before := s.asked(1) + s.asked(2)
	s.replies(boss, "Thank you.")
	if s.asked(1)+s.asked(2) != before {
		t.Error("the council was asked after /accuracy off")
	}
	history := s.servers[0].Requests()
	last := history[len(history)-1].Messages
	if n := len(last); n != 4 || last[n-2].Role != "assistant" || !strings.Contains(last[n-2].Content, "contradict") {
		t.Errorf("the conversation has %d messages, the answer of the council is not one line of it: %+v", n, last)
	}
}

func TestTheCouncilAnswersTheAPIAndStreamsItsProgress(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, opinion("It opened in 1932."), opinion("The bridge opened in 1932."), opinion("In 1932."))
	var stages []string
	var done map[string]any
	_, events := s.chatEvents(map[string]any{"message": "When was the bridge opened?", "accuracy": "high"}, nil)
	for _, e := range events {
		switch e.Type {
		case "deliberation":
			stages = append(stages, fmt.Sprint(e.Data["stage"]))
		case "done":
			done = e.Data
		}
	}
	if done["confidence"] != "High" || done["accuracy_level"] != "high" || done["query_id"] == "" || len(done["models_used"].([]any)) != 3 {
		t.Errorf("%v", done)
	}
	if all := strings.Join(stages, " "); !strings.Contains(all, "asking") || !strings.Contains(all, "rating") {
		t.Errorf("stages %s", all)
	}
}

// An agent's file, and the panel for one conversation, choose the level too.
func TestTheCouncilIsChosenByAnAgentsFileAndInThePanel(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, opinion("It opened in 1932."), opinion("The bridge opened in 1932."), opinion("In 1932."))
	s.puts(map[string]string{".parachute/agents/historian.md": "---\naccuracy: high\n---\nYou are a historian."})
	boss := s.boss()
	levels := func() string {
		var list []string
		if err := s.app.db.Select(t.Context(), &list, `SELECT accuracy_level FROM council_queries ORDER BY created_at, query_id`); err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, " ")
	}
	s.replies(boss, "When was the bridge opened?")
	if got := levels(); got != "" {
		t.Fatalf("the council was asked at %q by default", got)
	}
	s.replies(boss, "/agent historian")
	s.replies(boss, "And when was it opened?")
	if got := levels(); got != "high" || s.asked(2) != 1 {
		t.Errorf("by the agent's file: at %q, the third member was asked %d times", got, s.asked(2))
	}
	b := s.browser()
	at := "/admin/chats/" + s.sessionIn(boss)
	b.submit(at+"/model", b.page(at), url.Values{"value": {"council/maximum"}})
	s.replies(boss, "Once more: when?")
	if got := levels(); got != "high maximum" {
		t.Errorf("by the panel: at %q", got)
	}
}

func TestAGuestGetsTheCouncilOnlyWhereTheSettingsNameIt(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{"": 0, "council/high": 1} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := newSeats(t, func(c *configs.Config) { c.GuestModel, c.Model = model, "council/high" }, opinion("It opened in 1932."), opinion("It opened in 1932."))
			ada := s.guest("Ada")
			before := s.asked(1)
			s.replies(ada, "/accuracy high")
			s.replies(ada, "When was the bridge opened?")
			if got := s.asked(1) - before; got != want {
				t.Errorf("the second member was asked %d times, want %d", got, want)
			}
		})
	}
}

// A guest is offered the commands of a council only where one answers guests: in /help, in the
// menu, and in what they answer.
func TestAGuestIsOfferedTheCommandsOfACouncilOnlyWhereOneAnswersGuests(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{"": false, "council/high": true} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := newSeats(t, func(c *configs.Config) { c.GuestModel, c.Model = model, "council/high" }, opinion("It opened in 1932."), opinion("It opened in 1932."))
			boss, ada := s.boss(), s.guest("Ada")
			menu := ""
			s.until("the menu is set", func() bool {
				for _, c := range s.sim.Bot().Commands() {
					menu += "/" + c.Command + ":\n"
				}
				return menu != ""
			})
			mine, theirs := s.replies(boss, "/help").Text, s.replies(ada, "/help").Text
			for _, command := range []string{"accuracy", "why", "pick"} {
				if !strings.Contains(mine, "/"+command+":") || strings.Contains(theirs, "/"+command+":") != want || strings.Contains(menu, "/"+command+":") != want {
					t.Errorf("/%s: the owner's help %q, a guest's %q, the menu %q", command, mine, theirs, menu)
				}
				said := s.replies(ada, "/"+command).Text
				if got := strings.Contains(said, "a council of several models does not answer guests"); got == want {
					t.Errorf("/%s answers a guest %q", command, said)
				}
				if said := s.replies(boss, "/"+command).Text; strings.Contains(said, "guests") {
					t.Errorf("/%s answers the owner %q", command, said)
				}
			}
		})
	}
}

func TestToolsAreCalledByThePrimaryAndTheOthersReadWhatTheyReturned(t *testing.T) {
	t.Parallel()
	primary := func(r llmtest.Request) llmtest.Reply {
		last := r.Messages[len(r.Messages)-1]
		if r.Format == "" && last.Role == "user" && len(r.Tools) > 0 {
			return llmtest.CallTool("call_1", "Read", `{"file_path":"Public/bridge.md"}`)
		}
		return opinion("It opened in 1932.")(r)
	}
	s := newSeats(t, nil, primary, opinion("It opened in 1932."))
	s.puts(map[string]string{"Public/bridge.md": "The bridge opened in 1932, says the plaque.\n"})
	s.replies(s.boss(), "/accuracy high")
	s.quiet()
	_, events := s.chatEvents(map[string]any{"message": "When was the bridge opened? Read the note.", "accuracy": "high"}, nil)
	if len(events) == 0 {
		t.Fatal("no events")
	}
	saw := false
	for _, r := range s.servers[1].Requests() {
		if len(r.Tools) > 0 {
			t.Error("a member that is not the primary was offered tools")
		}
		if r.Format == "" && strings.Contains(string(r.Body), "says the plaque") {
			saw = true
		}
	}
	if !saw {
		t.Error("the other member did not read what the tool returned")
	}
}

func TestAMemberThatAnswersFiveMegabytesIsLeftOut(t *testing.T) {
	t.Parallel()
	huge := func(r llmtest.Request) llmtest.Reply {
		if r.Format != "" {
			return opinion("")(r)
		}
		piece := strings.Repeat("1937 is the year. ", 3000)
		var text []string
		for len(text)*len(piece) < 5<<20 {
			text = append(text, piece)
		}
		return llmtest.Reply{Text: text}
	}
	s := newSeats(t, nil, opinion("It opened in 1932."), opinion("It opened in 1932."), huge)
	resp := s.open("POST", "/api/chat", map[string]any{"message": "When was the bridge opened?", "accuracy": "high"}, wantJSON)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if status := resp.StatusCode; err != nil || status != http.StatusOK || !strings.Contains(string(body), "1932") || !strings.Contains(string(body), "Without memberc/m") || strings.Contains(string(body), "1937") {
		t.Errorf("%d %v %.400s", resp.StatusCode, err, body)
	}
}

// chatted asks the API in a session of its own and waits for the answer.
func (s *seats) chatted(session, model string) {
	s.t.Helper()
	if status, m, _ := s.world.asked("POST", "/api/chat", map[string]any{"message": "When was the bridge opened?", "session_id": session, "model": model}, wantJSON); status != http.StatusOK {
		s.t.Fatalf("%d %v", status, m)
	}
}

// Nine answers and nine ratings are stored while others are awaited, and the end of the
// question with that of its run: of what a council adds to its models' time nothing is a
// wait for the disk, and little is a wait for the database.
func TestACouncilOfNineWaitsForTheDiskNoMoreOftenThanOneModel(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("the events of a slow run are stored meanwhile, and each time is a wait; make counts runs it without the race detector")
	}
	const members, n = 9, 5
	var answers []func(llmtest.Request) llmtest.Reply
	for range members {
		answers = append(answers, opinion("It opened in 1932."))
	}
	s := newSeats(t, func(c *configs.Config) { c.Index = "off" }, answers...)
	cost := func(model string) (synced, commits int64) {
		session := strings.ReplaceAll(model, "/", ".")
		s.chatted(session+"-first", model)
		s.quiet()
		synced, commits = s.app.db.Synced(), s.app.db.Commits()
		for i := range n {
			s.chatted(fmt.Sprint(session, "-", i), model)
		}
		s.quiet()
		return s.app.db.Synced() - synced, s.app.db.Commits() - commits
	}
	oneSynced, oneCommits := cost("membera/m")
	synced, commits := cost("council/high")
	if s.asked(1) != n+1 {
		t.Fatalf("the second member was asked %d times", s.asked(1))
	}
	// A clock may write meanwhile. On a server each commit waits.
	if synced >= oneSynced+n && !storetest.Postgres() {
		t.Errorf("%d questions to a council of %d waited for the disk %d times, to one model %d times", n, members, synced, oneSynced)
	}
	// At most: the question, each answer, each rating, the choice.
	if most := oneCommits + n*(2*members+3); commits > most {
		t.Errorf("%d questions to a council of %d took %d commits, to one model %d", n, members, commits, oneCommits)
	}
	t.Logf("of %d questions: %d and %d commits, of which %d and %d waited for the disk", n, oneCommits, commits, oneSynced, synced)
}

// Each answer and each rating is held until those of all members have been asked for.
func TestACouncilOfNineAsksItsMembersAtOnceInEachStage(t *testing.T) {
	t.Parallel()
	const members = 9
	var mu sync.Mutex
	waiting, asked := map[string]chan struct{}{}, map[string]int{}
	together := func(stage string) <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if waiting[stage] == nil {
			waiting[stage] = make(chan struct{})
		}
		if asked[stage]++; asked[stage] == members {
			close(waiting[stage])
		}
		return waiting[stage]
	}
	var answers []func(llmtest.Request) llmtest.Reply
	for range members {
		answers = append(answers, func(r llmtest.Request) llmtest.Reply {
			if strings.HasSuffix(r.Path, "/completions") {
				select {
				case <-together(r.Format):
				case <-time.After(patience):
					t.Errorf("the calls of the stage %q do not come at once", r.Format)
				}
			}
			return opinion("It opened in 1932.")(r)
		})
	}
	s := newSeats(t, nil, answers...)
	s.chatted("s", "council/high")
	mu.Lock()
	defer mu.Unlock()
	if asked[""] != members || asked["ratings"] != members || len(asked) != 2 {
		t.Errorf("calls by stage: %v, want %d answers and as many ratings", asked, members)
	}
}
