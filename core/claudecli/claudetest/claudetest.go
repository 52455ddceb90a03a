// Package claudetest replaces the Claude Code CLI in tests: a program
// that speaks its stream-json protocol, keeps its transcript and does what the
// person's message states, line by line. How the real one behaves was seen of
// versions 2.1.197 and 2.1.329.
//
// The lines of a message:
//
//	say WORDS            streams the words and ends the message with them
//	think WORDS          streams thinking
//	use NAME {json}      calls a tool: it asks as the CLI does; Bash and Write really work
//	withdraw NAME {json} asks, and takes the request back
//	count                reports how many turns this process ran, and how many messages are in the transcript
//	environment          prints its environment
//	arguments            prints its arguments
//	garbage              prints what is no JSON, and JSON of no known type
//	crash                ends in the middle
//	silence              sends nothing more, whatever comes
//	retry STATUS         reports that the API answers STATUS, and then nothing more
//	fail WORDS           ends the turn with an error
//	stubborn             does not end when it is asked to, nor by SIGTERM
package claudetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/google/uuid"

	"gatehouse/core/vault"
)

// Version is the version that the fake reports.
const Version = "0.0.0-standin"

// Main is called first in TestMain: where this process was started as the CLI
// it is the fake and never returns.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != "--resume" && os.Args[1] != "--session-id" {
		return
	}
	c := &cli{session: os.Args[2], waiting: map[string]chan json.RawMessage{}, stop: make(chan struct{}, 1)}
	if err := c.openTranscript(os.Args[1] == "--resume"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	c.run()
	syscall.Exit(0) // not os.Exit, which under the race detector sleeps
}

type cli struct {
	session    string
	transcript string
	last       string // uuid of the transcript's last line
	messages   int
	turns      int
	cost       float64
	hooks      bool

	mu      sync.Mutex // of stdout and waiting
	waiting map[string]chan json.RawMessage
	stop    chan struct{} // an interrupt has come
}

func (c *cli) openTranscript(resume bool) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := filepath.Join(os.Getenv("HOME"), ".claude", "projects", vault.ProjectFolder(cwd))
	c.transcript = filepath.Join(dir, c.session+".jsonl")
	b, err := os.ReadFile(c.transcript)
	switch {
	case err != nil && resume:
		//lint:ignore ST1005 these are the CLI's own words
		return fmt.Errorf("No conversation found with session ID: %s", c.session)
	case err == nil && !resume:
		//lint:ignore ST1005 these are the CLI's own words
		return fmt.Errorf("Error: Session ID %s is already in use.", c.session)
	case err != nil:
		return os.MkdirAll(dir, 0o700)
	}
	for l := range bytes.Lines(b) {
		var line struct{ UUID, Type string }
		if json.Unmarshal(l, &line) == nil && (line.Type == "user" || line.Type == "assistant") {
			c.last, c.messages = line.UUID, c.messages+1
		}
	}
	return nil
}

