package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// bareCmd is the floor: a bot that answers as the gateway does on the wire
// (long polling, one chat in order, chats at once, 256 connections), and
// stores, checks and thinks nothing.
type bareCmd struct {
	URL   string `arg:"" help:"Base of the platform."`
	Token string `env:"LOADGEN_TOKEN" required:""`
}

// bareText is as long as what local/quote says in an empty vault.
const bareText = "I found nothing about that in the notes that I may read for you. Try other words, or ask about something else."

// Run polls until the platform or the parent goes.
func (c *bareCmd) Run(ctx context.Context) error {
	b := &bare{
		base:  c.URL + "/bot" + c.Token + "/",
		poll:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		send:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}},
		lines: map[int64][]int64{},
	}
	for offset := int64(0); ctx.Err() == nil; {
		var page []struct {
			ID      int64 `json:"update_id"`
			Message struct {
				Chat struct {
					ID int64 `json:"id"`
				} `json:"chat"`
				Text string `json:"text"`
			} `json:"message"`
		}
		err := b.call(ctx, b.poll, "getUpdates", map[string]any{"offset": offset, "timeout": 50, "limit": 100}, &page)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, u := range page {
			offset = u.ID + 1
			b.put(ctx, u.Message.Chat.ID)
		}
	}
	b.work.Wait()
	return nil
}

type bare struct {
	base       string
	poll, send *http.Client
	mu         sync.Mutex
	lines      map[int64][]int64 // chats with work in hand
	work       sync.WaitGroup
}

// put answers in the chat's order, chats at once.
func (b *bare) put(ctx context.Context, chat int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, busy := b.lines[chat]; busy {
		b.lines[chat] = append(b.lines[chat], chat)
		return
	}
	b.lines[chat] = nil
	b.work.Go(func() {
		for {
			if err := b.call(ctx, b.send, "sendMessage", map[string]any{"chat_id": chat, "text": bareText}, nil); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "loadgen: bare bot:", err)
			}
			b.mu.Lock()
			if len(b.lines[chat]) == 0 {
				delete(b.lines, chat)
				b.mu.Unlock()
				return
			}
			b.lines[chat] = b.lines[chat][1:]
			b.mu.Unlock()
		}
	})
}

func (b *bare) call(ctx context.Context, client *http.Client, method string, params map[string]any, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return errors.New(method + " failed") // the error's text holds the token
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct {
		OK          bool            `json:"ok"`
		Description string          `json:"description"`
		Result      json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if !answer.OK {
		return fmt.Errorf("%s: %s", method, answer.Description)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}
