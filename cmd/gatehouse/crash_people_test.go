package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/core"
	"gatehouse/core/store"
)

// A place is a chat of a platform; its key names it among all.
type place struct {
	crowd.Chat
	key string
}

func keyOf(platform, id string) string { return platform + "/" + id }

// people says how many chats a rig has: private ones on Telegram and on
// Discord, and a guild's channels.
type population struct{ telegram, direct, channels int }

// A req is a request of the child to a platform.
type req struct {
	platform string
	method   string // in Telegram's words; "readback" asks for a channel's messages
	chat     string
	silent   bool       // it notifies nobody, as a preview
	form     url.Values // Telegram's parameters
}

// offset is what a getUpdates confirms: all updates below it.
func (r req) offset() int64 {
	n, _ := strconv.ParseInt(r.form.Get("offset"), 10, 64)
	return n
}

// readReq reads a request to a platform.
func readReq(platform string, in *http.Request, body []byte) req {
	path := strings.Split(in.URL.Path, "/")
	if platform == "telegram" {
		form, _ := url.ParseQuery(string(body))
		return req{platform, strings.ToLower(path[len(path)-1]), form.Get("chat_id"), form.Get("disable_notification") == "true", form}
	}
	q := req{platform: platform, method: in.Method + " " + in.URL.Path}
	if len(path) < 6 || path[3] != "channels" || path[5] != "messages" { // /api/v10/channels/<id>/messages[/<id>]
		return q
	}
	var m struct{ Flags int }
	_ = json.Unmarshal(body, &m)
	q.chat, q.silent = path[4], m.Flags&4096 != 0 // SUPPRESS_NOTIFICATIONS
	switch in.Method {
	case "GET":
		q.method = "readback"
	case "POST":
		q.method = "sendmessage"
	case "PATCH":
		q.method = "editmessagetext"
	}
	return q
}

// join puts a platform and its people around the gateway.
func (r *rig) join(p *crowd.Platform, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = p.Close() })
	r.t.Cleanup(p.Watch(func(m crowd.Message) { r.saw(keyOf(p.Name, m.Chat), m) }))
	r.crowds = append(r.crowds, p)
	r.taps = append(r.taps, r.tapped(func(w http.ResponseWriter, in *http.Request) { r.serveTap(p, w, in) }))
	for _, c := range p.Chats {
		r.chats = append(r.chats, place{c, keyOf(p.Name, c.ID)})
	}
}

// online waits until Discord has, or no longer has, the gateway. What came
// before the first session is none of the gateway's business.
func (r *rig) online(on bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); r.discord.Bot().Online() != on; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("online on Discord is still %v\n%s", !on, r.child.tail())
		}
	}
}

// enable writes into a database that is made for it that the bot may answer in
// the guild's channels.
func (r *rig) enable() {
	r.t.Helper()
	path := r.database
	if path == "" {
		path = filepath.Join(r.vault, "Chat", "sessions.db")
		if _, err := os.Stat(path); err == nil {
			return
		}
		r.sql(os.MkdirAll(filepath.Dir(path), 0o700))
	}
	if !slices.ContainsFunc(r.chats, func(c place) bool { return c.Place != "" }) {
		return
	}
	db, err := store.Open(r.t.Context(), path, store.Options{})
	r.sql(err)
	r.sql(db.Tx(r.t.Context(), func(tx *store.Tx) error {
		for _, c := range r.chats {
			if c.Place == "" {
				continue
			}
			_, err := tx.Exec(r.t.Context(), `INSERT INTO places (bot, place, name, enabled, level, "by", at) VALUES ('discord', $1, 'club', 1, 'sandboxed', 'test', $2)`,
				c.Place, core.Stamp(tx.Time()))
			if err != nil {
				return err
			}
		}
		return nil
	}))
	r.sql(db.Close())
}

// acquaint has somebody write in each chat and be answered: from then on the
// gateway knows them all.
func (r *rig) acquaint() {
	r.t.Helper()
	r.start()
	for i := range r.chats {
		r.post(i)
	}
	r.answered()
	r.stop()
}

// loseSession has Discord forget the session of the gateway that is dead, as
// it does after some minutes.
func (r *rig) loseSession() {
	r.t.Helper()
	r.online(false)
	r.discord.Bot().EndSessions()
}
