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
	Vias        []string
	Times       []string
}

type auditRow struct {
	store.AuditEvent
	Who string
	Did string // the action as a label

	More  int       // equal events before it that are not shown
	First time.Time // the first of them
}

// An auditAsk is the filter of the log, as the address has it.
type auditAsk struct{ Action, Via, Subject, User, Since, Cursor string }

var (
	auditVias  = []string{"panel", "chat", "api", "cli", "upkeep"}
	auditTimes = []string{"1h", "24h", "7d", "30d"}
)

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
func (a auditAsk) filter(now time.Time) (store.AuditFilter, error) {
	f := store.AuditFilter{Action: a.Action, Via: a.Via, Subject: a.Subject, Cursor: a.Cursor, Limit: auditPerPage}
	if a.Action != "" && !strings.Contains(a.Action, ".") {
		f.Action = a.Action + ".*"
	}
	if a.User != "" {
		n, err := strconv.ParseInt(a.User, 10, 64)
		if err != nil {
			return f, core.Errorf(core.Invalid, "a user is a number: 1 is the operator, 0 the program")
		}
		f.User = &n
	}
	since := map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}
	if d, ok := since[a.Since]; ok {
		f.Since = now.Add(-d)
	}
	return f, nil
}

func (p *auditPages) auditPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := auditBody{Filter: auditAskOf(r.URL.Query()), Vias: auditVias, Times: auditTimes}
	names := p.names(ctx)
	b.Events = page.Load(ctx, p.frame, "The log", func(ctx context.Context) (rows []auditRow, err error) {
		f, err := b.Filter.filter(p.frame.Clock.Now())
		if err != nil {
			return nil, err
		}
		events, next, err := p.log(ctx, f)
		for _, e := range events {
			rows = fold(rows, auditRow{AuditEvent: e, Who: whoDid(names, e.User), Did: didWord(e.Action)})
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
	b.Lede = "Every action, with the user and the way it was taken. Newest first; it holds ids, never the text of chats."
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

func whoDid(names page.Names, user int64) string {
	if user == 0 {
		return "The program"
	}
	return names.Of(user)
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
	f, err := ask.filter(p.frame.Clock.Now())
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
	out := exporter(w, format)
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

func exporter(w http.ResponseWriter, format string) func(store.AuditEvent) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		return func(e store.AuditEvent) error { return enc.Encode(e) }
	}
	c := csv.NewWriter(w)
	_ = c.Write([]string{"id", "at", "user_id", "via", "action", "subject", "detail"}) // Flush returns the same error
	return func(e store.AuditEvent) error {
		err := c.Write([]string{strconv.FormatInt(e.ID, 10), e.At.UTC().Format(time.RFC3339), strconv.FormatInt(e.User, 10), cell(e.Via), cell(e.Action), cell(e.Subject), cell(string(e.Detail))})
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
