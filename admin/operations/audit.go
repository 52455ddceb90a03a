package operations

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web"
)

const (
	auditPath    = "/admin/audit"
	auditPerPage = 50
	maxExport    = 100_000 // events of one export
	exportPage   = 500
)

// An AuditLog is a page of what was done, the newest first (store.AuditLog).
type AuditLog func(ctx context.Context, f store.AuditFilter) (page []store.AuditEvent, next string, err error)

type auditBody struct {
	Lede        string
	Events      page.Part[[]auditRow]
	Filter      auditAsk
	Next, First string
	Export      [2]string // addresses: CSV, JSON
	Quick       []pick    // Value is an address
	Topics      []pick
	Vias        []pick
	Times       []pick
	People      []string // names to choose from
}

// A pick is a choice of a filter.
type pick struct {
	page.Choice
	Current bool
}

type auditRow struct {
	store.AuditEvent
	Said  []page.Words // what was done, as a sentence
	Did   string       // the action as a label
	Where string       // how it was done

	More  int       // equal events before it that are not shown
	First time.Time // the first of them
}

// An auditAsk is the filter of the log, as the address has it.
type auditAsk struct{ Action, Via, Subject, User, Since, Cursor string }

var (
	auditTopics = []page.Choice{{Value: "", Label: "anything"}, {Value: "pairing", Label: "requests: approved, denied, blocked"}, {Value: "access", Label: "access of people"}, {Value: "invite", Label: "invitations"},
		{Value: "place", Label: "groups"}, {Value: "user", Label: "people and their data"}, {Value: "ask", Label: "tool calls and questions"}, {Value: "raise", Label: "trust full for a time"}, {Value: "grant", Label: "standing permissions"},
		{Value: "session", Label: "conversations"}, {Value: "queue", Label: "stuck messages"}, {Value: "bot", Label: "bots"}, {Value: "setting", Label: "settings"}, {Value: "agent", Label: "agents’ files"}, {Value: "budget", Label: "budgets"},
		{Value: "key", Label: "API keys"}, {Value: "admin", Label: "signing in and passwords"}, {Value: "backup", Label: "backups"}, {Value: "socket", Label: "the command line"},
		{Value: "run", Label: "answers: stopped, asked again"}, {Value: "message", Label: "messages that were sent"}, {Value: "tool", Label: "tools of helpers"}, {Value: "mcp", Label: "uses over MCP"}, {Value: "memory", Label: "memory"},
		{Value: "journal", Label: "the journal"}, {Value: "daily", Label: "daily agents"}, {Value: "project", Label: "projects"}, {Value: "context", Label: "saved contexts"}, {Value: "import", Label: "imports"}, {Value: "index", Label: "the search"},
		{Value: "sync", Label: "synced files"}, {Value: "identity", Label: "accounts of people"}, {Value: "link", Label: "codes to link accounts"}, {Value: "owner", Label: "the claim of the bots"}, {Value: "bots", Label: "the original system"}, {Value: "content_key", Label: "the key of encrypted texts"}}
	auditVias  = []page.Choice{{Value: "", Label: "anywhere"}, {Value: "panel", Label: "in the panel"}, {Value: "chat", Label: "in chat"}, {Value: "api", Label: "over the API"}, {Value: "cli", Label: "on the command line"}, {Value: "upkeep", Label: "automatically"}}
	auditTimes = []page.Choice{{Value: "", Label: "at any time"}, {Value: "1h", Label: "in the last hour"}, {Value: "24h", Label: "in the last 24 hours"}, {Value: "7d", Label: "in the last 7 days"}, {Value: "30d", Label: "in the last 30 days"}}
	// auditQuick are the topics with a link of their own.
	auditQuick = []page.Choice{{Value: "", Label: "Everything"}, {Value: "pairing", Label: "Who was let in"}, {Value: "setting", Label: "Settings"}, {Value: "ask", Label: "Tool calls"}, {Value: "admin", Label: "Sign-ins"}}
)

