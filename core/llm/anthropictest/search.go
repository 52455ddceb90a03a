package anthropictest

import (
	"encoding/json"
	"slices"
	"strings"
)

// Sealed begins the encrypted content of every page that the fake has found;
// it takes nothing else back.
const Sealed = "fake-sealed-"

// A Search is one search of the provider's own tool within a Reply.
type Search struct {
	Query string
	Pages []Page
	Error string // an error_code instead of pages
}

// A Page is one result of a Search.
type Page struct{ Title, URL, Age string }

// searchTool and searchName are the version of the tool that the fake knows.
const (
	searchTool = "web_search_20250305"
	searchName = "web_search"
)

// searches reports whether the request offers the provider's search.
func (m *Message) searches() bool {
	return slices.ContainsFunc(m.Tools, func(t Tool) bool { return t.Type == searchTool })
}

// checkSearch holds a server tool against the rules for it.
func (s *Server) checkSearch(i int, t *Tool) *refusal {
	switch {
	case t.Type != searchTool:
		return invalid("tools.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, t.Type)
	case s.o.NoSearch:
		return invalid("tools.%d: web_search is not enabled for this organization", i)
	case t.Name != searchName:
		return invalid("tools.%d.%s.name: Input should be '%s'", i, searchTool, searchName)
	case t.InputSchema != nil || t.Description != "":
		return invalid("tools.%d.%s.input_schema: Extra inputs are not permitted", i, searchTool)
	case t.MaxUses != nil && *t.MaxUses < 1:
		return invalid("tools.%d.%s.max_uses: Input should be greater than 0", i, searchTool)
	case len(t.Allowed) > 0 && len(t.Blocked) > 0:
		return invalid("tools.%d.%s: Only one of `allowed_domains` and `blocked_domains` may be given", i, searchTool)
	}
	for _, d := range append(slices.Clone(t.Allowed), t.Blocked...) {
		if strings.Contains(d, "://") || strings.ContainsAny(d, " \t") || d == "" {
			return invalid("tools.%d.%s: domains must not include a scheme: %s", i, searchTool, d)
		}
	}
	return nil
}

// checkServerBlock checks a call of the search and its result, as they come
// back in a paused turn: nothing in them may have been changed.
func checkServerBlock(i, j int, t *Turn) *refusal {
	b := &t.Content[j]
	if b.Type == "server_tool_use" {
		switch {
		case !strings.HasPrefix(b.ID, "srvtoolu_"):
			return invalid("messages.%d.content.%d.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'", i, j)
		case j+1 >= len(t.Content) || t.Content[j+1].ToolUseID != b.ID:
			return invalid("messages.%d: `web_search` tool use with id `%s` was found without a corresponding `web_search_tool_result` block", i, b.ID)
		}
		return nil
	}
	var failed struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(b.Raw, &failed) == nil && failed.Code != "" {
		return nil
	}
	var pages []struct {
		Type, URL, Title string
		Sealed           string `json:"encrypted_content"`
	}
	if json.Unmarshal(b.Raw, &pages) != nil {
		return invalid("messages.%d.content.%d.web_search_tool_result.content: Field required", i, j)
	}
	for _, p := range pages {
		if p.Type != "web_search_result" || p.Sealed != Sealed+p.URL {
			return invalid("messages.%d.content.%d: Invalid `encrypted_content` in `web_search_result` block", i, j)
		}
	}
	return nil
}

// UnmarshalJSON reads a block; what a search has found stays as it came.
func (b *Block) UnmarshalJSON(data []byte) error {
	type plain Block // without this method
	var head struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Type != "web_search_tool_result" {
		return json.Unmarshal(data, (*plain)(b))
	}
	b.Raw = head.Content
	var id struct {
		ToolUseID string `json:"tool_use_id"`
	}
	err := json.Unmarshal(data, &id)
	b.Type, b.ToolUseID = head.Type, id.ToolUseID
	return err
}

// search appends one search with its result.
func (s *script) search(id string, x Search) {
	q, _ := json.Marshal(map[string]string{"query": x.Query}) // strings: cannot fail
	s.block(map[string]any{"type": "server_tool_use", "id": id, "name": searchName, "input": map[string]any{}},
		delta("input_json_delta", "partial_json", []string{"", string(q)})...)
	var content any = map[string]any{"type": "web_search_tool_result_error", "error_code": x.Error}
	if x.Error == "" {
		pages := []any{}
		for _, p := range x.Pages {
			pages = append(pages, map[string]any{"type": "web_search_result", "url": p.URL, "title": p.Title,
				"page_age": p.Age, "encrypted_content": Sealed + p.URL})
		}
		content = pages
	}
	s.block(map[string]any{"type": "web_search_tool_result", "tool_use_id": id, "content": content})
}

// citations point from a text to the pages that were found.
func citations(searches []Search) (out []map[string]any) {
	for _, x := range searches {
		for _, p := range x.Pages {
			out = append(out, map[string]any{"type": "citations_delta", "citation": map[string]any{
				"type": "web_search_result_location", "url": p.URL, "title": p.Title, "cited_text": "…", "encrypted_index": Sealed + "index"}})
		}
	}
	return out
}
