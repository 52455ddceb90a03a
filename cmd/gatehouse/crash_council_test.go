package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/texts"
)

// Stages of a question as the members see them: by the form of the reply.
const (
	toAnswer  = "answer"
	toCompare = "judge"
	toRate    = "rating"
	toReview  = "review"
	toRevise  = "regenerate"
	toRewrite = "rewrite"
)

// A councilRig is a rig whose model is a council of three members that review each
// answer and object to it. It holds one request at a time.
type councilRig struct {
	*rig
	members           []string
	settingsOfCouncil []string
	cheers            bool           // answers have an emoji, unless they are written again
	all               map[string]int // requests for one question, by stage

	lock  sync.Mutex               // of what follows
	asked map[int64]map[string]int // by child, then "stage member"
	hold  func(stage, member string, primary bool) bool
	held  chan struct{} // closed when a request is held
}

func newCouncilRig(t *testing.T) *councilRig {
	r := &councilRig{rig: newRig(t, program(t), "queue", population{telegram: 1}, telegramtest.Options{}), asked: map[int64]map[string]int{},
		all: map[string]int{toAnswer: 3, toCompare: 1, toRate: 3, toReview: 2, toRevise: 1}}
	f := newProvidersFile(t)
	file := "providers:\n"
	for i, says := range []string{"the bridge is painted in early summer, before tourists arrive", "wind decides when painters climb its arch", "nobody there keeps to a calendar; rust gives orders"} {
		name := fmt.Sprintf("member%c", 'a'+i)
		s := r.tapped(func(w http.ResponseWriter, in *http.Request) { r.serveMember(w, in, name, says) })
		t.Cleanup(s.Close)
		r.members = append(r.members, name)
		file += fmt.Sprintf("  - {name: %s, kind: openai, base_url: %q, models: [{name: m, input: 1, output: 1}]}\n", name, s.URL+"/v1")
	}
	f.write("providers.yaml", file)
	r.settingsOfCouncil = []string{"PROVIDERS_FILE", f.path, "COUNCIL", strings.Join(r.members, "/m,") + "/m", "MODEL", "council/maximum", "GUEST_MODEL", "council/maximum", "COUNCIL_WAIT", "2m"}
	return r
}

// serveMember answers as a member does, or holds the request until the child is dead.
func (r *councilRig) serveMember(w http.ResponseWriter, in *http.Request, name, says string) {
	var q struct {
		Messages []struct{ Content string }
		Tools    []struct{ Type string }
		Format   struct {
			Schema struct{ Name string } `json:"json_schema"`
		} `json:"response_format"`
	}
	if json.NewDecoder(in.Body).Decode(&q) != nil || len(q.Messages) == 0 {
		panic(http.ErrAbortHandler)
	}
	last := q.Messages[len(q.Messages)-1].Content
	stage, reply := toAnswer, ""
	switch q.Format.Schema.Name {
	case "verdict":
		stage, reply = toCompare, `{"verdict":"complementary","points":[]}`
	case "ratings":
		stage, reply = toRate, `{"ratings":[{"answer":"A","score":0.5},{"answer":"B","score":0.5}]}`
	case "review":
		stage, reply = toReview, `{"verdict":"incorrect","issues":["it is too short"],"correction":""}`
	default:
		if strings.HasPrefix(last, "Reviewers found") {
			stage, last = toRevise, q.Messages[len(q.Messages)-2].Content
		}
		if strings.HasPrefix(last, "Your answer does not follow") {
			stage, last = toRewrite, q.Messages[len(q.Messages)-2].Content
		}
		token := crashToken.FindString(last)
		if r.cheers && stage != toRewrite {
			says += " 😀"
		}
		reply = fmt.Sprintf("This answers %s as call of %s: %s.\nREPORT: {\"confidence\": 0.9, \"domain\": \"general\"}", token, name, says)
	}
	r.lock.Lock()
	birth := in.Context().Value(birthKey{}).(int64)
	if r.asked[birth] == nil {
		r.asked[birth] = map[string]int{}
	}
	r.asked[birth][stage+" "+name]++
	hold := r.hold != nil && r.hold(stage, name, len(q.Tools) > 0)
	if hold {
		r.hold = nil
		close(r.held)
	}
	r.lock.Unlock()
	if hold {
		<-in.Context().Done()
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	text, _ := json.Marshal(reply)
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", text)
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// stored waits until so many rows of stages are stored of the last question, and returns
// them as "stage member".
func (r *councilRig) stored(n int) []string {
	r.t.Helper()
	db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(r.vault, "Chat", "sessions.db")+"?mode=ro")
	r.sql(err)
	defer db.Close()
	var list []string
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) { // a file can't be waited for
		list = nil
		r.sql(db.Select(&list, `SELECT stage || ' ' || replace(model_id, '/m', '') FROM council_stages WHERE stage <> 'choice' AND query_id = (SELECT query_id FROM council_queries ORDER BY created_at DESC, query_id DESC LIMIT 1)`))
		if len(list) == n {
			return list
		}
		if time.Now().After(end) {
			r.t.Fatalf("stored are %v, want %d\n%s", list, n, r.child.tail())
		}
	}
}

