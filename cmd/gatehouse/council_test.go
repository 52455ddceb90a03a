package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
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
