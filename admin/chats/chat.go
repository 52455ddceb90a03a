package chats

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/chats/input"
	"gatehouse/admin/markdown"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/attach/content"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
)

const (
	chatMessages = 40        // of a page of a transcript
	maxSaid      = 6000      // bytes of one text on the page; the export has all
	maxResult    = input.Max // of a tool's result
	maxTalk      = 60 << 10  // of all of them, escaped
	maxRuns      = 12
)

type chatBody struct {
	CSRF        string
	ID          string
	Detail      session.Detail
	Display     string
	Group       string        // the group's name, "" of any other conversation
	Projects    []page.Choice // of its user, its own among them
	Bound       core.Address
	IsBound     bool
	Running     bool
	Waits       bool // a message waits for its turn, or is being answered
	Said        page.Part[[]said]
	Earlier     string // address of the messages before
	Latest      string // address of the newest, on a page before it
	Cut         bool
	Runs        page.Part[[]runView]
	Agents      []string
	Levels      []core.Trust // below the present ceiling
	Saved       []string     // contexts that can be chosen
	Next        page.Part[nextModel]
	Own         bool // who looks may write in it here
	Log, LogOff bool // it is entered in the owner's log, unless LogOff
	Asks        []template.HTML
	AsksBad     string
	Asked       page.Part[[]questionCard]
	Compose     composer
	councils    map[string]template.HTML
}

// A said is one message as it is shown.
type said struct {
	ID      string
	Who     string // "person", "answer", "summary", "failed"
	Name    string
	By      transcript.Author // of a user's message from a chat
	Model   string
	At      time.Time
	Run     string
	Parts   []saidPart
	Fail    *failure      // of "failed"
	Day     string        // of the first message of a day, in UTC
	Limit   bool          // an answer that was cut at the model's output limit
	Read    []read        // of a user's message
	Council template.HTML // a link to how a council came to its answer
}

// A saidPart is text, thinking, a tool call with its result, or files.
type saidPart struct {
	Kind   string // text, thinking, call, media, file
	Text   string
	Quote  *quoted       // what the text refers to
	HTML   template.HTML // Text rendered; "" for what a user wrote, which is shown as it is
	Cut    bool
	Label  string
	Input  string
	Fields []input.Field // of Input, for a tool of an MCP server
	Result string
	Failed bool
	Done   bool
	Took   time.Duration
	Files  []attached
	Helper *helperView // of a call of Task
}

// A helperView is what the helper of a call did: its text and tool calls.
type helperView struct {
	Calls int
	Parts []saidPart
	More  int // further calls, which are not shown
}

type runView struct {
	runs.Line
	Tone, Word string
	Took       time.Duration
	Spent      usage.Total
	Tokens     string
	Cost       string
}

// URL returns the address of a conversation.
func URL(id string) string { return chatsPath + "/" + url.PathEscape(id) }

func (p *Pages) chatPage(w http.ResponseWriter, r *http.Request) error {
	err := p.showChat(w, r, http.StatusOK, r.PathValue("id"), composer{})
	if core.KindOf(err) == core.NotFound && r.URL.Query().Has("new") { // it begins with the turn of its first message
		return p.frame.Show(w, r, http.StatusOK, "begins", page.View{Title: "New chat", In: "chats", Topics: []core.Topic{core.TopicChats}, Every: 1})
	}
	return err
}

// showChat shows a conversation; c has the message that was refused.
func (p *Pages) showChat(w http.ResponseWriter, r *http.Request, status int, id string, c composer) error {
	ctx, now := r.Context(), p.frame.Clock.Now()
	who, _ := page.Principal(r)
	d, err := p.o.Chats.Detail(ctx, id)
	if err != nil {
		return err
	}
	names := p.links.Names(ctx)
	b := chatBody{CSRF: page.Token(r), ID: d.ID, Detail: d, Display: names.Of(d.User), Running: p.running()[d.ID]}
	if b.Bound, b.IsBound, err = p.o.Bound(ctx, d.ID); err != nil {
		return err
	}
	if b.Waits, err = p.o.Waits(ctx, d.ID); err != nil {
		return err
	}
	groups, err := p.groupsOf(ctx, d.Session)
	if err != nil {
		return err
	}
	b.Group = groups[d.ID]
	b.Log, b.LogOff = p.o.Logs && b.Group == "" && d.User == core.Operator, d.ActivityOff()
	b.Own = p.o.Say != nil && d.User == who.User && !d.Archived
	c.CSRF, c.ID, c.Attach, c.Running = b.CSRF, d.ID, p.o.Files != nil, b.Running
	c.Speak = b.Own && p.listen(w)
	b.Compose = c
	b.Asks, b.AsksBad = p.links.Cards(ctx, d.ID, b.CSRF, names)
	b.Asked = p.inlineQuestions(ctx, d.ID, who.User, b.CSRF)
	b.Compose.Asked = len(b.Asked.Value) > 0
	b.Runs = p.runsOf(ctx, d.ID, now)
	if p.links.ProjectsOf != nil {
		b.Projects = p.links.ProjectsOf(ctx, d.User, d.Project)
	}
	p.transcript(ctx, &b, r.URL.Query().Get("before"))
	b.Agents, b.Next, b.Saved = p.links.Agents(), p.nextOf(ctx, d.Session), p.links.Contexts(who)
	for _, level := range []core.Trust{core.Vault, core.Sandboxed} {
		if d.TrustLevel > level {
			b.Levels = append(b.Levels, level)
		}
	}
	every := 10
	if b.Running || b.Waits {
		every = 2
	}
	return p.frame.Show(w, r, status, "chat", page.View{Title: cmp.Or(d.Title, "Untitled") + within(b.Group), In: "chats", Topics: []core.Topic{core.TopicApprovals}, Every: every, Body: b})
}

