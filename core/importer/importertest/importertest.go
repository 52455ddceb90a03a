// Package importertest generates exports in the formats that Claude and ChatGPT document or are known to
// write, for tests: the same seed makes the same export.
package importertest

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// A Maker makes exports.
type Maker struct {
	r *rand.Rand
	// Text is how long a message is, in bytes; 0 is 200.
	Text int
	// Turns is how many questions a conversation has; 0 is 4.
	Turns int
}

// New returns a Maker.
func New(seed uint64) *Maker { return &Maker{r: rand.New(rand.NewPCG(seed, 1))} }

// Start is when the first conversation begins.
var Start = time.Date(2024, 3, 1, 9, 0, 0, 0, time.UTC)

func (m *Maker) uuid() string {
	a, b := m.r.Uint64(), m.r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b)&0xfff, b>>16)
}

var syllables = strings.Fields("ka lo mi ne ru ta so vi pe du ga zo fi le mo ri sha tu wa yo")

// Words returns text of about n bytes.
func (m *Maker) Words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		for range 1 + m.r.IntN(3) {
			b.WriteString(syllables[m.r.IntN(len(syllables))])
		}
		b.WriteByte(" \n"[m.r.IntN(12)/11])
	}
	return strings.TrimSpace(b.String())
}

func (m *Maker) text() string {
	if m.Text == 0 {
		return m.Words(200)
	}
	return m.Words(m.Text)
}

func (m *Maker) turns() int {
	if m.Turns == 0 {
		return 4
	}
	return m.Turns
}

type object = map[string]any

// list writes n elements as an array, one at a time.
func list(w io.Writer, n int, element func(i int) any) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	_ = b.WriteByte('[')
	for i := range n {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		if err := enc.Encode(element(i)); err != nil {
			return err
		}
	}
	_ = b.WriteByte(']')
	return b.Flush()
}

// Claude writes the conversations.json of a Claude export with n conversations.
func (m *Maker) Claude(w io.Writer, n int) error {
	return list(w, n, func(i int) any { return m.ClaudeConversation(i) })
}

// ClaudeConversation returns one conversation: the second turn uses a tool, the third has a file, and the
// second question was asked twice.
func (m *Maker) ClaudeConversation(i int) any {
	at := Start.Add(time.Duration(i) * time.Hour)
	stamp := func() string { at = at.Add(time.Minute); return at.Format("2006-01-02T15:04:05.000000Z") }
	parent := "00000000-0000-4000-8000-000000000000"
	var messages []any
	say := func(sender string, behind string, blocks []any, more object) string {
		id, when := m.uuid(), stamp()
		text := ""
		for _, b := range blocks {
			if t, ok := b.(object)["text"].(string); ok {
				text += t
			}
		}
		o := object{"uuid": id, "text": text, "content": blocks, "sender": sender, "created_at": when, "updated_at": when, "attachments": []any{}, "files": []any{}, "parent_message_uuid": behind}
		for k, v := range more {
			o[k] = v
		}
		messages = append(messages, o)
		return id
	}
	text := func(s string) object {
		return object{"type": "text", "text": s, "start_timestamp": nil, "stop_timestamp": nil, "flags": nil, "citations": []any{}}
	}
	for t := range m.turns() {
		more := object{}
		switch t {
		case 1:
			q := say("human", parent, []any{text("Asked first: " + m.Words(40))}, nil)
			say("assistant", q, []any{text("Answered first: " + m.Words(40))}, nil)
		case 2:
			more["attachments"] = []any{object{"file_name": "notes.txt", "file_size": 300, "file_type": "txt", "extracted_content": m.Words(300)}}
			more["files"] = []any{object{"file_uuid": m.uuid(), "file_name": "photo.jpg"}}
		}
		parent = say("human", parent, []any{text(m.text())}, more)
		blocks := []any{}
		if t == 1 {
			id := fmt.Sprintf("toolu_%d_%d", i, t)
			blocks = append(blocks, object{"type": "thinking", "thinking": m.Words(80), "summaries": []any{}, "cut_off": false},
				text("I look that up."), object{"type": "tool_use", "id": id, "name": "web_search", "input": object{"query": m.Words(20)}, "message": "Searching", "integration_name": nil},
				object{"type": "tool_result", "tool_use_id": id, "name": "web_search", "content": []any{object{"type": "text", "text": m.Words(150)}}, "is_error": false},
				object{"type": "token_budget"})
		}
		parent = say("assistant", parent, append(blocks, text(m.text())), nil)
	}
	return object{"uuid": m.uuid(), "name": fmt.Sprintf("Talk %d about %s", i, m.Words(8)), "summary": "", "created_at": Start.Add(time.Duration(i) * time.Hour).Format(time.RFC3339Nano),
		"updated_at": at.Format(time.RFC3339Nano), "account": object{"uuid": "acc"}, "chat_messages": messages}
}

// ChatGPT writes the conversations.json of a ChatGPT export with n conversations.
func (m *Maker) ChatGPT(w io.Writer, n int) error {
	return list(w, n, func(i int) any { return m.ChatGPTConversation(i) })
}

// Pictures are the ids of the pictures of conversation i, the first of which an archive holds.
func Pictures(i int) []string {
	return []string{fmt.Sprintf("file-Pic%06dAAAA", i), fmt.Sprintf("file_%032x", i)}
}

