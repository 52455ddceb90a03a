// Package line has the form of a transcript's lines, which is Claude Code's.
package line

import (
	"bytes"
	"encoding/json"
	"io/fs"
)

// A Line is one line of a transcript in the form that Claude Code writes.
// Fields that we do not know are left out when a line is read.
type Line struct {
	ParentUUID  *string         `json:"parentUuid"` // nil starts a conversation
	IsSidechain bool            `json:"isSidechain"`
	UserType    string          `json:"userType"`
	CWD         string          `json:"cwd"` // the truth about the working directory
	SessionID   string          `json:"sessionId"`
	Version     string          `json:"version"`
	GitBranch   string          `json:"gitBranch"`
	Type        string          `json:"type"` // user, assistant, system, …
	Message     json.RawMessage `json:"message,omitempty"`
	RequestID   string          `json:"requestId,omitempty"` // ours: the run
	Author      json.RawMessage `json:"author,omitempty"`    // ours: who wrote it, for display
	UUID        string          `json:"uuid"`
	Timestamp   string          `json:"timestamp"`
	IsAPIError  bool            `json:"isApiErrorMessage,omitempty"` // of the CLI or the gateway, not of the model
	Refused     []string        `json:"refused,omitempty"`           // ours: the lines that the model's provider refused
	ParentCall  string          `json:"parentToolUseID,omitempty"`   // of a side chain: the call of Task that began it
}

// Encode appends l and a newline to b.
func (l *Line) Encode(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(l) // compacts Message, so no newline can be inside
}

// A Tail is the end of a transcript.
type Tail struct {
	Lines   []Line // oldest first; each has a uuid and a type
	Whole   bool   // the file was read from its first byte
	Skipped int    // lines that are broken or without uuid
	Info    fs.FileInfo
}