// picks returns choices with the current one marked; one that is none of them is
// added.
func picks(choices []page.Choice, current string) (out []pick) {
	known := false
	for _, c := range choices {
		known = known || c.Value == current
		out = append(out, pick{c, c.Value == current})
	}
	if !known {
		out = append(out, pick{page.Choice{Value: current, Label: page.Exact(current)}, true})
	}
	return out
}

func labelOf(choices []page.Choice, value string) string {
	for _, c := range choices {
		if c.Value == value && value != "" {
			return c.Label
		}
	}
	return value
}

func (a auditAsk) Any() bool { return a.Action+a.Via+a.Subject+a.User+a.Since != "" }

func (a auditAsk) address(path string, more ...string) string {
	v := url.Values{}
	for name, value := range map[string]string{"action": a.Action, "via": a.Via, "subject": a.Subject, "user": a.User, "since": a.Since} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			v.Set(more[i], more[i+1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func auditAskOf(q url.Values) auditAsk {
	field := func(name string) string { return core.CutRunes(strings.TrimSpace(q.Get(name)), 200) }
	return auditAsk{field("action"), field("via"), field("subject"), field("user"), field("since"), q.Get("cursor")}
}

// filter returns a as the log takes it. An action without a dot is a prefix.
func (a auditAsk) filter(now time.Time, names page.Names) (store.AuditFilter, error) {
	f := store.AuditFilter{Action: a.Action, Via: a.Via, Subject: a.Subject, Cursor: a.Cursor, Limit: auditPerPage}
	if a.Action != "" && !strings.Contains(a.Action, ".") {
		f.Action = a.Action + ".*"
	}
	if a.User != "" {
		n, err := userOf(a.User, names)
		if err != nil {
			return f, err
		}
		f.User = &n
	}
	since := map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}
	if d, ok := since[a.Since]; ok {
		f.Since = now.Add(-d)
	}
	return f, nil
}

// userOf returns the number of the user whose number or name s is.
func userOf(s string, names page.Names) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	var found []int64
	for user := range names {
		if strings.EqualFold(names.Of(user), s) {
			return user, nil
		}
		if strings.Contains(strings.ToLower(names.Of(user)), strings.ToLower(s)) {
			found = append(found, user)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case strings.EqualFold(names.Of(core.Operator), s):
		return core.Operator, nil
	case strings.EqualFold(s, gateway):
		return 0, nil
	case len(found) > 1:
		return 0, core.Errorf(core.Invalid, "%d people have “%s” in their name; write the whole name, or their number", len(found), s)
	}
	return 0, core.Errorf(core.Invalid, "a user is a number or a name, and no one is called “%s”", s)
}

// maxWho bounds the names that a filter offers.
const maxWho = 100

// who returns names to choose from: the operator, the gateway, and others.
func who(names page.Names) []string {
	var others []string
	for user := range names {
		if user != core.Operator {
			others = append(others, names.Of(user))
		}
	}
	slices.Sort(others)
	return append([]string{names.Of(core.Operator), gateway}, page.Head(slices.Compact(others), maxWho)...)
}

func (p *auditPages) auditPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := auditBody{Filter: auditAskOf(r.URL.Query())}
	b.Topics, b.Vias, b.Times = picks(auditTopics, b.Filter.Action), picks(auditVias, b.Filter.Via), picks(auditTimes, b.Filter.Since)
	for _, c := range auditQuick {
		ask := auditAsk{Action: c.Value}
		b.Quick = append(b.Quick, pick{page.Choice{Value: ask.address(auditPath), Label: c.Label}, b.Filter == ask})
	}
	names := p.eventNames(ctx)
	b.People = who(names.Names)
	b.Events = page.Load(ctx, p.frame, "The log", func(ctx context.Context) (rows []auditRow, err error) {
		f, err := b.Filter.filter(p.frame.Clock.Now(), names.Names)
		if err != nil {
			return nil, err
		}
		events, next, err := p.log(ctx, f)
		for _, e := range events {
			rows = fold(rows, auditRow{AuditEvent: e, Said: names.sentence(e), Did: didWord(e.Action), Where: labelOf(auditVias, e.Via)})
		}
		if next != "" {
			b.Next = b.Filter.address(auditPath, "cursor", next)
		}
		return rows, err
	})
	if b.Filter.Cursor != "" {
		b.First = b.Filter.address(auditPath)
	}
	for i, format := range []string{"csv", "json"} {
		b.Export[i] = b.Filter.address(auditPath+"/export", "format", format)
	}
	b.Lede = "Who did what, newest first. Open a line for its entry; it holds ids, never the text of chats."
	return p.frame.Show(w, r, http.StatusOK, "audit", page.View{Title: "Audit", Every: 30, Body: b})
}

// fold appends a row, or counts it with an equal row before it, so that a script
// that polls once a minute does not hide other events.
func fold(rows []auditRow, r auditRow) []auditRow {
	if n := len(rows) - 1; n >= 0 {
		last := &rows[n]
		if last.Action == r.Action && last.User == r.User && last.Via == r.Via && last.Subject == r.Subject && bytes.Equal(last.Detail, r.Detail) {
			last.More, last.First = last.More+1, r.At
			return rows
		}
	}
	return append(rows, r)
}

// didWord returns an action as a label.
func didWord(action string) string {
	topic, verb, ok := strings.Cut(action, ".")
	if !ok {
		return action
	}
	return page.Platform(topic) + ": " + strings.ReplaceAll(verb, "_", " ")
}

// auditExport sends what the filter matches as a file, page by page.
func (p *auditPages) auditExport(w http.ResponseWriter, r *http.Request) error {
	ask := auditAskOf(r.URL.Query())
	names := p.eventNames(r.Context())
	names.Title, names.Remembered = nil, nil // one look-up a row: too much for a long log, and a file is passed on
	f, err := ask.filter(p.frame.Clock.Now(), names.Names)
	if err != nil {
		return err
	}
	f.Limit = exportPage
	format := r.URL.Query().Get("format")
	if format != "csv" && format != "json" {
		return core.Errorf(core.Invalid, "the log is given as csv or json")
	}
	events, next, err := p.log(r.Context(), f)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Disposition", `attachment; filename="gatehouse-audit.`+map[string]string{"csv": "csv", "json": "jsonl"}[format]+`"`)
	h.Set("Content-Type", map[string]string{"csv": "text/csv; charset=utf-8", "json": "application/x-ndjson"}[format])
	out := exporter(w, format, names)
	for n := 0; ; {
		if err := web.Hurry(w); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		for _, e := range events {
			if out(e) != nil {
				return nil // the client has disconnected
			}
		}
		if n += len(events); next == "" || n >= maxExport {
			return nil
		}
		f.Cursor = next
		if events, next, err = p.log(r.Context(), f); err != nil {
			p.frame.Log.ErrorContext(r.Context(), "audit export", "err", err)
			panic(http.ErrAbortHandler) // half a file must not look like a whole one
		}
	}
}

// exporter returns a function that writes an event. A CSV has the sentence as well.
func exporter(w http.ResponseWriter, format string, names EventNames) func(store.AuditEvent) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		return func(e store.AuditEvent) error { return enc.Encode(e) }
	}
	c := csv.NewWriter(w)
	_ = c.Write([]string{"id", "at", "user_id", "via", "action", "subject", "detail", "sentence"}) // Flush returns the same error
	return func(e store.AuditEvent) error {
		err := c.Write([]string{strconv.FormatInt(e.ID, 10), e.At.UTC().Format(time.RFC3339), strconv.FormatInt(e.User, 10), cell(e.Via), cell(e.Action), cell(e.Subject), cell(string(e.Detail)), cell(page.Plain(names.sentence(e)))})
		c.Flush()
		return errors.Join(err, c.Error())
	}
}

// cell returns s so that a spreadsheet does not read it as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
