// Package bare is the floor that a gateway is measured against: a bot that
// answers as the gateway does on the wire (long polling or events, one chat in
// order, chats at once, 256 connections), with the words of the same model, and
// stores and checks nothing.
package bare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A desk answers each chat in its order, chats at once.
type desk struct {
	answer func(chat string) error
	mu     sync.Mutex
	chats  map[string]int // with work available: how many more wait
	work   sync.WaitGroup
}

func newDesk(answer func(chat string) error) *desk {
	return &desk{answer: answer, chats: map[string]int{}}
}

func (d *desk) put(chat string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.chats[chat]; busy {
		d.chats[chat]++
		return
	}
	d.chats[chat] = 0
	d.work.Go(func() {
		for {
			if err := d.answer(chat); err != nil {
				fmt.Fprintln(os.Stderr, "bare bot:", err)
			}
			d.mu.Lock()
			if d.chats[chat] == 0 {
				delete(d.chats, chat)
				d.mu.Unlock()
				return
			}
			d.chats[chat]--
			d.mu.Unlock()
		}
	})
}

func client(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
}

// call makes one request and reads the answer into result. An error names no
// address: it may hold the token.
func call(ctx context.Context, c *http.Client, method, url, token string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address can't be read")
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bot "+token)
		req.Header.Set("User-Agent", "DiscordBot (https://example.org, 1)")
	}
	resp, err := c.Do(req)
	if err != nil {
		return errors.New("a request failed")
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d: %s", resp.StatusCode, raw)
	}
	return json.Unmarshal(raw, result)
}

// Telegram polls and answers until ctx ends, which is no error, or the platform
// goes. url is scheme and host.
func Telegram(ctx context.Context, url, token string, m *Model) error {
	base := url + "/bot" + token + "/"
	poll, send := client(1), client(256)
	d := newDesk(func(chat string) error {
		text, err := m.answer(ctx)
		if err != nil {
			return err
		}
		return call(ctx, send, http.MethodPost, base+"sendMessage", "", map[string]any{"chat_id": chat, "text": text}, &struct{}{})
	})
	defer d.work.Wait()
	for offset := int64(0); ctx.Err() == nil; {
		var page struct {
			Result []struct {
				ID      int64 `json:"update_id"`
				Message struct {
					Chat struct {
						ID int64 `json:"id"`
					} `json:"chat"`
				} `json:"message"`
			} `json:"result"`
		}
		err := call(ctx, poll, http.MethodPost, base+"getUpdates", "", map[string]any{"offset": offset, "timeout": 50, "limit": 100}, &page)
		if err != nil {
			return ended(ctx, err)
		}
		for _, u := range page.Result {
			offset = u.ID + 1
			d.put(strconv.FormatInt(u.Message.Chat.ID, 10))
		}
	}
	return nil
}

// ended is no error once we were asked to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A packet is one message to Discord's gateway.
type packet struct {
	Op   int `json:"op"`
	Data any `json:"d"`
}

// Discord listens to the gateway and answers direct messages by REST, as
// Telegram does.
func Discord(ctx context.Context, url, token string, m *Model) error {
	base := url + "/api/v10"
	send := client(256)
	d := newDesk(func(chat string) error {
		text, err := m.answer(ctx)
		if err != nil {
			return err
		}
		return call(ctx, send, http.MethodPost, base+"/channels/"+chat+"/messages", token, map[string]any{"content": text}, &struct{}{})
	})
	defer d.work.Wait()
	var where struct {
		URL string `json:"url"`
	}
	if err := call(ctx, send, http.MethodGet, base+"/gateway/bot", token, nil, &where); err != nil {
		return err
	}
	ws, _, err := websocket.DefaultDialer.DialContext(ctx, where.URL+"?v=10&encoding=json", nil)
	if err != nil {
		return errors.New("the gateway can't be reached")
	}
	defer context.AfterFunc(ctx, func() { _ = ws.Close() })()
	defer ws.Close()
	var hello struct {
		Data struct {
			Interval int `json:"heartbeat_interval"`
		} `json:"d"`
	}
	if err := ws.ReadJSON(&hello); err != nil {
		return ended(ctx, err)
	}
	const directMessages = 1 << 12
	identify := map[string]any{"token": token, "intents": directMessages, "properties": map[string]string{"os": "linux", "browser": "bare", "device": "bare"}}
	if err := ws.WriteJSON(packet{Op: 2, Data: identify}); err != nil {
		return ended(ctx, err)
	}
	d.work.Go(func() { beat(ctx, ws, time.Duration(hello.Data.Interval)*time.Millisecond) })
	return ended(ctx, listen(ws, d))
}

// beat keeps the connection: after IDENTIFY it alone writes.
func beat(ctx context.Context, ws *websocket.Conn, every time.Duration) {
	for {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		if ws.WriteJSON(packet{Op: 1}) != nil {
			return
		}
	}
}

func listen(ws *websocket.Conn, d *desk) error {
	for {
		var p struct {
			Type string `json:"t"`
			Data struct {
				Channel string `json:"channel_id"`
				Author  struct {
					Bot bool `json:"bot"`
				} `json:"author"`
			} `json:"d"`
		}
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, &p) == nil && p.Type == "MESSAGE_CREATE" && !p.Data.Author.Bot {
			d.put(p.Data.Channel)
		}
	}
}
