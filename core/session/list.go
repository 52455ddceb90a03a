package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/words"
)

// Bounds of List.
const (
	defaultLimit = 50
	maxLimit     = 200
	maxOffset    = 100_000
)

// SingleModule is that of sessions which hold one request of a client that
// keeps the conversation itself (OpenAI's protocol). A list leaves them out
// unless it is asked for them.
const SingleModule = "openai"

// A Filter chooses sessions. Empty fields choose all.
type Filter struct {
	User      int64 // whose; ignored with All
	All       bool  // everyone's: the caller has checked that the asker may
	Module    string
	Source    string
	AgentType string
	Project   string // its id
	Archived  *bool
	Tag       string
	Context   string       // a directory or file, as Contexts returns it
	Bot       string       // one whose chats hold them now
	Place     string       // with Bot: a group of it
	Only      []string     // ids; nil is any
	Search    string       // words of the title, the tags or what was written; see Search
	Words     words.Query  // for Search, in place of the field Search
	Tags      []string     // each of them
	Since     time.Time    // used since then; in a search: found in messages since then
	Trusts    []core.Trust // of these levels; nil: of any
	Until     time.Time    // begun before then; in a search: found in messages before then
	Limit     int          // 0 is 50; at most 200
	Offset    int          // the first generation's paging; at most 100,000
	Cursor    string       // from the page before; makes Offset count from there

	fewTagged, fewAbout, fewHeld, fewGrouped bool // so few sessions have the tag or directory, or are the bot's or the project's, that they are looked up one by one
}

// manySessions is how many sessions may have a tag or directory, or be a bot's or a project's, to be looked up
// one by one and sorted, which takes some 4 microseconds each; where more have
// it, the newest sessions are walked until a page is full.
const manySessions = 1000