// ChatGPTConversation returns one conversation: a question that was asked twice, two calls of tools,
// and two pictures.
func (m *Maker) ChatGPTConversation(i int) any {
	at := float64(Start.Add(time.Duration(i) * time.Hour).Unix())
	mapping := object{}
	children := map[string][]string{}
	add := func(parent, role string, o object) string {
		id := m.uuid()
		at += 12.5
		msg := object{"id": id, "author": object{"role": role, "name": nil, "metadata": object{}}, "create_time": at, "update_time": nil, "status": "finished_successfully", "end_turn": true, "weight": 1.0,
			"recipient": "all", "metadata": object{"model_slug": "gpt-4o"}, "channel": nil}
		for k, v := range o {
			msg[k] = v
		}
		mapping[id] = object{"id": id, "message": msg, "parent": parent, "children": []string{}}
		children[parent] = append(children[parent], id)
		return id
	}
	text := func(s string) object { return object{"content": object{"content_type": "text", "parts": []any{s}}} }
	const root = "client-created-root"
	mapping[root] = object{"id": root, "message": nil, "parent": nil, "children": []string{}}
	up := add(root, "system", object{"content": object{"content_type": "text", "parts": []any{""}}, "metadata": object{"is_visually_hidden_from_conversation": true}})
	for t := range m.turns() {
		switch t {
		case 1:
			q := add(up, "user", text("Asked first: "+m.Words(40)))
			add(q, "assistant", text("Answered first: "+m.Words(40)))
			up = add(up, "user", text(m.text()))
			up = add(up, "assistant", object{"recipient": "python", "content": object{"content_type": "code", "language": "unknown", "text": "print(" + m.Words(10) + ")"}})
			up = add(up, "tool", object{"author": object{"role": "tool", "name": "python", "metadata": object{}}, "content": object{"content_type": "execution_output", "text": m.Words(60)}})
			up = add(up, "assistant", object{"content": object{"content_type": "thoughts", "thoughts": []any{object{"summary": "Checking", "content": m.Words(50)}}}})
		case 2:
			pics := Pictures(i)
			up = add(up, "user", object{"content": object{"content_type": "multimodal_text", "parts": []any{
				object{"content_type": "image_asset_pointer", "asset_pointer": "file-service://" + pics[0], "size_bytes": 100, "width": 8, "height": 8},
				object{"content_type": "image_asset_pointer", "asset_pointer": "sediment://" + pics[1], "size_bytes": 100, "width": 8, "height": 8}, m.text()}},
				"metadata": object{"attachments": []any{object{"id": pics[0], "name": "cat.png", "mimeType": "image/png", "size": 100}}}})
			up = add(up, "assistant", object{"recipient": "dalle.text2im", "content": object{"content_type": "text", "parts": []any{`{"prompt":"a cat"}`}}})
			up = add(up, "tool", object{"author": object{"role": "tool", "name": "dalle.text2im", "metadata": object{}}, "content": object{"content_type": "multimodal_text", "parts": []any{
				object{"content_type": "image_asset_pointer", "asset_pointer": "file-service://" + pics[0] + "x", "metadata": object{"dalle": object{"prompt": "a cat"}}}, "DALL-E returned an image."}}})
		default:
			up = add(up, "user", text(m.text()))
		}
		up = add(up, "assistant", text(m.text()))
	}
	for id, list := range children {
		mapping[id].(object)["children"] = list
	}
	id := m.uuid()
	return object{"title": fmt.Sprintf("Chat %d about %s", i, m.Words(8)), "create_time": float64(Start.Add(time.Duration(i) * time.Hour).Unix()), "update_time": at, "mapping": mapping, "current_node": up,
		"conversation_id": id, "id": id, "default_model_slug": "gpt-4o", "is_archived": i%10 == 9, "moderation_results": []any{}, "plugin_ids": nil, "safe_urls": []any{}}
}

// Others are values to put in the place of others.
var Others = []string{`null`, `-1e400`, `"x"`, `[[{"a":[1]}],"b",null]`, `{"a":{"b":[null]}}`}

// Picture is a PNG.
func Picture() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	img.Set(3, 3, color.RGBA{200, 30, 30, 255})
	var b strings.Builder
	_ = png.Encode(&b, img) // a strings.Builder takes everything
	return []byte(b.String())
}

// Zip writes an archive with conversations.json, as write makes it, and the files. It packs
// them loosely: the race detector makes that slow.
func Zip(w io.Writer, write func(io.Writer) error, files map[string][]byte) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	f, err := z.Create("conversations.json")
	if err == nil {
		err = write(f)
	}
	for name, data := range files {
		if err != nil {
			return err
		}
		if f, err = z.Create(name); err == nil {
			_, err = f.Write(data)
		}
	}
	if err != nil {
		return err
	}
	return z.Close()
}

// Replaced returns text with each of its members' values, in turn, replaced.
func Replaced(text []byte, other string) (out []string) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	for at := int64(-1); ; {
		tok, err := dec.Token()
		if err != nil {
			return out
		}
		if _, ok := tok.(string); ok && at != dec.InputOffset() {
			at = dec.InputOffset()
			if rest := text[at:]; len(rest) > 0 && rest[0] == ':' {
				var v json.RawMessage
				if json.NewDecoder(bytes.NewReader(rest[1:])).Decode(&v) == nil {
					out = append(out, string(text[:at+1])+other+string(rest[1+len(v):]))
				}
			}
		}
	}
}
