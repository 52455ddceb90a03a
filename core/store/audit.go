package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

// Bounds of AuditLog.
const (
	auditLimit    = 50
	maxAuditLimit = 500
	// auditScan is how many rows are read for one page: if matches are rare, a
	// page may be short and the next one continues.
	auditScan = 20_000
)

// An AuditFilter chooses events. Empty fields choose all.
type AuditFilter struct {
	User    *int64 // who did it; 0 is the program
	Action  string // "pairing.approve", or "pairing.*" for all that begin so
	Subject string
	Via     string
	Since   time.Time // not before
	Until   time.Time // before
	Limit   int       // 0 is 50; at most 500
	Cursor  string    // from the page before
}

// An AuditEvent is one row of the log: ids only, names live in users.
type AuditEvent struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	User    int64           `json:"user_id"`
	Via     string          `json:"via"`
	Action  string          `json:"action"`
	Subject string          `json:"subject"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}

// AuditLog returns a page of events, newest first, and the cursor of the next
// page, "" at the end. A page costs the same in a log of any length; it may have
// fewer events than requested, even none, before the end. A foreign cursor is
// core.Invalid.
func AuditLog(ctx context.Context, q Queryer, f AuditFilter) (page []AuditEvent, next string, err error) {
	switch {
	case f.Limit <= 0:
		f.Limit = auditLimit
	case f.Limit > maxAuditLimit:
		f.Limit = maxAuditLimit
	}
	l, err := f.query()
	if err != nil {
		return nil, "", err
	}
	var rows []auditRow
	if err := q.Select(ctx, &rows, l.page(f.Limit+1), l.args...); err != nil {
		return nil, "", fmt.Errorf("audit log: %w", err)
	}
	more := len(rows) > f.Limit
	if more {
		rows = rows[:f.Limit]
		next = rows[f.Limit-1].cursor()
	}
	page = make([]AuditEvent, len(rows))
	for i, r := range rows {
		if page[i], err = r.event(); err != nil {
			return nil, "", fmt.Errorf("audit log: %w", err)
		}
	}
	if more || len(l.late) == 0 {
		return page, next, nil
	}
	// The rows that were read may have ended before the log did.
	var end []auditRow
	if err := q.Select(ctx, &end, l.end(), l.early...); err != nil {
		return nil, "", fmt.Errorf("audit log: %w", err)
	}
	if len(end) > 0 {
		next = end[0].cursor()
	}
	return page, next, nil
}

// auditMark begins what a cursor holds, so that one of another list is none of this.
const auditMark = "a "

type auditRow struct {
	ID      int64  `db:"id"`
	At      string `db:"at"`
	User    int64  `db:"user_id"`
	Via     string `db:"via"`
	Action  string `db:"action"`
	Subject string `db:"subject"`
	Detail  string `db:"detail"`
}

func (r auditRow) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(auditMark + r.At + " " + strconv.FormatInt(r.ID, 10)))
}

func (r auditRow) event() (AuditEvent, error) {
	at, err := core.ParseStamp(r.At)
	e := AuditEvent{ID: r.ID, At: at, User: r.User, Via: r.Via, Action: r.Action, Subject: r.Subject}
	if json.Valid([]byte(r.Detail)) {
		e.Detail = json.RawMessage(r.Detail)
	}
	return e, err
}

// An auditQuery has two parts: a condition for an index, of which at most auditScan
// rows are read in order, and a condition that is compared row by row.
type auditQuery struct {
	first, late []string
	early, args []any
}

const auditColumns = `SELECT id, at, user_id, via, action, subject, coalesce(detail, '') AS detail FROM `

// query splits f: the most telling equality goes by its index.
func (f *AuditFilter) query() (*auditQuery, error) {
	l := &auditQuery{}
	add := func(to *[]string, cond string, values ...any) {
		for _, v := range values {
			l.args = append(l.args, v)
			cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(l.args)), 1)
		}
		*to = append(*to, cond)
	}
	prefix, many := strings.CutSuffix(f.Action, "*")
	type equal struct {
		there bool
		cond  string
		value any
	}
	var user int64
	if f.User != nil {
		user = *f.User
	}
	var rest []equal
	for _, e := range []equal{{f.Subject != "", "subject = ?", f.Subject}, {f.User != nil, "user_id = ?", user}, {f.Action != "" && !many, "action = ?", f.Action}} {
		switch {
		case !e.there:
		case len(l.first) == 0, f.Subject == "": // a user's actions of one kind have an index, too
			add(&l.first, e.cond, e.value)
		default:
			rest = append(rest, e)
		}
	}
	if !f.Since.IsZero() {
		add(&l.first, "at >= ?", core.Stamp(f.Since))
	}
	if !f.Until.IsZero() {
		add(&l.first, "at < ?", core.Stamp(f.Until))
	}
	if f.Cursor != "" {
		at, id, err := auditCursor(f.Cursor)
		if err != nil {
			return nil, err
		}
		add(&l.first, "at <= ? AND (at < ? OR id < ?)", at, at, id)
	}
	l.early = l.args[:len(l.args):len(l.args)]
	for _, e := range rest {
		add(&l.late, e.cond, e.value)
	}
	if f.Via != "" {
		add(&l.late, "via = ?", f.Via)
	}
	if many && prefix != "" {
		add(&l.late, "action >= ? AND action < ?", prefix, prefix+"\U0010ffff")
	}
	return l, nil
}

func auditCursor(cursor string) (at string, id int64, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	rest, ours := strings.CutPrefix(string(b), auditMark)
	at, number, ok := strings.Cut(rest, " ")
	if _, bad := core.ParseStamp(at); err != nil || !ours || !ok || bad != nil || at == "" {
		return "", 0, core.Errorf(core.Invalid, "the cursor is none of this list's")
	}
	if id, err = strconv.ParseInt(number, 10, 64); err != nil {
		return "", 0, core.Errorf(core.Invalid, "the cursor is none of this list's")
	}
	return at, id, nil
}

// scan returns the statement that reads limit rows, newest first.
func (l *auditQuery) scan(limit int) string {
	where := ""
	if len(l.first) > 0 {
		where = " WHERE " + strings.Join(l.first, " AND ")
	}
	return auditColumns + "audit_events" + where + " ORDER BY at DESC, id DESC LIMIT " + strconv.Itoa(limit)
}

func (l *auditQuery) page(limit int) string {
	if len(l.late) == 0 {
		return l.scan(limit)
	}
	return "SELECT id, at, user_id, via, action, subject, detail FROM (" + l.scan(auditScan) + ") AS looked_at WHERE " + strings.Join(l.late, " AND ") +
		" ORDER BY at DESC, id DESC LIMIT " + strconv.Itoa(limit)
}

// end returns the statement that reads the last row of a full scan.
func (l *auditQuery) end() string { return l.scan(1) + " OFFSET " + strconv.Itoa(auditScan-1) }