// weigh finds out which way is the short one.
func (f *Filter) weigh(ctx context.Context, q store.Queryer) error {
	for _, by := range []struct {
		value, rows string
		few         *bool
	}{
		{tagKey(f.Tag), `session_tags WHERE tag`, &f.fewTagged}, {f.Context, `session_contexts WHERE folder_path`, &f.fewAbout}, {f.Bot, `chats WHERE bot`, &f.fewHeld},
		{f.Project, `sessions WHERE project_id`, &f.fewGrouped},
	} {
		if by.value == "" {
			continue
		}
		var n int
		if err := q.Get(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM `+by.rows+` = $1 LIMIT $2) few`, by.value, manySessions+1); err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		*by.few = n <= manySessions
	}
	return nil
}

// tagKey returns a tag as it is kept.
func tagKey(tag string) string { return strings.ToLower(transcript.OneLine(tag)) }

// List returns a page of sessions, newest use first, and the cursor of the next
// page, "" at the end. A session that is used while someone pages moves to
// the front; the others are neither skipped nor repeated. A cursor that List
// did not make is core.Invalid. With Search it is the sessions of Search, in
// its order.
func (s *Store) List(ctx context.Context, f Filter) ([]Session, string, error) {
	if f.Search != "" {
		found, next, err := s.Search(ctx, f)
		list := make([]Session, len(found))
		for i := range found {
			list[i] = found[i].Session
		}
		return list, next, err
	}
	if err := f.check(); err != nil {
		return nil, "", err
	}
	if err := f.weigh(ctx, s.db); err != nil {
		return nil, "", err
	}
	query, args, err := f.query()
	if err != nil {
		return nil, "", err
	}
	var rows []row
	if err := s.db.Select(ctx, &rows, query, args...); err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	next := ""
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = cursorAfter(rows[f.Limit-1].LastAccessed, rows[f.Limit-1].ID)
	}
	list := make([]Session, 0, len(rows))
	for i := range rows {
		sess, err := rows[i].session()
		if err != nil {
			return nil, "", err
		}
		list = append(list, sess)
	}
	return list, next, nil
}

// After returns the cursor with which List continues behind s, which it returned.
func After(s Session) string { return cursorAfter(core.Stamp(s.LastAccessed), s.ID) }

func cursorAfter(accessed, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(accessed + " " + id))
}

// check refuses what is out of bounds and sets the limit.
func (f *Filter) check() (err error) {
	switch {
	case f.Limit <= 0:
		f.Limit = defaultLimit
	case f.Limit > maxLimit:
		f.Limit = maxLimit
	}
	if f.Offset < 0 || f.Offset > maxOffset {
		return core.Errorf(core.Invalid, "offset must be between 0 and %d", maxOffset)
	}
	if f.Tag != "" && tagKey(f.Tag) == "" {
		return core.Errorf(core.Invalid, "that is no tag")
	}
	if f.Context != "" {
		f.Context, err = contextOf(f.Context)
	}
	return err
}

// choose reports which sessions s the filter wants. Columns with few values are
// compared through coalesce, so that the engine walks the newest sessions in
// order instead of sorting all that an index on such a column finds.
func (f *Filter) choose(c *store.Conditions) {
	switch {
	case f.All:
	case f.fewTagged || f.fewAbout || f.fewHeld || f.fewGrouped || f.Place != "" || f.Only != nil:
		c.And("+s.user_id = ?", f.User) // not by its index
	default:
		c.And("s.user_id = ?", f.User)
	}
	if f.Module == "" {
		c.And("coalesce(s.module, '') <> ?", SingleModule)
	}
	for _, eq := range [...][2]string{{"module", f.Module}, {"source", f.Source}, {"agent_type", f.AgentType}} {
		if eq[1] != "" {
			c.And("coalesce(s."+eq[0]+", '') = ?", eq[1])
		}
	}
	if f.Archived != nil {
		flag := "0"
		if *f.Archived {
			flag = "1" // there is an index of these, which a parameter would not find
		}
		c.And("coalesce(s.archived, 0) = " + flag)
	}
	switch {
	case f.Project == "":
	case f.fewGrouped:
		c.And("s.id IN (SELECT g.id FROM sessions g WHERE g.project_id = ?)", f.Project)
	default:
		c.And("coalesce(s.project_id, '') = ?", f.Project)
	}
	f.chooseHeld(c)
	for _, tag := range f.Tags {
		c.And("EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = ?)", tagKey(tag))
	}
	if f.Trusts != nil {
		levels := make([]any, len(f.Trusts))
		for i, t := range f.Trusts {
			levels[i] = t
		}
		c.And("s.trust_level || '' IN (''"+strings.Repeat(", ?", len(levels))+")", levels...)
	}
	if !f.Since.IsZero() {
		c.And("s.last_accessed || '' >= ?", core.Stamp(f.Since))
	}
	if !f.Until.IsZero() {
		c.And("s.created_at || '' < ?", core.Stamp(f.Until))
	}
	if f.Only != nil {
		ids := make([]any, len(f.Only))
		for i, id := range f.Only {
			ids[i] = id
		}
		c.And("s.id IN (''"+strings.Repeat(", ?", len(ids))+")", ids...)
	}
	switch {
	case f.Tag == "":
	case f.fewTagged:
		c.And("s.id IN (SELECT t.session_id FROM session_tags t WHERE t.tag = ?)", tagKey(f.Tag))
	default:
		c.And("EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = ?)", tagKey(f.Tag))
	}
	switch {
	case f.Context == "":
	case f.fewAbout:
		c.And("s.id IN (SELECT c.session_id FROM session_contexts c WHERE c.folder_path = ?)", f.Context)
	default:
		c.And("EXISTS (SELECT 1 FROM session_contexts c WHERE c.session_id = s.id AND c.folder_path = ?)", f.Context)
	}
}

// chooseHeld reports which sessions are held in chats of the filter's bot, or in its group.
func (f *Filter) chooseHeld(c *store.Conditions) {
	switch {
	case f.Bot == "":
	case f.Place != "":
		c.And("s.id IN (SELECT h.session_id FROM chats h WHERE h.bot = ? AND h.place = ? AND h.place <> '')", f.Bot, f.Place)
	case f.fewHeld:
		c.And("s.id IN (SELECT h.session_id FROM chats h WHERE h.bot = ?)", f.Bot)
	default:
		c.And("EXISTS (SELECT 1 FROM chats h WHERE h.session_id = s.id AND h.bot = ?)", f.Bot)
	}
}

// query asks for one row more than the limit, to know whether a page follows.
func (f *Filter) query() (string, []any, error) {
	var c store.Conditions
	f.choose(&c)
	if f.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		at, id, ok := strings.Cut(string(raw), " ")
		if _, perr := core.ParseStamp(at); err != nil || perr != nil || !ok || at == "" {
			return "", nil, errCursor
		}
		c.And("(s.last_accessed, s.id) < (?, ?)", at, id)
	}
	query := `SELECT ` + columns + ` FROM sessions s`
	if len(c.Where) > 0 {
		query += ` WHERE ` + strings.Join(c.Where, " AND ")
	}
	c.Args = append(c.Args, f.Limit+1, f.Offset)
	query += fmt.Sprintf(` ORDER BY s.last_accessed DESC, s.id DESC LIMIT $%d OFFSET $%d`, len(c.Args)-1, len(c.Args))
	return query, c.Args, nil
}

var errCursor = core.Errorf(core.Invalid, "the cursor is not one of this list's")
