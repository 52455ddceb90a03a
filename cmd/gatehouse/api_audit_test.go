package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/web/auth"
)

// A change is what a route of the document is sent on a whole gateway
// in which what it names exists.
type change struct {
	path   string
	body   any
	header http.Header // nil: the operator's key
	user   int64       // who the log must name; 0: the operator
	after  func()      // what the other cases need; nil: nothing
}

// unlogged are the unsafe routes that leave no audit row, and why.
var unlogged = map[string]string{
	"POST /api/chat":                            "a turn has rows of its own: inbox, run, usage",
	"POST /api/sync/pull":                       "it changes nothing",
	"POST /api/bots/{bot}/test":                 "it changes nothing",
	"POST /v1/chat/completions":                 "a turn has rows of its own: inbox, run, usage",
	"POST /api/chat/stream":                     "a turn has rows of its own: inbox, run, usage",
	"POST /v1/responses":                        "a turn has rows of its own: inbox, run, usage",
	"POST /v1/responses/{id}/cancel":            "it is what a disconnect does to other answers; the run's row has its end",
	"DELETE /v1/responses/{id}":                 "it hides what its client stored; the deletion of the session behind it has a row, without a user",
	"POST /api/context/backups/run":             "a model writes a note on a session; usage has a row",
	"POST /v1/embeddings":                       "it changes nothing; usage has a row",
	"POST /api/council/queries/{query_id}/pick": "the asker's own choice between answers; the question's row has it, with its time",
	"POST /v1/audio/transcriptions":             "it changes nothing",
	"DELETE /mcp":                               "it ends a session of the protocol, which holds nothing",
}

// TestEveryUnsafeRouteLeavesAnAuditRow walks the document that is served: each
// operation that changes something is called and must be in the log afterwards,
// with whoever did it. A new one without a case fails here.
func TestEveryUnsafeRouteLeavesAnAuditRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.boss()
	cases := w.unsafeRoutes()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	_, served := w.call("GET", "/openapi.json", nil)
	if err := json.Unmarshal([]byte(served), &doc); err != nil {
		t.Fatal(err)
	}
	walked := 0
	for path, item := range doc.Paths {
		for method := range item {
			name := strings.ToUpper(method) + " " + path
			if method == "get" || method == "parameters" || unlogged[name] != "" {
				continue
			}
			walked++
			request, ok := cases[name]
			if !ok {
				t.Errorf("%s is in the document and has no case here", name)
				continue
			}
			c := request()
			before := w.count(`SELECT coalesce(max(id), 0) FROM audit_events`)
			resp := w.open(strings.ToUpper(method), c.path, c.body, c.header)
			resp.Body.Close()
			if resp.StatusCode >= 300 {
				t.Errorf("%s: %s", name, resp.Status)
			}
			user := max(c.user, core.Operator)
			if n := w.count(`SELECT count(*) FROM audit_events WHERE id > $1 AND via = 'api' AND user_id = $2`, before, user); n < 1 {
				t.Errorf("%s (%s) left no audit row of user %d", name, resp.Status, user)
			}
			if c.after != nil {
				c.after()
			}
		}
	}
	if walked < 20 {
		t.Errorf("only %d routes change something", walked)
	}
	// What the log says is what it may say: ids, and no word of anybody's.
	if n := w.count(`SELECT count(*) FROM audit_events WHERE coalesce(detail, '') || subject LIKE '%Zebra%'`); n != 0 {
		t.Errorf("%d rows hold a name or a text", n)
	}
}