func (c *cli) keep(kind, id string, message any) {
	line := map[string]any{"parentUuid": nil, "isSidechain": false, "userType": "external", "sessionId": c.session, "version": Version,
		"type": kind, "message": message, "uuid": id, "timestamp": "2026-01-02T03:04:05.000Z"}
	line["cwd"], _ = os.Getwd()
	if c.last != "" {
		line["parentUuid"] = c.last
	}
	b, _ := json.Marshal(line)
	f, err := os.OpenFile(c.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	_, _ = f.Write(append(b, '\n'))
	_ = f.Close()
	c.last, c.messages = id, c.messages+1
}

func (c *cli) say(v any) {
	b, _ := json.Marshal(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = os.Stdout.Write(append(b, '\n'))
}

type object = map[string]any

type incoming struct {
	Type      string          `json:"type"`
	UUID      string          `json:"uuid"`
	RequestID string          `json:"request_id"`
	Message   json.RawMessage `json:"message"`
	Request   struct {
		Subtype string          `json:"subtype"`
		Hooks   json.RawMessage `json:"hooks"`
	} `json:"request"`
	Response struct {
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
	} `json:"response"`
}

func (c *cli) run() {
	users := make(chan incoming, 16)
	go func() {
		defer close(users)
		in := bufio.NewReaderSize(os.Stdin, 1<<20)
		for {
			l, err := in.ReadBytes('\n')
			var m incoming
			if json.Unmarshal(l, &m) == nil {
				c.take(m, users)
			}
			if err != nil {
				return
			}
		}
	}()
	for m := range users {
		c.turn(m)
	}
}

func (c *cli) take(m incoming, users chan incoming) {
	switch {
	case m.Type == "user":
		users <- m
	case m.Type == "control_response":
		c.mu.Lock()
		w := c.waiting[m.Response.RequestID]
		c.mu.Unlock()
		if w != nil {
			w <- m.Response.Response
		}
	case m.Type == "control_request":
		if m.Request.Subtype == "interrupt" {
			select {
			case c.stop <- struct{}{}:
			default:
			}
		}
		if m.Request.Subtype == "initialize" { // before the first message
			c.hooks = len(m.Request.Hooks) > len("null")
		}
		c.say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": m.RequestID, "response": object{}}})
	}
}

// ask sends a control_request and waits for the answer; nil when it was stopped.
func (c *cli) ask(request object) json.RawMessage {
	id := uuid.NewString()
	w := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.waiting[id] = w
	c.mu.Unlock()
	c.say(object{"type": "control_request", "request_id": id, "request": request})
	select {
	case r := <-w:
		return r
	case <-c.stop:
		c.stop <- struct{}{}
		return nil
	}
}

func (c *cli) turn(m incoming) {
	c.turns++
	cwd, _ := os.Getwd()
	var said struct {
		Content []struct{ Type, Text string } `json:"content"`
	}
	_ = json.Unmarshal(m.Message, &said)
	c.keep("user", m.UUID, m.Message)
	c.say(object{"type": "system", "subtype": "init", "cwd": cwd, "session_id": c.session, "tools": []string{"Bash", "Read", "Write"}, "model": "claude-standin",
		"permissionMode": "default", "claude_code_version": Version, "mcp_servers": []object{{"name": "notes", "status": "connected"}, {"name": "broken", "status": "failed"}}})
	var text strings.Builder
	for _, b := range said.Content {
		text.WriteString(b.Text + "\n")
	}
	last := ""
	for l := range strings.Lines(text.String()) {
		word, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		words, done := c.do(word, rest)
		if done {
			return
		}
		if words != "" {
			last = words
		}
		if len(c.stop) > 0 {
			<-c.stop
			c.keep("user", uuid.NewString(), object{"role": "user", "content": []object{{"type": "text", "text": "[Request interrupted by user]"}}})
			c.result(object{"subtype": "error_during_execution", "is_error": true})
			return
		}
	}
	c.result(object{"subtype": "success", "is_error": false, "result": last})
}

func (c *cli) result(r object) {
	c.cost += .25
	r["type"], r["session_id"], r["total_cost_usd"] = "result", c.session, c.cost
	r["usage"] = object{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
	c.say(r)
}

func (c *cli) do(word, rest string) (said string, done bool) {
	switch word {
	case "say":
		return rest, c.speak("text", rest)
	case "think":
		c.speak("thinking", rest)
	case "count":
		said = fmt.Sprintf("turn %d of this process, %d messages", c.turns, c.messages)
		return said, c.speak("text", said)
	case "environment":
		env := os.Environ()
		slices.Sort(env)
		said = strings.Join(env, " | ")
		return said, c.speak("text", said)
	case "arguments":
		said = strings.Join(os.Args[1:], " ")
		return said, c.speak("text", said)
	case "use":
		name, input, _ := strings.Cut(rest, " ")
		c.use(name, json.RawMessage(input))
	case "withdraw":
		c.withdraw(rest)
	case "garbage":
		c.mu.Lock()
		fmt.Println("this is no JSON {")
		fmt.Println(`[1,2]`)
		fmt.Println(`{"type":"news","tools":{"a":1}}`)
		fmt.Println(`{"type":"assistant","message":"of another shape"}`)
		fmt.Println(`{"type":"system","subtype":"init","tools":7}`)
		fmt.Println(`{"type":"stream_event","event":[]}`)
		fmt.Println()
		c.mu.Unlock()
	case "crash":
		fmt.Fprintln(os.Stderr, "something broke, the key was", os.Getenv("ANTHROPIC_API_KEY"))
		syscall.Exit(7)
	case "silence":
		select {}
	case "retry":
		status, _ := strconv.Atoi(rest)
		c.say(object{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": status})
		select {}
	case "fail":
		c.result(object{"subtype": "success", "is_error": true, "result": rest})
		return "", true
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		c.speak("text", "I stay")
		select {}
	}
	return said, false
}

// speak streams words and ends their message.
func (c *cli) speak(kind, words string) bool {
	id := "msg_" + uuid.NewString()
	event := func(e object) {
		c.say(object{"type": "stream_event", "event": e, "parent_tool_use_id": nil, "session_id": c.session})
	}
	event(object{"type": "message_start", "message": object{"id": id}})
	event(object{"type": "content_block_start", "index": 0, "content_block": object{"type": kind}})
	for _, w := range strings.SplitAfter(words, " ") {
		event(object{"type": "content_block_delta", "index": 0, "delta": object{"type": kind + "_delta", kind: w}})
	}
	b := object{"type": kind, kind: words}
	if kind == "thinking" {
		b["signature"] = "signed"
	}
	c.block(id, b, "end_turn")
	return false
}

func (c *cli) block(id string, b object, stop string) {
	m := object{"id": id, "type": "message", "role": "assistant", "model": "claude-standin", "content": []object{b}, "stop_reason": stop,
		"usage": object{"input_tokens": 10, "output_tokens": 5}}
	line := uuid.NewString()
	c.keep("assistant", line, m)
	c.say(object{"type": "assistant", "message": m, "parent_tool_use_id": nil, "session_id": c.session, "uuid": line})
}

// use calls a tool as the CLI does: the hook first, then the question.
func (c *cli) use(name string, input json.RawMessage) {
	call := "toolu_" + uuid.NewString()
	c.block("msg_"+call, object{"type": "tool_use", "id": call, "name": name, "input": input}, "tool_use")
	if !c.hooks && name == "Read" { // the CLI asks no one about what is in its directory
		c.toolResult(call, c.work(name, input), false)
		return
	}
	c.ask(object{"subtype": "hook_callback", "callback_id": "ask", "tool_use_id": call, "input": object{"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": input}})
	got := c.ask(object{"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": call})
	var r struct {
		Behavior, Message string
		UpdatedInput      json.RawMessage `json:"updatedInput"`
		ToolUseID         string          `json:"toolUseID"`
	}
	if json.Unmarshal(got, &r) != nil || r.ToolUseID != call {
		return
	}
	if r.Behavior != "allow" {
		c.toolResult(call, r.Message, true)
		return
	}
	c.toolResult(call, c.work(name, r.UpdatedInput), false)
}

func (c *cli) toolResult(call, text string, failed bool) {
	m := object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}}}
	c.keep("user", uuid.NewString(), m)
	c.say(object{"type": "user", "message": m, "parent_tool_use_id": nil, "session_id": c.session})
}

// work runs a tool: Bash and Write really do it, all others return their input.
func (c *cli) work(name string, input json.RawMessage) string {
	var in struct {
		Command, Content string
		FilePath         string `json:"file_path"`
	}
	_ = json.Unmarshal(input, &in)
	switch name {
	case "Bash":
		out, err := exec.Command("/bin/sh", "-c", in.Command).CombinedOutput()
		return strings.TrimSpace(fmt.Sprintln(string(out), err))
	case "Write":
		if err := os.WriteFile(in.FilePath, []byte(in.Content), 0o600); err != nil {
			return err.Error()
		}
		return "written"
	}
	return string(input)
}

// withdraw asks about a call and needs no answer any more.
func (c *cli) withdraw(rest string) {
	name, input, _ := strings.Cut(rest, " ")
	id := uuid.NewString()
	c.say(object{"type": "control_request", "request_id": id, "request": object{"subtype": "can_use_tool", "tool_name": name, "input": json.RawMessage(input), "tool_use_id": "toolu_w"}})
	c.say(object{"type": "control_cancel_request", "request_id": id})
}
