package claudecli

import (
	"encoding/base64"
	"encoding/json"

	"gatehouse/core"
)

// What Claude Code and a program that drives it say to each other: one JSON
// object a line, as versions 2.1.197 and 2.1.329 were seen to do. What is not
// named here is passed over.

// line is what every line from the CLI has; the rest is decoded by type.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	RequestID string `json:"request_id"`
	// ParentToolUseID is set in a sub-agent's output.
	ParentToolUseID string `json:"parent_tool_use_id"`
	raw             json.RawMessage
}

// starts is system/init, once a turn.
type starts struct {
	Tools          []string `json:"tools"`
	Model          string   `json:"model"`
	PermissionMode string   `json:"permissionMode"`
	Version        string   `json:"claude_code_version"`
	MCPServers     []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
}

// retries is system/api_retry.
type retries struct {
	Status int `json:"error_status"`
}

// streamed is stream_event: an event of the Messages API as it came.
type streamed struct {
	Event struct {
		Type    string `json:"type"`
		Message struct {
			ID string `json:"id"`
		} `json:"message"`
		Delta struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		} `json:"delta"`
	} `json:"event"`
}

// spoken is assistant (one line for each block, the same message id) and user
// (the results of tools).
type spoken struct {
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   *core.Tokens    `json:"usage"`
	} `json:"message"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks returns content's, which may be a plain text.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(content, &list)
	return list
}

// ends is result, the last line of a turn. is_error reports whether it went well,
// not the subtype.
type ends struct {
	IsError bool         `json:"is_error"`
	Result  string       `json:"result"`
	Cost    *float64     `json:"total_cost_usd"` // of the process since it began
	Usage   *core.Tokens `json:"usage"`          // of the turn
	Status  int          `json:"api_error_status"`
}

// asks is a control_request of the CLI's.
type asks struct {
	Request struct {
		Subtype   string          `json:"subtype"`
		ToolName  string          `json:"tool_name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
	} `json:"request"`
}

type object map[string]any

// hello starts a process: it sends the system prompt, and requests a question before
// every tool call, also for those that the CLI would allow.
func hello(system string, replace bool) object {
	req := object{"subtype": "initialize", "hooks": object{"PreToolUse": []object{{"matcher": nil, "hookCallbackIds": []string{"ask"}}}}}
	switch {
	case system != "" && replace:
		req["systemPrompt"] = system
	case system != "":
		req["appendSystemPrompt"] = system
	}
	return object{"type": "control_request", "request_id": "initialize", "request": req}
}

func interrupt() object {
	return object{"type": "control_request", "request_id": "interrupt", "request": object{"subtype": "interrupt"}}
}

// says returns the user's message, with id as its line in the transcript.
func says(id string, said []core.Block) object {
	return object{"type": "user", "session_id": "", "uuid": id, "parent_tool_use_id": nil,
		"message": object{"role": "user", "content": content(said)}}
}

// content returns the user's message as blocks of the Messages API.
func content(said []core.Block) []object {
	out := []object{}
	for i := range said {
		if said[i].Type == "text" && said[i].Text != "" {
			out = append(out, object{"type": "text", "text": said[i].Text})
		}
		for _, m := range said[i].Media {
			out = append(out, object{"type": mediaBlock(m), "source": object{"type": "base64", "media_type": m.Type, "data": base64.StdEncoding.EncodeToString(m.Data)}})
		}
	}
	return out
}

func mediaBlock(m core.Media) string {
	if m.Type == "application/pdf" {
		return "document"
	}
	return "image"
}

// answers returns what the CLI gets for a control_request of its own.
func answers(id string, response any) object {
	return object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": response}}
}

func refuses(id, why string) object {
	return object{"type": "control_response", "response": object{"subtype": "error", "request_id": id, "error": why}}
}

func allow(call string, input json.RawMessage) object {
	return object{"behavior": "allow", "updatedInput": input, "toolUseID": call}
}

func deny(call, why string) object {
	return object{"behavior": "deny", "message": why, "toolUseID": call}
}

// askFirst sends a tool call to can_use_tool, whatever the CLI's own rules say.
func askFirst() object {
	return object{"continue": true, "hookSpecificOutput": object{"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "the gateway decides"}}
}
