package api

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/web/auth"
)

func TestSearch_PassesEveryParameterAndTheCallersRights(t *testing.T) {
	h := open(t, options{})
	query := "/api/search?q=green+tea&type=session&type=document&tag=%23Garden&tag=tea&folder=Notes&after=2026-01-01&before=2026-02-01T10:00:00%2B02:00&limit=7"
	want := search.Query{Text: "green tea", Types: []string{"session", "document"}, Tags: []string{"garden", "tea"}, Folder: "Notes", Limit: 7,
		After: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Before: time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC)}
	for name, c := range map[string]struct {
		key  string
		want search.Reader
	}{
		"a person's key":                        {h.keyOf(7, core.Sandboxed, auth.ScopeRead), search.Reader{User: 7, Trust: core.Sandboxed, AnyTrust: true}},
		"a person's key at vault":               {h.keyOf(7, core.Vault, auth.ScopeChat), search.Reader{User: 7, Trust: core.Vault, AnyTrust: true}},
		"the owner's key without admin":         {h.keyOf(core.Operator, core.Full, auth.ScopeRead), search.Reader{User: core.Operator, Trust: core.Full, AnyTrust: true}},
		"a key with admin, but not read":        {h.keyOf(7, core.Vault, auth.ScopeAdmin, auth.ScopeChat), search.Reader{User: 7, Trust: core.Vault, AnyTrust: true}},
		"an admin's key, at its level of trust": {h.keyOf(7, core.Sandboxed, auth.ScopeAdmin, auth.ScopeRead), search.Reader{User: 7, Trust: core.Sandboxed, Everyone: true, AnyTrust: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h.want(200, "", c.key, "GET", query, "")
			h.asked.Before = h.asked.Before.UTC()
			if !reflect.DeepEqual(h.asked, want) {
				t.Errorf("the search is %+v, want %+v", h.asked, want)
			}
			if !reflect.DeepEqual(h.asker, c.want) {
				t.Errorf("the reader is %+v, want %+v", h.asker, c.want)
			}
		})
	}
	if h.want(200, "", h.key(auth.ScopeRead), "GET", "/api/search?q=tea", ""); h.asked.Limit != 20 {
		t.Errorf("the limit is %d without one", h.asked.Limit)
	}
}

func TestSearch_ShowsHitsOfBothTypes(t *testing.T) {
	h := open(t, options{})
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.FixedZone("", 3600))
	h.found = search.Page{Next: "n1", Hits: []search.Hit{
		{Type: search.Document, ID: "doc:0123456789abcdef", Title: "Tea", Path: "Notes/Tea.md", Line: 12, Excerpt: "Green tea", Marks: [][2]int{{0, 5}, {6, 9}}, At: at, Score: 0.5, Cursor: "inner"},
		{Type: search.Session, ID: "s1", Title: "Breakfast", User: 9, Message: "m3", Role: "user", In: "text", Excerpt: "tea?", Score: 0.25},
	}}
	got := h.want(200, "", h.key(auth.ScopeRead), "GET", "/api/search?q=tea", "")
	want := map[string]any{"next": "n1", "hits": []any{
		map[string]any{"type": "document", "id": "doc:0123456789abcdef", "title": "Tea", "path": "Notes/Tea.md", "line": 12.0, "excerpt": "Green tea",
			"marks": []any{[]any{0.0, 5.0}, []any{6.0, 9.0}}, "at": "2026-03-01T08:30:00Z", "score": 0.5},
		map[string]any{"type": "session", "id": "s1", "title": "Breakfast", "session_id": "s1", "message_id": "m3", "role": "user", "in": "text", "excerpt": "tea?", "marks": []any{}, "score": 0.25},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	h.found = search.Page{}
	if got := h.want(200, "", h.key(auth.ScopeRead), "GET", "/api/search?q=tea", ""); !reflect.DeepEqual(got, map[string]any{"hits": []any{}, "next": ""}) {
		t.Errorf("no hits: %v", got)
	}
}

func TestSearch_NamesTheParameterThatIsNotValid(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeRead)
	for name, c := range map[string]struct{ query, field, says string }{
		"no q":                        {"", "q", "is missing"},
		"an empty q":                  {"q=", "q", "is missing"},
		"a q of blanks":               {"q=%20%09", "q", "is missing"},
		"a q with a null character":   {"q=a%00", "q", "null"},
		"a tag with a null character": {"q=a&tag=b%00", "tag", "1 to 128"},
		"a tag of a sign alone":       {"q=a&tag=%23", "tag", "1 to 128"},
		"an empty folder":             {"q=a&folder=", "folder", "leave it out"},
		"a folder above the vault":    {"q=a&folder=../..", "folder", "leave it out"},
		"a folder with a null":        {"q=a&folder=b%00", "folder", "path in the vault"},
		"a q that is too long":        {"q=" + strings.Repeat("a", 257), "q", "256 characters"},
		"a q that is not UTF-8":       {"q=%ff", "q", "UTF-8"},
		"an unknown type":             {"q=a&type=mail", "type", "session, document or journal"},
		"an empty type":               {"q=a&type=", "type", "session, document or journal"},
		"four types":                  {"q=a&type=session&type=session&type=document&type=journal", "type", "three times"},
		"an empty tag":                {"q=a&tag=", "tag", "1 to 128"},
		"a tag that is too long":      {"q=a&tag=" + strings.Repeat("a", 129), "tag", "1 to 128"},
		"nine tags":                   {"q=a" + strings.Repeat("&tag=b", 9), "tag", "8 times"},
		"a folder that is too long":   {"q=a&folder=" + strings.Repeat("a", 1025), "folder", "1024"},
		"after, no time":              {"q=a&after=yesterday", "after", "2026-03-01"},
		"before, no time":             {"q=a&before=1", "before", "2026-03-01"},
		"before earlier than after":   {"q=a&after=2026-02-02&before=2026-02-01", "before", "later than after"},
		"a limit of 0":                {"q=a&limit=0", "limit", "1 to 100"},
		"a limit of 101":              {"q=a&limit=101", "limit", "1 to 100"},
		"a limit that is no number":   {"q=a&limit=many", "limit", "1 to 100"},
		"a cursor that is too long":   {"q=a&cursor=" + strings.Repeat("a", 1025), "cursor", "begin again"},
		"q with nine tags of its own": {"q=" + url.QueryEscape(strings.Repeat("tag:a ", 9)), "q", "8 tags"},
	} {
		t.Run(name, func(t *testing.T) {
			h.findErr = nil
			if strings.Contains(c.says, "8 tags") {
				h.findErr = core.Errorf(core.Invalid, "a search has at most 8 tags")
			}
			problem := h.want(400, "invalid-request", key, "GET", "/api/search?"+c.query, "")
			if detail, _ := problem["detail"].(string); problem["field"] != c.field || !strings.Contains(detail, c.says) {
				t.Errorf("%v", problem)
			}
		})
	}
	h.findErr = core.Errorf(core.Invalid, "the cursor is not of this search: begin again without one")
	if problem := h.want(400, "invalid-request", key, "GET", "/api/search?q=a&cursor=x", ""); problem["field"] != "cursor" {
		t.Errorf("%v", problem)
	}
}