// transcript reads the page of messages that ends before a message; "" is the
// end.
func (p *Pages) transcript(ctx context.Context, b *chatBody, before string) {
	b.Said = page.Load(ctx, p.frame, "Messages", func(ctx context.Context) ([]said, error) {
		found, err := p.o.Chats.Page(ctx, b.Detail.Session, transcript.PageQuery{Before: before, Limit: chatMessages})
		if len(found.Messages) > 0 {
			b.councils = p.links.CouncilLinks(ctx, b.ID, found.Messages[0].At)
		}
		list, first := p.talk(found.Messages, b, before)
		if (found.More || first > 0) && first < len(found.Messages) {
			b.Earlier = URL(b.ID) + "?before=" + url.QueryEscape(found.Messages[first].Line())
		}
		b.Cut = found.Cut && !found.More
		if err != nil {
			return list, err
		}
		if err := p.reads(ctx, b.ID, list); err != nil {
			return list, err
		}
		list, err = p.failures(ctx, b, list, before == "")
		beginDays(list)
		return list, err
	})
	if before != "" {
		b.Latest = URL(b.ID)
	}
}

// beginDays marks the first message of each day. Days are those of UTC; chat.js has them
// as the reader does.
func beginDays(list []said) {
	before := ""
	for i := range list {
		if list[i].At.IsZero() {
			continue
		}
		if day := list[i].At.UTC().Format("Monday, 2 January 2006 (UTC)"); day != before {
			list[i].Day, before = day, day
		}
	}
}

func (p *Pages) runsOf(ctx context.Context, id string, now time.Time) page.Part[[]runView] {
	return page.Load(ctx, p.frame, "What was done and what it cost", func(ctx context.Context) ([]runView, error) {
		lines, err := p.o.Runs.LinesOf(ctx, id, maxRuns)
		if err != nil {
			return nil, err
		}
		return p.runViews(ctx, now, lines...)
	})
}

func (p *Pages) runViews(ctx context.Context, now time.Time, lines ...runs.Line) ([]runView, error) {
	ids := make([]string, len(lines))
	for i, l := range lines {
		ids[i] = l.ID
	}
	spent, err := p.o.Spent(ctx, ids...)
	out := make([]runView, len(lines))
	for i, l := range lines {
		v := runView{Line: l, Took: l.Took(now), Spent: spent[l.ID]}
		v.Tone, v.Word = runState(l.State)
		v.Cost = strings.TrimPrefix(page.Price(v.Spent.MicroUSD, v.Spent.Unpriced), ", ")
		if n := v.Spent.Input + v.Spent.Output + v.Spent.CacheRead + v.Spent.CacheWrite; n > 0 {
			v.Tokens = page.Grouped(n)
		}
		out[i] = v
	}
	return out, err
}

// Calls returns how often a model was called.
func (v *runView) Calls() string { return page.Count(int(v.Spent.Calls), "call", "calls") }

func runState(state string) (tone, word string) {
	switch state {
	case "running":
		return "note", "Running"
	case "done":
		return "good", "Answered"
	case "aborted":
		return "idle", "Stopped"
	}
	return "bad", "Failed"
}

