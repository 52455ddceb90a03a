package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

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
func (r *reply) withSearch(p *request) {
	s := r.req.Search
	if s == nil {
		return
	}
	t := tool{Type: "web_search_20250305", Name: "web_search", MaxUses: int64(max(1, s.Most))}
	if len(s.Only) > 0 { // the API takes one list or the other
		t.Allowed = s.Only
	} else {
		t.Blocked = s.Without
	}
	p.tools = append(p.tools, t)
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
func (a *answer) look(content json.RawMessage) {
	var refused struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(content, &refused) == nil && refused.Code != "" {
		a.unfound = refused.Code
		return
	}
	var pages []struct {
		Title string `json:"title"`
		URL   string `json:"url"`
		Age   string `json:"page_age"`
	}
	if json.Unmarshal(content, &pages) != nil {
		return
	}
	a.searched = true
	for _, x := range pages {
		if len(a.found) < maxFound {
			a.found = append(a.found, llm.Found{Title: x.Title, URL: x.URL, Age: x.Age})
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

// goOn adds the provider's unfinished message at the end of the conversation, unchanged,
// as the API wants a paused turn back.
func (a *answer) goOn(p *request) *provider.Failure {
	var content []block
	for i := range a.whole {
		raw, ok := a.whole[i].block()
		if !ok {
			return provider.Garbage("the parts of the message do not fit together")
		}
		if raw != nil {
			content = append(content, block{raw: raw})
		}
	}
	if len(content) > 0 {
		p.messages = append(p.messages, turn{assistant, content})
	}
	return nil
}

// A part is one block of a message that may have to be sent back: as it began, and what
// came to it.
type part struct {
	index           int
	begun           map[string]json.RawMessage
	text, thinking  strings.Builder
	signature, args strings.Builder
	citations       []json.RawMessage
}

// note adds an event to the parts; false: it belongs to none. The stream's
// length bounds them.
func (a *answer) note(e *event) bool {
	if e.Type == "content_block_start" {
		x := &part{index: e.Index}
		a.whole = append(a.whole, x)
		return json.Unmarshal(e.Block, &x.begun) == nil && x.begun != nil
	}
	if e.Type != "content_block_delta" {
		return true
	}
	for _, x := range a.whole {
		if x.index == e.Index {
			x.text.WriteString(e.Delta.Text)
			x.thinking.WriteString(e.Delta.Thinking)
			x.signature.WriteString(e.Delta.Signature)
			x.args.WriteString(e.Delta.Input)
			if len(e.Delta.Citation) > 0 {
				x.citations = append(x.citations, e.Delta.Citation)
			}
			return true
		}
	}
	return false
}

// extend appends more to the string of that name.
func (x *part) extend(name string, more *strings.Builder) {
	if more.Len() == 0 {
		return
	}
	var begin string
	_ = json.Unmarshal(x.begun[name], &begin)              // not there, or null
	x.begun[name], _ = json.Marshal(begin + more.String()) // a string: cannot fail
}

// block returns the part as it is sent back; nil where the API would not take it, for it
// holds no text; false where it makes no sense.
func (x *part) block() (json.RawMessage, bool) {
	x.extend("text", &x.text)
	x.extend("thinking", &x.thinking)
	x.extend("signature", &x.signature)
	if x.args.Len() > 0 {
		x.begun["input"] = json.RawMessage(x.args.String())
	}
	if len(x.citations) > 0 {
		var all []json.RawMessage
		_ = json.Unmarshal(x.begun["citations"], &all) // none, or null
		x.begun["citations"], _ = json.Marshal(append(all, x.citations...))
	}
	var kind, text string
	if json.Unmarshal(x.begun["type"], &kind) != nil {
		return nil, false
	}
	if kind == "text" && (json.Unmarshal(x.begun["text"], &text) != nil || strings.TrimSpace(text) == "") {
		return nil, true
	}
	raw, err := json.Marshal(x.begun)
	return raw, err == nil
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
