// Package daylog edits the texts of the two files that a day's activity is in: the list
// of activity, JSON lines, and the chat log, Markdown. What other programs wrote into
// them stays as it is.
package daylog

import (
	"bytes"
	"encoding/json"
)

// A Line is one exchange in a list of activity.
type Line struct {
	At       string `json:"ts"` // RFC 3339, UTC
	Session  string `json:"session_id"`
	Title    string `json:"session_title"`
	Agent    string `json:"agent_type"`
	Exchange int    `json:"exchange_number"` // in its conversation, from 1
	Summary  string `json:"summary"`
}

// key identifies a line: one that is in the list is not added again, whatever else it has.
type key struct {
	at, session string
	exchange    int
}

func (l *Line) key() key { return key{l.At, l.Session, l.Exchange} }

// Add returns a list of activity with those of lines that it does not have.
func Add(list []byte, lines []Line) ([]byte, error) {
	have := map[key]bool{} // bounded by the size of the file
	for raw := range bytes.Lines(list) {
		if l, ok := decode(raw); ok {
			have[l.key()] = true
		}
	}
	out := bytes.Clone(list)
	for i := range lines {
		l := &lines[i]
		if have[l.key()] {
			continue
		}
		have[l.key()] = true
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(l); err != nil {
			return nil, err
		}
		out = append(ended(out), b.Bytes()...)
	}
	return out, nil
}

// Drop returns a list of activity without the lines of these sessions.
func Drop(list []byte, sessions map[string]bool) []byte {
	out := make([]byte, 0, len(list))
	for raw := range bytes.Lines(list) {
		if l, ok := decode(raw); ok && sessions[l.Session] {
			continue
		}
		out = append(out, raw...)
	}
	return out
}

func decode(raw []byte) (l Line, ok bool) {
	return l, json.Unmarshal(raw, &l) == nil && l.Session != ""
}

// ended returns text with an end of its last line.
func ended(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(text, '\n')
	}
	return text
}
