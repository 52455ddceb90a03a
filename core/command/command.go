// Package command has the types that the dispatcher and the chat commands share:
// a command, its call and outcome, and the data of buttons.
package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Call is one command, answer or pressed button, on its way to its Handler.
type Call struct {
	In    *core.Inbound
	Trust core.Trust
	Seq   int64 // of the row in the inbox
	// Lane is the key of the lane in which the messages of the chat are answered, usually
	// LaneOf its address: right after the chat got another id, that of the old one.
	Lane string
}

// A Command is one command that users type. The list of commands drives
// dispatch, /help and the platforms' menus.
type Command struct {
	Name      string       // without slash
	About     string       // what it does, in menus and /help
	Args      string       // what may follow the name; "" for nothing
	How       string       // what that may be, with an example; "" where About says it
	Managers  bool         // only the owner and the admins may use it
	Guests    func() error // why guests cannot use it now, or nil; nil: they can
	Where     Where
	Elsewhere string          // the answer in a chat that Where excludes
	Control   bool            // handled at once, also while an answer is made
	Shows     bool            // where nothing follows its name it only shows something, of what the gateway has
	Private   bool            // in a group only the sender sees the answer, where the platform can do that
	Complete  func() []string // names that may follow, for the owner and the admins; nil for none
	Run       func(ctx context.Context, r Request) (Outcome, error)
}

// Where is the kind of chat in which a command works.
type Where uint8

const (
	AnyChat          Where = iota
	DirectOnly             // not in a group
	GroupOnly              // not in a direct chat
	ManagedGroup           // in a group, only for the owner and the admins
	ManagedGroupArgs       // as ManagedGroup if there are arguments
)

// ForGuests reports whether guests can use the command now.
func (c Command) ForGuests() bool { return !c.Managers && (c.Guests == nil || c.Guests() == nil) }

// An Outcome is the result of a command: a reply in Markdown ("" for none) and
// what to write in the transaction that acknowledges the command.
type Outcome struct {
	Text    string
	Buttons [][]core.Button // under the reply
	Edit    *Edit           // of a pressed button
	Write   func(ctx context.Context, tx *store.Tx) error
}

// Respond returns an outcome with a text of the catalogue, and no error.
func Respond(name string, with ...texts.With) (Outcome, error) {
	return Outcome{Text: texts.Text(name, with...)}, nil
}

// An Edit replaces the text of an earlier reply and removes its buttons. A reply
// whose new text takes several messages stays as it is.
type Edit struct {
	Key  string // of the reply
	Text string // in Markdown
}

// A Handler carries out a command. The text of an error with a kind is sent to
// the chat; after any other error the command is tried again.
type Handler func(ctx context.Context, c Call) (Outcome, error)

// A Request is a call whose sender is identified.
type Request struct {
	Call
	User int64 // 0 for a user who is known only as a member of a group
	Role core.Role
}

// Args returns the text that follows the command's name.
func (r Request) Args() string { return strings.TrimSpace(r.In.Text) }

// With returns a copy of r with more in front of its arguments.
func (r Request) With(args string) Request {
	if args == "" {
		return r
	}
	in := *r.In
	in.Text = args + " " + in.Text
	r.In = &in
	return r
}

// By returns the sender as the actor of a change.
func (r Request) By() core.Actor { return core.Actor{User: r.User, Via: "chat"} }

// Manages reports whether the sender is the owner or an admin. An identity that
// several users share on the platform is neither.
func (r Request) Manages() bool {
	return !r.In.From.Shared && r.Role.Manages()
}

// Known returns an error for the chat if the sender is known only as a member of a group.
func (r Request) Known() error {
	if r.User == 0 {
		return texts.Error(core.Denied, "group_member")
	}
	return nil
}

// Guest reports whether the sender has no more trust than guests have.
func (r Request) Guest() bool { return !r.Manages() && r.Trust <= core.Sandboxed }

// NoticeKey returns the key of the reply to the command in row seq. Its parts
// can be edited as "@<key>/<ordinal>".
func NoticeKey(seq int64) string { return fmt.Sprintf("notice:%d", seq) }

// Prefixes of a run's id in the data of a button.
const (
	stopPrefix  = "stop:"
	againPrefix = "again:"
	filePrefix  = "file:"
)

// unsurePrefix is in front of a row of the outbox, in the data of a button.
const unsurePrefix = "unsure:"

// UnsureData returns the data of the button that shows a message again that may be
// missing.
func UnsureData(row int64) string { return unsurePrefix + strconv.FormatInt(row, 10) }

// UnsureRow returns the row of the outbox that a button shows again, or false for any
// other button.
func UnsureRow(data string) (row int64, ok bool) {
	text, ok := strings.CutPrefix(data, unsurePrefix)
	if !ok {
		return 0, false
	}
	row, err := strconv.ParseInt(text, 10, 64)
	return row, err == nil
}

// pickPrefix is in front of a council's query and the mark of a model, in the data of a
// button.
const pickPrefix = "pick:"

// PickMark returns what names a model in the data of a button.
func PickMark(model string) string {
	sum := sha256.Sum256([]byte(model))
	return hex.EncodeToString(sum[:4])
}

// PickData returns the data of the button that picks a model's answer in a dispute.
func PickData(query, model string) string { return pickPrefix + query + ":" + PickMark(model) }

// PickDataUnder is PickData of a button under the reply to the command in row seq.
func PickDataUnder(query, model string, seq int64) string {
	return PickData(query, model) + "/" + strconv.FormatInt(seq, 36)
}

// PickOf returns the query and the mark of the model that a button picks, or false for
// any other button.
func PickOf(data string) (query, mark string, ok bool) {
	rest, ok := strings.CutPrefix(data, pickPrefix)
	rest, _, _ = strings.Cut(rest, "/")
	if i := strings.LastIndexByte(rest, ':'); ok && i > 0 {
		return rest[:i], rest[i+1:], true
	}
	return "", "", false
}

// PickUnder returns the row of the command under whose reply a button is that picks, or false
// for any other button.
func PickUnder(data string) (seq int64, ok bool) {
	_, text, _ := strings.Cut(data, "/")
	seq, err := strconv.ParseInt(text, 36, 64)
	return seq, err == nil && strings.HasPrefix(data, pickPrefix)
}

// StopData returns the data of the button that stops a run.
func StopData(run string) string { return stopPrefix + run }

// StopRun returns the run that a button stops, or false for any other button.
func StopRun(data string) (run string, ok bool) { return strings.CutPrefix(data, stopPrefix) }

// AgainData returns the data of the button that answers a run's message again.
func AgainData(run string) string { return againPrefix + run }

// AgainRun returns the run whose message a button answers again, or false for
// any other button.
func AgainRun(data string) (run string, ok bool) { return strings.CutPrefix(data, againPrefix) }

// FileData returns the data of the button that sends a run's answer as a file.
func FileData(run string) string { return filePrefix + run }

// FileRun returns the run whose answer a button sends as a file, or false for
// any other button.
func FileRun(data string) (run string, ok bool) { return strings.CutPrefix(data, filePrefix) }
