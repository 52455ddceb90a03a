package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/api"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/turns"
	"gatehouse/web/auth"
)

// An echo is a gateway without a model: it answers each message at once with the
// message itself.
type echo struct{ events *bus.Bus }

// Put implements turns.Inbox: it runs the turn and publishes its events.
func (e echo) Put(_ context.Context, page []core.Inbound, _ *core.Cursor) error {
	for _, in := range page {
		run := e.events.Begin(bus.Info{Run: in.Turn.Run, Session: in.Chat, Bot: in.Bot, Chat: in.Chat, User: in.Turn.User, Attempt: 1})
		run.Publish(core.TextDelta{Content: "You wrote: " + in.Text})
		run.Publish(core.Done{Response: "You wrote: " + in.Text, SessionID: in.Chat})
		run.Publish(core.MessageStop{})
		run.End()
	}
	return nil
}

// Stored, Queued and Waits implement turns.Repeats: nothing was stored before.
func (echo) Stored(context.Context, string, string) (message, chat string, found bool, err error) {
	return "", "", false, nil
}
func (echo) Queued(context.Context, string, string, int) (int, error) { return 0, nil }
func (echo) Waits(context.Context, string, string, string, string) (bool, error) {
	return false, nil
}

// A noSessions implements api.Sessions: every session is new.
type noSessions struct{}

func (noSessions) Locate(_ context.Context, _ int64, id string) (string, bool, error) {
	return id, false, nil
}
func (noSessions) Session(context.Context, string) (sessions.Row, error) {
	return sessions.Row{}, core.Errorf(core.NotFound, "there is no such session")
}
func (noSessions) List(context.Context, sessions.Query) ([]sessions.Row, string, error) {
	return nil, "", nil
}
func (noSessions) Count(context.Context, sessions.Query) (int, error) { return 0, nil }

// Post a message and read the events of the run that answers it.
func Example() {
	gateway := echo{events: bus.New(nil, nil)}
	routes := http.NewServeMux()
	api.New(api.Options{
		Authenticator: auth.NewAuthenticator(nil, nil, auth.AuthenticatorOptions{}), Inbox: gateway, Repeats: gateway, Follower: gateway.events, Sessions: noSessions{},
	}).Register(routes)
	site, err := web.NewSite(web.SiteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(site.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		routes.ServeHTTP(w, auth.AsOperator(r, "example")) // in place of an API key
	})))
	defer server.Close()

	res, err := http.Post(server.URL+"/api/chat", "application/json", strings.NewReader(`{"message":"hello"}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status, res.Header.Get("Content-Type"))
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue // an id, a heartbeat, or the end of an event
		}
		var event struct{ Type, Content string }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %q\n", event.Type, event.Content)
	}
	// Output:
	// 200 OK text/event-stream
	// text "You wrote: hello"
	// done ""
	// message_stop ""
}

var (
	_ turns.Inbox   = echo{}
	_ turns.Repeats = echo{}
	_ api.Sessions  = noSessions{}
)