// of returns what the members were asked by the child that was started last.
func (r *councilRig) of() map[string]int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return maps.Clone(r.asked[r.births.Load()])
}

// Wherever in a council's answer the gateway is killed, the next one goes on with what is
// stored: who has answered, compared, rated, reviewed or answered again is not asked for
// it again, and the answer is shown once.
func TestCrashOfACouncilAsksNoMemberAgainForWhatIsStored(t *testing.T) {
	t.Parallel()
	r := newCouncilRig(t)
	for _, c := range []struct {
		name   string
		hold   func(stage, member string, primary bool) bool
		stored int // answers, comparison, ratings, reviews and new answers
	}{
		{"the primary answers", func(s, _ string, primary bool) bool { return s == toAnswer && primary }, 0},
		{"another member answers", func(s, _ string, primary bool) bool { return s == toAnswer && !primary }, 2},
		{"the judge compares", func(s, _ string, _ bool) bool { return s == toCompare }, 3},
		{"a member rates", func(s, _ string, _ bool) bool { return s == toRate }, 3 + 1 + 2},
		{"a member reviews", func(s, _ string, _ bool) bool { return s == toReview }, 3 + 1 + 3 + 1},
		{"the author answers again", func(s, _ string, _ bool) bool { return s == toRevise }, 3 + 1 + 3 + 2},
		{"the answer is delivered", nil, 3 + 1 + 3 + 2 + 1},
	} {
		r.kill(c.name, c.hold, c.stored)
	}
	r.stop()
	r.prove()
}

// The answer breaks a wish for the second time in a row. Killed while it is written again, or
// when the new one is delivered: there is one answer, and it follows the wish.
func TestCrashOfACouncilWhileAnAnswerIsWrittenAgainShowsOneAnswer(t *testing.T) {
	t.Parallel()
	r := newCouncilRig(t)
	r.cheers, r.all = true, map[string]int{toAnswer: 3, toCompare: 1, toRate: 3, toRewrite: 1}
	r.settingsOfCouncil = slices.Concat(r.settingsOfCouncil, []string{"MODEL", "council/high", "GUEST_MODEL", "council/high"})
	r.start(r.settingsOfCouncil...)
	// What is shown and what is in the prompt of the wish ends before the message's number.
	r.postBehind(0, "correction: never use emojis"+strings.Repeat(", never ever", 26)+", ")
	r.answered()
	r.kill("the author writes again", func(s, _ string, _ bool) bool { return s == toRewrite }, 3+1+3)
	r.kill("the new answer is delivered", nil, 3+1+3+1)
	r.stop()
	r.prove()
	db := r.openCopy()
	defer db.Close()
	var n int
	r.sql(db.Get(&n, `SELECT count(*) FROM correction_events WHERE kind = 'rewritten'`))
	if n != 2 {
		t.Errorf("%d answers are recorded as written again, want 2", n)
	}
}

// kill asks a question, kills the gateway while a request is held and so many rows are
// stored, and holds the next gateway to them.
func (r *councilRig) kill(name string, hold func(string, string, bool) bool, rows int) {
	r.t.Helper()
	r.lock.Lock()
	r.held, r.hold = make(chan struct{}), hold
	held := r.held
	r.lock.Unlock()
	if r.child == nil {
		r.start(r.settingsOfCouncil...)
	}
	if child := r.child; hold == nil { // the platform shows the answer, and the gateway does not hear of it
		r.hooks(nil, func(q req) bool {
			if q.method != "sendmessage" {
				return false
			}
			close(held)
			<-child.killed
			return true
		}, nil)
	}
	r.post(0)
	select {
	case <-held:
	case <-time.After(patience):
		r.t.Fatalf("%s: no such request came, but %v\n%s", name, r.of(), r.child.tail())
	}
	stored := r.stored(rows)
	r.child.kill()
	<-r.child.done
	r.hooks(nil, nil, nil)
	r.note(r.look())
	r.start(r.settingsOfCouncil...)
	if hold == nil {
		r.awaitNotice()
	}
	r.answered()
	again := r.of()
	all := map[string]int{}
	for what := range again {
		stage, _, _ := strings.Cut(what, " ")
		all[stage] += again[what]
	}
	for _, what := range stored {
		if again[what] > 0 {
			r.t.Errorf("killed while %s: %s is asked again, although it was stored", name, what)
		}
		stage, _, _ := strings.Cut(what, " ")
		all[stage]++
	}
	if !maps.Equal(all, r.all) {
		r.t.Errorf("killed while %s: stored were %v, then %v was asked for; want in all %v", name, slices.Sorted(slices.Values(stored)), again, r.all)
	}
}

// awaitNotice waits until the chat is told that a message may be missing.
func (r *councilRig) awaitNotice() {
	r.t.Helper()
	if !r.wait(patience, func() bool {
		return slices.ContainsFunc(r.said[r.chats[0].key], func(u utterance) bool { return strings.HasPrefix(u.text, texts.Text("unsure")) })
	}) {
		r.t.Fatalf("no notice of a doubtful answer: %v", r.said)
	}
}
