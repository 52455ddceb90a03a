package mcp

import (
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// agents returns the agents that the caller may choose: as with POST /api/chat, which chooses
// for those who do not govern the gateway.
func (s *Server) agents(c *caller) []Agent {
	if !c.Has(auth.ScopeChat) || !c.Governs() {
		return nil
	}
	return s.o.Agents()
}

// listPrompts lists a prompt for each agent that the caller may choose.
func (s *Server) listPrompts(c *caller) sdk.Result {
	result := &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}, Cacheable: sdk.Cacheable{CacheScope: "private"}}
	for _, a := range s.agents(c) {
		result.Prompts = append(result.Prompts, &sdk.Prompt{
			Name: a.Name, Title: core.CleanName(a.Name), Description: line(a.Description, 500),
			Arguments: []*sdk.PromptArgument{{Name: "message", Title: "Message", Description: "What the agent is asked", Required: true}},
		})
	}
	return result
}

// prompt returns the prompt of an agent.
func (s *Server) prompt(c *caller, req sdk.Request) (sdk.Result, error) {
	r, ok := req.(*sdk.GetPromptRequest)
	if !ok {
		return nil, fault(core.Errorf(core.Invalid, "name the prompt"))
	}
	list := s.agents(c)
	i := slices.IndexFunc(list, func(a Agent) bool { return a.Name == r.Params.Name })
	if i < 0 {
		return nil, fault(core.Errorf(core.NotFound, "there is no such prompt: prompts/list lists those there are"))
	}
	text := fmt.Sprintf("Use the tool ask_agent of Gatehouse with agent_path %q, and show me its answer. Ask it this:\n\n%s", list[i].Name, r.Params.Arguments["message"])
	return &sdk.GetPromptResult{Description: line(list[i].Description, 500), Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
}
