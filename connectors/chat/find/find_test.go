package find

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
)

// A finder has hits and returns two of them for each query.
type finder struct {
	hits  []search.Hit
	asked search.Query
	by    search.Reader
}

func (f *finder) Search(_ context.Context, q search.Query, r search.Reader) (search.Page, error) {
	f.asked, f.by = q, r
	from := 0
	if q.Cursor != "" {
		_, _ = fmt.Sscan(q.Cursor, &from)
	}
	page := search.Page{Hits: f.hits[from:min(from+2, len(f.hits))]}
	if from+2 < len(f.hits) {
		page.Next = fmt.Sprint(from + 2)
	}
	return page, nil
}

// places are the chats of conversations, by id.
type places map[string]core.Address

func (p places) Bound(_ context.Context, _ store.Queryer, id string) (core.Address, bool, error) {
	at, ok := p[id]
	return at, ok, nil
}

type fixed struct{ core.Clock }

func (fixed) Now() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }

func run(t *testing.T, f *finder, at core.Address, text string) (said string, buttons []string) {
	t.Helper()
	s := New(nil, f, places{"here0000": {Bot: "b", Chat: "1"}, "elsewhere": {Bot: "b", Chat: "2"}, "ofgroup0": {Bot: "b", Chat: "3", Place: "3"}}, berlin, ask.NewButtons(ask.ButtonOptions{Clock: fixed{}}))
	out, err := s.Run(t.Context(), command.Request{User: 7, Call: command.Call{Trust: core.Sandboxed, In: &core.Inbound{Address: at, Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range out.Buttons {
		buttons = append(buttons, row[0].Label)
	}
	return out.Text, buttons
}

func berlin(context.Context, int64) (*time.Location, error) {
	return time.LoadLocation("Europe/Berlin")
}

var direct, group = core.Address{Bot: "b", Chat: "1"}, core.Address{Bot: "b", Chat: "9", Place: "9"}

func TestRun_ShowsDatesOfTheSendersTimeZone(t *testing.T) {
	f := &finder{hits: []search.Hit{{Type: search.Session, ID: "elsewhere", User: 7, Title: "Tea", At: time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC)}}}
	if said, _ := run(t, f, direct, "tea"); !strings.Contains(said, ", 1 March 2026") {
		t.Errorf("it is the first of March there: %q", said)
	}
}

func TestRun_ShowsHitsWithWhatWasSearchedForInBold(t *testing.T) {
	f := &finder{hits: []search.Hit{
		{Type: search.Document, ID: "doc:1", Title: "*Tea*", Path: "Notes/my_tea.md", Excerpt: "Green tea\u202e <b>now</b>", Marks: [][2]int{{0, 5}, {6, 9}, {7, 8}, {4, 900}}, At: fixed{}.Now()},
		{Type: search.Session, ID: "elsewhere", User: 7, Excerpt: "## [tea](a.md)?", Marks: [][2]int{{4, 7}}},
		{Type: search.Session, ID: "of another", User: 8, Title: "Secret", Excerpt: "their tea"},
		{Type: search.Session, ID: "here0000", User: 7, Title: "Here", Excerpt: "tea"},
		{Type: search.Session, ID: "ofgroup0", User: 7, Title: "Garden", Excerpt: "tea"},
	}}
	said, buttons := run(t, f, direct, "green tea")
	for _, want := range []string{`1. **\*Tea\***, 1 March 2026, Notes/my\_tea.md`, "\n**Green** **tea**\\\\u{202E} \\<b\\>now\\</b\\>", "2. **(without a title)**, `elsewher`\n**tea**?", "3. **Here**, `here0000`", "4. **Garden**"} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %q in %s", want, said)
		}
	}
	if strings.Contains(said, "Secret") || strings.Contains(said, "their") {
		t.Errorf("another user's conversation is shown: %s", said)
	}
	if got := strings.Join(buttons, "|"); got != "Continue 2: (without a title)" {
		t.Errorf("buttons %q", got)
	}
	if f.by.User != 7 || f.by.Trust != core.Sandboxed || f.by.NoSessions || f.by.Everyone || f.asked.Text != "green tea" {
		t.Errorf("%+v asks %+v", f.by, f.asked)
	}
}

func TestRun_SearchesForNoOneInAGroup(t *testing.T) {
	f := &finder{hits: []search.Hit{{Type: search.Session, ID: "elsewhere", User: 7, Title: "Secret", Excerpt: "tea"}}}
	said, buttons := run(t, f, group, "tea type:session")
	if !strings.HasPrefix(said, "Nothing found for “tea type:session”.") || !strings.Contains(said, "documents only") || len(buttons) > 0 {
		t.Errorf("%s %q", said, buttons)
	}
	if f.by.User != 0 || !f.by.NoSessions || f.by.Trust != core.Sandboxed || !slices.Equal(f.asked.Types, []string{search.Document}) {
		t.Errorf("the reader is %+v, who asks for %q", f.by, f.asked.Types)
	}
}

func TestRun_ShowsFiveHitsAndTheNextOnes(t *testing.T) {
	for _, n := range []int{0, 4, 5, 6, 10, 11} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := &finder{}
			for i := range n {
				f.hits = append(f.hits, search.Hit{Type: search.Document, Path: fmt.Sprintf("f%d.md", i+1), Excerpt: "tea"})
			}
			got := 0
			for page := 1; ; page++ {
				said, buttons := run(t, f, direct, map[bool]string{true: "tea", false: fmt.Sprintf("page:%d tea", page)}[page == 1])
				shown := strings.Count(said, ".md")
				for i := got + 1; i <= got+shown; i++ {
					if !strings.Contains(said, fmt.Sprintf("%d. Document, f%d.md", i, i)) {
						t.Errorf("page %d has no hit %d: %s", page, i, said)
					}
				}
				if got += shown; len(buttons) == 0 {
					break
				}
				if shown != 5 || buttons[0] != "More" {
					t.Fatalf("page %d has %d hits and %q", page, shown, buttons)
				}
			}
			if got != n {
				t.Errorf("%d hits of %d", got, n)
			}
		})
	}
	if said, _ := run(t, &finder{}, direct, "page:3 tea"); !strings.HasPrefix(said, "Nothing more found for “tea”.") {
		t.Error(said)
	}
	if said, _ := run(t, &finder{}, direct, " "); !strings.Contains(said, "/search green tea") {
		t.Error(said)
	}
}
