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
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/model"
)

// A desk is a gateway with a simulated model, used over its API with the operator's
// key: what it measures contains no platform.
type desk struct {
	*side
	model *model.Server
	url   string
}

// modelEnv makes a gateway use m.
func modelEnv(m *model.Server) []string {
	return []string{"GATEHOUSE_MODEL=openai/" + model.Name, "GATEHOUSE_OPENAI_BASE_URL=" + m.URL()}
}

// desk starts one over dir, "" for a new directory, with one chat on each platform.
func (b *bench) desk(ctx context.Context, dir string) (*desk, error) {
	m, err := model.Open()
	if err != nil {
		return nil, err
	}
	addr, err := child.FreeAddr()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	s, err := b.side(ctx, 1, dir, func(s *side) (*child.Child, error) {
		s.settings = append(modelEnv(m), "GATEHOUSE_ADDR="+addr)
		return child.Gateway(ctx, b.c.Program, s.Field, s.dir, s.settings)
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &desk{s, m, "http://" + addr}, nil
}

func (d *desk) end() error { return errors.Join(d.side.end(), d.model.Close()) }

// key returns the operator's, from the gateway's own file.
func (d *desk) key() (string, error) {
	found, err := filepath.Glob(filepath.Join(d.Child.Runtime, "gatehouse-*", "key"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(errors.New("the gateway has written no key"), err)
	}
	b, err := os.ReadFile(found[0])
	return strings.TrimSpace(string(b)), err
}

// ask sends text to a session, waits for the end of the answer, and returns the
// number of tool calls.
func (d *desk) ask(ctx context.Context, session, trust, text string) (calls int, err error) {
	return d.send(ctx, map[string]string{"message": text, "session_id": session, "trust_level": trust})
}

// send posts a message with these fields, waits for the end of the answer, and returns
// the number of tool calls.
func (d *desk) send(ctx context.Context, fields map[string]string) (calls int, err error) {
	key, err := d.key()
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/api/chat", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the gateway answered %s: %.500s", resp.Status, got)
	}
	var out struct {
		Calls int `json:"tool_calls"`
	}
	err = json.Unmarshal(got, &out)
	return out.Calls, err
}