// talk returns the newest messages that fit on a page, and the index of the
// first. Tool results are shown with their calls. next is the message after these,
// for the addresses of files; "" is none.
func (p *Pages) talk(messages []transcript.Message, b *chatBody, next string) (list []said, first int) {
	t := telling{councils: b.councils, label: p.o.Label, display: b.Display, id: b.ID, group: b.Detail.User == core.Operator, results: map[string]result{}} // bounded by the page's messages
	for i := range messages {
		at := fileAt(messages, i, next)
		n := 0
		for j := range messages[i].Blocks {
			b := &messages[i].Blocks[j]
			if b.Type == "tool_result" {
				t.results[b.ToolUseID] = result{b, messages[i].At, at, n}
			}
			n += len(b.Media)
		}
	}
	size := 0
	all := make([]said, 0, len(messages))
	for i := len(messages) - 1; i >= 0; i-- {
		s, n := t.said(&messages[i], fileAt(messages, i, next))
		if size += n; size > maxTalk && i < len(messages)-1 {
			first = i + 1
			break
		}
		if len(s.Parts) > 0 {
			all = append(all, s)
		}
	}
	slices.Reverse(all)
	return all, first
}

// fileAt returns the query that finds the files of a message.
func fileAt(messages []transcript.Message, i int, next string) url.Values {
	q := url.Values{"m": {messages[i].Line()}}
	if i+1 < len(messages) {
		next = messages[i+1].Line()
	}
	if next != "" {
		q.Set("next", next)
	}
	return q
}

// A telling renders messages, the newest first.
type telling struct {
	label       func(tool string, input json.RawMessage) string
	display, id string
	group       bool                     // of a group's conversation
	results     map[string]result        // by call
	councils    map[string]template.HTML // by run, of those without a message so far
	thumbs      int
}

// A result is what a tool call gave, when, and where its files are: the first
// is the nth of its message.
type result struct {
	*core.Block
	when  time.Time
	at    url.Values
	first int
}

func (t *telling) said(m *transcript.Message, at url.Values) (s said, size int) {
	s = said{ID: m.Line(), Who: "person", Name: t.display, At: m.At, Run: m.Run}
	switch {
	case m.Summary:
		s.Who, s.Name = "summary", "Summary of earlier messages"
	case m.Role == "assistant":
		s.Who, s.Name, s.Model = "answer", "Answer", m.Model
		s.Limit, s.Council = m.Stop == "max_tokens", t.councils[m.Run]
		delete(t.councils, m.Run) // it is the run's last message
	}
	by, blocks := m.Shown(t.group)
	if s.Who == "person" && by.Name != "" {
		s.Name, s.By = by.Name, by
	}
	n := 0
	for i := range blocks {
		b := &blocks[i].Block
		x, ok := t.part(m, b, at, n)
		n += len(b.Media)
		if q := blocks[i].Quote; q != nil {
			x.Quote, ok = quotedOf(q), true
			size += 200 + 2*len(x.Quote.Text)
		}
		if !ok {
			continue
		}
		s.Parts = append(s.Parts, x)
		size += x.size()
	}
	return s, size
}

// part returns one block as it is shown; false for one that is empty or shown
// elsewhere.
func (t *telling) part(m *transcript.Message, b *core.Block, at url.Values, first int) (x saidPart, ok bool) {
	x = saidPart{Kind: b.Type}
	switch b.Type {
	case "text", "thinking":
		if name, file, note, ok := content.OfMessage(b.Text); ok && m.Role == "user" {
			x.Kind, x.Label, x.Result = "file", name, note
			x.Text, x.Cut = page.Shorten(file, maxSaid)
			return x, true
		}
		x.Text, x.Cut = page.Shorten(b.Text, maxSaid)
		if m.Role == "assistant" || m.Summary {
			x.Text, x.HTML = "", markdown.HTML(x.Text)
		}
		return x, strings.TrimSpace(b.Text) != ""
	case "tool_use":
		x.Kind, x.Label, x.Input, x.Fields = "call", t.label(b.Name, b.Input), input.Pretty(b.Input), input.Fields(b.Name, b.Input)
		if res, there := t.results[b.ID]; there {
			x.Done, x.Failed = true, res.IsError
			x.Result, x.Cut = page.Shorten(core.Visible(res.Text), maxResult)
			if !res.when.IsZero() && !m.At.IsZero() {
				x.Took = max(0, res.when.Sub(m.At))
			}
			x.Files = t.files(res.Media, res.first, res.at)
		}
		x.Helper = t.helped(m.Helpers[b.ID])
		return x, true
	case "media":
		x.Files = t.files(b.Media, first, at)
		return x, len(x.Files) > 0
	}
	return x, false // a result is shown with its call
}

// files returns a block's files, at most maxThumbs of a page with a thumbnail.
func (t *telling) files(media []core.Media, first int, at url.Values) []attached {
	list := attachedOf(page.Head(media, maxFiles), first, at, t.id)
	for i := range list {
		if list[i].Thumb == "" {
			continue
		}
		if t.thumbs++; t.thumbs > maxThumbs {
			list[i].Thumb = ""
		}
	}
	return list
}
