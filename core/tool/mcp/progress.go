package mcp

import (
	"context"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/tool/mcp/program"
)

// watchers are the calls that hear what a server reports of its progress.
type watchers struct {
	mu   sync.Mutex
	next int64
	all  map[string]func(string) // by token; one for each call under way
}

// watch gives a token under which f hears, until stop returns.
func (w *watchers) watch(f func(string)) (token string, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]func(string){}
	}
	w.next++
	token = fmt.Sprintf("p%d", w.next)
	w.all[token] = f
	return token, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, token)
	}
}

func (w *watchers) tell(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	text := core.CutRunes(program.Plain(r.Params.Message), 200)
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.all[token]; f != nil && text != "" {
		f(text)
	}
}