func (w *world) unsafeRoutes() map[string]func() change {
	ada := w.lend()
	project := func() string {
		var p struct {
			ID string `json:"project_id"`
		}
		_, body := w.call("POST", "/api/projects", map[string]any{"name": fmt.Sprint("Zebra ", time.Now().UnixNano())})
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			w.t.Fatal(err)
		}
		return p.ID
	}
	admin := http.Header{"Authorization": {"Bearer " + w.newKey(core.Full, "chat", "admin")}}
	session := func() string {
		r := w.read(w.open("POST", "/api/chat", map[string]any{"message": "hello"}, nil))
		r.until("message_stop")
		return r.all[0].Data["id"].(string)
	}
	ofSession := func(rest string, body any) func() change {
		return func() change { return change{path: "/api/chat/" + session() + rest, body: body} }
	}
	asks := func() (r *reading, id string) {
		r = ada.says(wantsToWrite, "")
		return r, r.until("permission_request").Data["id"].(string)
	}
	stranger := func() string {
		u := w.sim.NewUser("Zebra")
		u.Send("let me in")
		return w.request(u).ID
	}
	decides := func(verb string) func() change {
		return func() change { return change{path: "/api/bots/pairing/" + stranger() + "/" + verb} }
	}
	friend := func() *telegramtest.User { return w.friend("Zebra") }
	key := func(h http.Header) func(string) func() change {
		return func(verb string) func() change {
			return func() change {
				_, id := asks()
				return change{path: "/api/permissions/" + id + "/" + verb, header: h}
			}
		}
	}(admin)
	empty := map[string]any{"path": filepath.Join(w.t.TempDir(), "Zebra.json")}
	if err := os.WriteFile(empty["path"].(string), []byte("[]"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	idle := func() { // one import runs at a time
		_, m, _ := w.asked("GET", "/api/import", nil, nil)
		for _, i := range m["imports"].([]any) {
			w.call("GET", "/api/import/"+i.(map[string]any)["id"].(string)+"?wait=30", nil)
		}
	}
	entry := func() string {
		_, m, _ := w.asked("POST", "/api/journal/2026-01-28", map[string]any{"text": "Zebra"}, nil)
		return "/api/journal/entries/" + m["id"].(string)
	}
	remembered := func(text string) string {
		_, m, _ := w.asked("POST", "/api/memory", map[string]any{"text": text}, nil)
		return m["correction_id"].(string)
	}
	anyVersion := http.Header{"If-Match": {"*"}}
	return map[string]func() change{
		"POST /api/projects": func() change { return change{path: "/api/projects", body: map[string]any{"name": "Zebra"}} },
		"PATCH /api/projects/{id}": func() change {
			return change{path: "/api/projects/" + project(), body: map[string]any{"name": "Zebra again"}}
		},
		"DELETE /api/projects/{id}": func() change { return change{path: "/api/projects/" + project()} },
		"POST /api/chat/{id}/abort": func() change {
			r, _ := asks()
			return change{path: "/api/chat/" + r.all[0].Data["id"].(string) + "/abort", header: ada.header, user: ada.user}
		},
		"POST /api/chat/{id}/answer": func() change {
			r := ada.says(`use AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`, "")
			id := r.until("user_question").Data["id"]
			return change{path: "/api/chat/" + r.all[0].Data["id"].(string) + "/answer", body: map[string]any{"id": id, "answers": map[string]string{"Which tea?": "Black"}}, header: ada.header, user: ada.user}
		},
		"PATCH /api/chat/{id}": func() change {
			return change{path: "/api/chat/" + session(), body: map[string]any{"title": "Zebra"}, header: http.Header{"If-Match": {"*"}}}
		},
		"DELETE /api/chat/{id}":                 ofSession("", nil),
		"POST /api/chat/{id}/archive":           ofSession("/archive", nil),
		"POST /api/chat/{id}/unarchive":         w.twice(ofSession("/archive", nil), "archive", "unarchive"),
		"POST /api/chat/{id}/tags":              ofSession("/tags", map[string]any{"tag": "zebra"}),
		"DELETE /api/chat/{id}/tags/{tag}":      w.twice(ofSession("/tags", map[string]any{"tag": "garden"}), "tags", "tags/garden"),
		"PUT /api/chat/{id}/contexts":           ofSession("/contexts", map[string]any{"contexts": []string{"Public"}}),
		"POST /api/chat/{id}/contexts":          ofSession("/contexts", map[string]any{"contexts": []string{"Public"}}),
		"DELETE /api/chat/{id}/contexts":        w.twice(ofSession("/contexts", map[string]any{"contexts": []string{"Public"}}), "contexts", "contexts?path=Public"),
		"DELETE /api/chat/session/{id}":         older(ofSession("", nil)),
		"POST /api/chat/session/{id}/archive":   older(ofSession("/archive", nil)),
		"POST /api/chat/session/{id}/unarchive": older(w.twice(ofSession("/archive", nil), "archive", "unarchive")),
		"DELETE /api/chat/session": func() change {
			session()
			return change{path: "/api/chat/session?agentPath=vault-agent"}
		},
		"POST /api/import": func() change {
			idle()
			return change{path: "/api/import", body: empty, header: admin}
		},
		"DELETE /api/import/{id}": func() change {
			idle()
			_, m, _ := w.asked("POST", "/api/import", empty, admin)
			return change{path: "/api/import/" + m["id"].(string)}
		},
		"POST /api/memory": func() change {
			return change{path: "/api/memory", body: map[string]any{"text": "Always use metric units."}}
		},
		"PATCH /api/memory/{id}": func() change {
			return change{path: "/api/memory/" + remembered("Never use emojis."), body: map[string]any{"pinned": true}}
		},
		"DELETE /api/memory/{id}": func() change { return change{path: "/api/memory/" + remembered("Avoid jargon.")} },
		"POST /api/memory/confirm": func() change {
			remembered("Always answer in German.")
			return change{path: "/api/memory/confirm", body: map[string]any{"correction_id": remembered("Always answer in English."), "choice": "replace"}}
		},
		"POST /api/journal/{date}": func() change {
			return change{path: "/api/journal/2026-01-28", body: map[string]any{"text": "Zebra"}}
		},
		"PATCH /api/journal/entries/{id}": func() change {
			return change{path: entry(), body: map[string]any{"text": "Zebras"}, header: anyVersion}
		},
		"DELETE /api/journal/entries/{id}": func() change { return change{path: entry(), header: anyVersion} },
		"POST /mcp": func() change {
			return change{path: "/mcp", body: map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "sessions_list", "arguments": map[string]any{}}},
				header: http.Header{"Accept": {"application/json, text/event-stream"}}}
		},
		"POST /api/sync/push": func() change {
			return change{path: "/api/sync/push", body: map[string]any{"files": []map[string]any{{"path": "Notes/zebra.md", "content": "zebra"}}}}
		},
		"DELETE /api/sync/files": func() change {
			return change{path: "/api/sync/files", body: map[string]any{"path": "Notes/antelope.md"}}
		},
		"PUT /api/contexts/{name}": func() change {
			return change{path: "/api/contexts/plans", body: map[string]any{"folders": []string{"Public"}}}
		},
		"DELETE /api/contexts/{name}": func() change {
			w.call("PUT", "/api/contexts/seeds", map[string]any{"folders": []string{"Public"}})
			return change{path: "/api/contexts/seeds"}
		},
		"POST /api/daily/agents/{name}/run": func() change {
			w.agentFile("nightly", `schedule: "3:00"`)
			return change{path: "/api/daily/agents/nightly/run", body: map[string]any{}}
		},
		"PUT /api/index/{content_id}/chunks": func() change {
			w.document("Public/Zebra.md", "A zebra.")
			return change{path: "/api/index/" + document.ID("Public/Zebra.md") + "/chunks", body: map[string]any{"chunks": []map[string]any{{"field": "summary", "chunk_index": 0, "text": "Zebras"}}}}
		},
		"DELETE /api/index/{content_id}/chunks": func() change {
			w.document("Public/Antelope.md", "An antelope.")
			return change{path: "/api/index/" + document.ID("Public/Antelope.md") + "/chunks"}
		},
		"POST /api/permissions/{id}/grant": key("grant"),
		"POST /api/permissions/{id}/deny":  key("deny"),
		"DELETE /api/permissions/grants/{id}": func() change {
			r, id := asks()
			w.open("POST", "/api/permissions/"+id+"/grant", map[string]any{"pattern": "Notes/*"}, admin).Body.Close()
			r.until("message_stop")
			_, m, _ := w.asked("GET", "/api/permissions/grants", nil, nil)
			return change{path: "/api/permissions/grants/" + m["grants"].([]any)[0].(map[string]any)["id"].(string)}
		},
		"POST /api/bots/{bot}/start": func() change { return change{path: "/api/bots/telegram/start"} },
		"POST /api/bots/{bot}/stop": func() change {
			return change{path: "/api/bots/telegram/stop", after: func() { w.call("POST", "/api/bots/telegram/start", nil) }}
		},
		"POST /api/bots/pairing/{id}/approve": decides("approve"),
		"POST /api/bots/pairing/{id}/deny":    decides("deny"),
		"POST /api/bots/pairing/{id}/block":   decides("block"),
		"DELETE /api/bots/pairing/{bot}/{user_id}": func() change {
			return change{path: fmt.Sprintf("/api/bots/pairing/telegram/%d", friend().ID())}
		},
		"DELETE /api/bots/access/{id}": func() change {
			u := friend()
			return change{path: fmt.Sprintf("/api/bots/access/%d", w.count(`SELECT a.id FROM access a JOIN identities i ON i.user_id = a.user_id WHERE i.platform_user_id = $1`, fmt.Sprint(u.ID())))}
		},
		"POST /api/bots/{bot}/messages": func() change {
			return change{path: "/api/bots/telegram/messages", body: map[string]any{"chat": "owner", "text": "Zebra"}}
		},
		"POST /api/keys": func() change {
			return change{path: "/api/keys", body: map[string]any{"label": "Zebra", "trust_level": "vault", "scopes": []string{"chat"}, "expires_at": time.Now().Add(time.Hour)}}
		},
		"PATCH /api/keys/{id}": func() change {
			_, row, err := w.app.keys.Create(w.t.Context(), auth.NewKey{Label: "Antelope", User: core.Operator, Trust: core.Vault}, cli)
			if err != nil {
				w.t.Fatal(err)
			}
			return change{path: "/api/keys/" + row.ID, body: map[string]any{"label": "Zebra", "scopes": []string{"chat"}}}
		},
		"POST /api/keys/{id}/rotate": func() change {
			_, row, err := w.app.keys.Create(w.t.Context(), auth.NewKey{Label: "Antelope", User: core.Operator, Trust: core.Vault}, cli)
			if err != nil {
				w.t.Fatal(err)
			}
			return change{path: "/api/keys/" + row.ID + "/rotate", body: map[string]any{"old_expires_at": time.Now().Add(time.Hour)}}
		},
		"DELETE /api/keys/{id}": func() change {
			_, row, err := w.app.keys.Create(w.t.Context(), auth.NewKey{Label: "spare", User: core.Operator, Trust: core.Vault}, cli)
			if err != nil {
				w.t.Fatal(err)
			}
			return change{path: "/api/keys/" + row.ID}
		},
	}
}

// older is a request by the addresses of the first generation.
func older(request func() change) func() change {
	return func() change {
		c := request()
		c.path = strings.Replace(c.path, "/api/chat/", "/api/chat/session/", 1)
		return c
	}
}

// twice carries out the first request, and gives the one that undoes it.
func (w *world) twice(first func() change, end, instead string) func() change {
	return func() change {
		c := first()
		w.open("POST", c.path, c.body, c.header).Body.Close()
		return change{path: strings.TrimSuffix(c.path, end) + instead}
	}
}
