// Package foreign describes conversations of other systems: what readers of export formats
// return, and what core/session/bring makes sessions of. It knows no format.
package foreign

import (
	"context"
	"io"
	"time"

	"gatehouse/core"
)

// A Conversation is one conversation of an export.
type Conversation struct {
	Source   string // as session rows name it: claude, chatgpt, parachute
	ID       string // where it comes from, hostile text
	Title    string // hostile text; "" without
	Model    string // that answered; "" unknown
	Created  time.Time
	Updated  time.Time
	Archived bool
	Others   bool      // others wrote in it: it was a group's
	User     int64     // whose it was where it comes from; 0 unknown
	Messages []Message // in the order of the export
	// Leaf is the id of the newest message of the branch that the other system shows. Where it
	// names no message, the last one of Messages is it.
	Leaf string
}

// A Message is one message. Its blocks are as a transcript has them: the results of tool
// calls are in a message of the user that follows the calls.
type Message struct {
	ID     string // unique in the conversation; "" is none
	Parent string // the message in front of it; "" begins the conversation
	Role   string // user or assistant
	Blocks []core.Block
	Model  string // of an answer, where known
	At     time.Time
	Files  []File
}

// A File came with a message.
type File struct {
	Ref  string // under which the export has its bytes; "" where it has none
	Name string // hostile text
	Type string // a MIME type as declared
	Size int64  // as declared
	Text string // the file's text, where the export has that alone
	Held bool   `json:",omitempty"` // the export has its bytes; another export of the conversation may not
}

// Terms are whose an import is.
type Terms struct {
	User    int64      // the owner of the sessions
	Trust   core.Trust // their ceiling
	Archive bool       // they are archived
	Again   bool       // also those whose sessions were deleted
	DryRun  bool       // nothing is written
	Found   bool       // no one asked for the import: it is done again when someone does
}

// What became of a conversation.
const (
	Added     = "added"
	Updated   = "updated"   // it was imported before, and has changed where it comes from
	Unchanged = "unchanged" // it was imported before
	Continued = "continued" // it was continued here, so it was left as it is
	Deleted   = "deleted"   // its session was deleted here, so it was left out unless Terms.Again
	Empty     = "empty"     // nothing was written in it, so it was left out
)

// ErrEmpty is returned by readers of export formats for a conversation that was opened and in
// which nothing was written. It is no fault of the export.
var ErrEmpty = core.Errorf(core.Invalid, "nothing was written in it")

// An Outcome is what became of a conversation.
type Outcome struct {
	Kind     string
	Session  string // its id
	Title    string
	Messages int
	Notes    []string // what is not as it was where it comes from
}

// Attachments keep the files of messages. Keep returns the blocks that represent the files
// of m in the transcript, and what of them is missing, for the report; media are for
// the model to see.
type Attachments interface {
	Keep(ctx context.Context, m *Message) (blocks []core.Block, missing []string, err error)
}

// A Transcript is a conversation in the form of Claude Code's transcripts, which gateways write too. It
// is taken as it is.
type Transcript struct {
	Source string
	ID     string
	Open   func() (io.ReadCloser, error)

	// What a database knew of it, where there was one.
	Original string // the id that it had before it was in that database
	From     string // the id of the conversation that it goes on from
	Title    string
	Created  time.Time
	Updated  time.Time
	Archived bool
	Tags     []string
	Others   bool       // others wrote in it: it was another user's, or a group's
	Trust    core.Trust // its ceiling in another gateway; Stranger: not known
}
