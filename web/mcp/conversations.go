package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

type sessionsIn struct {
	Search   string `json:"search,omitempty" jsonschema:"only conversations with these words in title, tags or messages"`
	Tag      string `json:"tag,omitempty" jsonschema:"only with this tag"`
	Source   string `json:"source,omitempty" jsonschema:"only from here: api, panel, or the name of a platform"`
	Archived *bool  `json:"archived,omitempty" jsonschema:"only archived ones (true) or only others (false)"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; 20 by default"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type sessionsOut struct {
	Notice   string       `json:"notice"`
	Sessions []sessionRow `json:"sessions"`
	Next     string       `json:"next_cursor,omitempty" jsonschema:"pass it as cursor for more; absent on the last page"`
}

type sessionRow struct {
	ID       string    `json:"id" jsonschema:"for session_read and ask_agent"`
	Title    string    `json:"title"`
	Source   string    `json:"source"`
	Agent    string    `json:"agent_type,omitempty"`
	Messages int       `json:"message_count"`
	Archived bool      `json:"archived"`
	Used     time.Time `json:"last_accessed"`
}

func (s *Server) sessionsList(ctx context.Context, _ *call, in sessionsIn) (string, sessionsOut, error) {
	q := url.Values{"limit": {strconv.Itoa(min(cmp.Or(in.Limit, 20), 100))}}
	for name, value := range map[string]string{"search": in.Search, "tag": in.Tag, "source": in.Source, "cursor": in.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if in.Archived != nil {
		q.Set("archived", strconv.FormatBool(*in.Archived))
	}
	out, err := s.sessionPage(ctx, q)
	if err != nil {
		return "", out, err
	}
	var b strings.Builder
	for _, r := range out.Sessions {
		fmt.Fprintf(&b, "%s  %s  %q, %d messages, from %s\n", r.ID, r.Used.UTC().Format("2006-01-02 15:04"), r.Title, r.Messages, r.Source)
	}
	if len(out.Sessions) == 0 {
		return "There are no such conversations.", out, nil
	}
	text := quoted("the list of conversations", b.String())
	if out.Next != "" {
		text += fmt.Sprintf("There may be more: call sessions_list again with cursor %q.\n", out.Next)
	}
	return text, out, nil
}

// sessionPage returns a page of the conversations that the caller's lists show.
func (s *Server) sessionPage(ctx context.Context, q url.Values) (sessionsOut, error) {
	out := sessionsOut{Notice: notice}
	err := s.ask(ctx, question{method: http.MethodGet, path: []string{"api", "chat"}, query: q}, &out)
	for i := range out.Sessions {
		r := &out.Sessions[i]
		r.Title, r.Source = cmp.Or(line(r.Title, 120), "untitled"), line(r.Source, 60)
	}
	return out, err
}

type sessionIn struct {
	ID     string `json:"session_id" jsonschema:"the conversation"`
	Before string `json:"before,omitempty" jsonschema:"only messages before the one with this id"`
	After  string `json:"after,omitempty" jsonschema:"only messages after the one with this id"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; 20 by default"`
}

// A messagePage is an answer of the API.
type messagePage struct {
	Messages []message `json:"messages"`
	More     bool      `json:"has_more"`
}

type message struct {
	ID     string    `json:"id"`
	Role   string    `json:"role"`
	At     time.Time `json:"at"`
	Author *struct {
		Name string `json:"name"`
	} `json:"author"`
	Content []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Name  string `json:"name"`
		Media []struct {
			Name string `json:"name"`
		} `json:"media"`
		Quote *quote `json:"quote"`
	} `json:"content"`
}

// A quote is what a text refers to, or whose it is.
type quote struct {
	Name      string `json:"name"`
	Text      string `json:"text"`
	Own       bool   `json:"own"`       // of the assistant
	Forwarded bool   `json:"forwarded"` // the text is Name's, not the sender's
}

// text returns a line above the text of which it is the quote.
func (q *quote) text() string {
	who := cmp.Or(line(q.Name, 80), core.UnknownName)
	if q.Own {
		who = "the assistant"
	}
	if q.Forwarded {
		return core.ForwardedLine(who)
	}
	return fmt.Sprintf("(about this from %s: %s)\n", who, line(q.Text, 500))
}

func (s *Server) sessionRead(ctx context.Context, _ *call, in sessionIn) (string, any, error) {
	q := url.Values{"limit": {strconv.Itoa(min(cmp.Or(in.Limit, 20), 100))}}
	for name, value := range map[string]string{"before": in.Before, "after": in.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var page messagePage
	if err := s.ask(ctx, question{method: http.MethodGet, path: []string{"api", "chat", in.ID, "messages"}, query: q}, &page); err != nil {
		return "", nil, err
	}
	if len(page.Messages) == 0 {
		return "There are no messages there.", nil, nil
	}
	return shownMessages(in, page), nil, nil
}

// shownMessages returns the messages of a page that fit in a result, and how to read on:
// the oldest of it after a message, otherwise the newest.
func shownMessages(in sessionIn, page messagePage) string {
	forward := in.After != ""
	order := slices.Clone(page.Messages)
	if !forward {
		slices.Reverse(order)
	}
	shown, room := order[:0], maxText
	texts := map[string]string{}
	for _, m := range order {
		text := m.text()
		size := len(text)
		if size > room && len(shown) > 0 {
			break
		}
		texts[m.ID] = core.CutRunes(text, maxText)
		if size > maxText {
			texts[m.ID] += fmt.Sprintf("\n(cut: the message has %d bytes; the resource gatehouse://session/%s has all of it)\n", size, in.ID)
		}
		shown, room = append(shown, m), room-size
	}
	left := len(shown) < len(order)
	if !forward {
		slices.Reverse(shown)
	}
	var b strings.Builder
	for _, m := range shown {
		b.WriteString(texts[m.ID])
	}
	result := quoted("the conversation "+line(in.ID, 130), b.String())
	if first, last := shown[0].ID, shown[len(shown)-1].ID; forward && (left || page.More) {
		result += fmt.Sprintf("Read on with after %q.\n", last)
	} else if !forward && (left || page.More) {
		result += fmt.Sprintf("Read older messages with before %q.\n", first)
	}
	return result
}

// inHeading removes from a name what could end it in the line above a message.
var inHeading = strings.NewReplacer("(", "", ")", "", ",", "")

// text returns a message with a line that states whose it is. The lines of its text begin
// with "> ", so that none of them looks like another message.
func (m *message) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s", m.Role)
	if m.Author != nil && m.Author.Name != "" {
		fmt.Fprintf(&b, " (%s)", inHeading.Replace(core.CleanName(m.Author.Name)))
	}
	if !m.At.IsZero() {
		b.WriteString(", " + m.At.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, ", message %s\n", m.ID)
	for _, c := range m.Content {
		if c.Quote != nil {
			b.WriteString(c.Quote.text())
		}
		switch {
		case c.Name != "":
			fmt.Fprintf(&b, "(used the tool %s)\n", line(c.Name, 80))
		case c.Type == "tool_result" && c.Text != "":
			fmt.Fprintf(&b, "(its result: %s)\n", line(c.Text, 500))
		case c.Text != "" && c.Type == "text":
			b.WriteString("> " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(c.Text, "\n"), "\r", "\n"), "\n", "\n> ") + "\n")
		}
		for _, f := range c.Media {
			fmt.Fprintf(&b, "(a file: %s)\n", line(f.Name, 120))
		}
	}
	return b.String() + "\n"
}
