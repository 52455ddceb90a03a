package anthropic

import (
	"net/http"

	api "github.com/anthropics/anthropic-sdk-go"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
	"gatehouse/core/texts"
)

// Bounds of the provider's search
// (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).
const (
	maxPauses = 8   // times that one reply is gone on with after pause_turn
	maxFound  = 200 // pages of one reply that are reported
)

// withSearch offers the provider's own search: the version that every model
// takes, and that runs no code for it.
func (r *reply) withSearch(p *api.MessageNewParams) {
	s := r.req.Search
	if s == nil {
		return
	}
	t := api.WebSearchTool20250305Param{MaxUses: api.Int(int64(max(1, s.Most)))}
	if len(s.Only) > 0 { // the API takes one list or the other
		t.AllowedDomains = s.Only
	} else {
		t.BlockedDomains = s.Without
	}
	p.Tools = append(p.Tools, api.ToolUnionParam{OfWebSearchTool20250305: &t})
}

// noSearch returns bad, or where the provider refuses to search at all, that in
// plain text: it is not asked for it again.
func (r *reply) noSearch(bad *provider.Failure) *provider.Failure {
	if bad == nil || r.req.Search == nil || bad.Fault.Err == nil ||
		bad.Fault.Status != http.StatusBadRequest && bad.Fault.Status != http.StatusForbidden {
		return bad
	}
	if !provider.Says(bad.Fault.Err.Error(), "web_search", "web search") {
		return bad
	}
	r.c.dialect.noSearch.Store(true)
	no := provider.Final(llm.CodeUnavailable, texts.Text("provider_no_search"))
	no.Fault.Status, no.Fault.Err = bad.Fault.Status, bad.Fault.Err
	return no
}

// look notes what a search has found, or why it did not.
func (a *answer) look(e *api.MessageStreamEventUnion) {
	b := e.ContentBlock.AsWebSearchToolResult()
	if code := b.Content.ErrorCode; code != "" {
		a.unfound = string(code)
		return
	}
	a.searched = true
	for _, x := range b.Content.OfWebSearchResultBlockArray {
		if len(a.found) < maxFound {
			a.found = append(a.found, llm.Found{Title: x.Title, URL: x.URL, Age: x.PageAge})
		}
	}
}

// searchFault returns the failure of a reply in which every search failed.
func (a *answer) searchFault() *provider.Failure {
	if a.searched || a.unfound == "" {
		return nil
	}
	bad := provider.Final(llm.CodeUnavailable, texts.Text("provider_search", texts.With{"Why": plainName(a.unfound)}))
	bad.Fault.CanRetry = a.unfound == "too_many_requests" || a.unfound == "unavailable"
	return bad
}

// goOn is the conversation with the provider's unfinished message at its end,
// unchanged, as the API wants a paused turn back.
func (a *answer) goOn(p *api.MessageNewParams) {
	p.Messages = append(p.Messages, a.whole.ToParam())
}

// join takes on what an earlier part of the same reply found and used.
func (a *answer) join(before *answer) {
	a.found = append(before.found, a.found...)
	a.found = a.found[:min(len(a.found), maxFound)]
	a.searched = a.searched || before.searched
	if a.unfound == "" {
		a.unfound = before.unfound
	}
	if a.usage == nil || before.usage == nil {
		return
	}
	a.usage.Input += before.usage.Input
	a.usage.Output += before.usage.Output
	a.usage.CacheRead += before.usage.CacheRead
	a.usage.CacheWrite += before.usage.CacheWrite
	a.usage.Searches += before.usage.Searches
}
