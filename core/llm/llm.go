// Package llm is the door to language models: Model, its Request and its
// Deltas. Abilities are data (About), so that wrapping a Model to count, retry
// or fall back cannot lose one.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"gatehouse/core"
)

// A Model answers requests. The iterator yields deltas in order and ends after
// the last; an error is yielded once, last, as (Delta{}, err). Breaking off
// or cancelling ctx closes the connection. An error is a *Fault when the
// provider answered or should have.
type Model interface {
	About() About
	Reply(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// About reports what a model is and can do.
type About struct {
	Name      string // as users write it: "openai/gpt-4o-mini", "local/quote"
	PricedAs  string // the model that answers, where it is another one than Name; else ""
	Window    int    // tokens; 0 unknown
	Tools     bool
	Images    bool
	Documents bool // PDFs as they are
	Thinking  bool
	Search    bool // it can search the web by its provider: Request.Search
}

// Priced returns the name under which a call of the model is reserved and recorded.
func (a About) Priced() string { return cmp.Or(a.PricedAs, a.Name) }

// A Request is one model call.
type Request struct {
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int
	// Temperature is from 0 to 2; nil is the model's own. A model with a
	// narrower range gets the nearest, one that takes none gets none.
	Temperature *float64
	// Stop are texts that the answer ends before. Not every server heeds them:
	// StopAt does in any case.
	Stop []string
	// Format has the answer be JSON of this form; nil: text. A server that does not
	// know it is asked without it, so the answer is to be checked in any case.
	Format *Format
	// Search has the provider check the web; nil: it must not. A model that
	// cannot (About) must not be asked.
	Search *Search
	Run    string // that asks; "" where no message is answered
	// Instead is called before a model of a chain is asked in place of the one before it; nil: each may
	// be. One for which it returns an error is left out.
	Instead func(model string) error
	// Sender is whose turn it is; quote searches only what this person may read.
	Sender Sender
}

// A Format is the form of an answer in JSON. In Schema every object names all its
// properties as required and allows no others, and nothing has bounds: the
// providers take only that.
type Format struct {
	Name   string // 1 to 64 letters, digits, _ and -
	Schema json.RawMessage
}

// A Sender is the user a call is made for, as text a search can use.
type Sender struct {
	User  int64 // 0: no one's own files are searched, because others read the answer
	Trust core.Trust
}

// A Message is one turn of the conversation. Blocks keep their order.
type Message struct {
	Role   string // "user" or "assistant"; tool results are blocks of a user message
	Blocks []core.Block
}

// A Tool is what the model is notified of a tool.
type Tool struct {
	Name   string
	About  string
	Schema json.RawMessage
}

// A Delta is a piece of an answer: some text, some thinking, one whole tool call, the
// usage (last), a page that was found, or a notice that a fallback or retry began.
type Delta struct {
	Text     string
	Thinking string
	// Signature ends the thinking before it: kept in its Block, it lets the same
	// provider take the thinking back as its own.
	Signature string
	Redacted  string       // a piece of thinking that only the provider can read: a Block of its own
	Call      *core.Block  // Type tool_use; in its place among text and thinking, where the provider gives it one
	Usage     *core.Tokens // once, at the end, where the provider states it
	Model     string       // set when the answering model is chosen or changes (fallback)
	Notice    string       // plain text: "openai is busy, trying again in 2 s"
	Unread    string       // plain text: files of the newest message that the provider refused; the answer is without them
	Stop      string       // end_turn, tool_use, max_tokens; with the last delta
	Found     *Found       // a page that Request.Search has found; they come before the last delta
}

// ErrSilence is the cause of a context that was ended because the model was silent for
// too long.
var ErrSilence = errors.New("the model was silent for too long")

// The codes of a Fault.
const (
	CodeAuth        = "auth"         // the provider refuses our key
	CodeRateLimited = "rate_limited" // too many requests or tokens in a while
	CodeOverloaded  = "overloaded"   // the provider is too busy
	CodeBadRequest  = "bad_request"  // the provider does not understand the request: our fault
	CodeTooLong     = "too_long"     // more than the model's context holds
	CodeCredit      = "no_credit"    // the account with the provider has no credit left
	CodeUnavailable = "unavailable"  // out of reach, broken, no such model
	CodeFiltered    = "filtered"     // the provider's content filter stopped the answer
	CodeCutOff      = "cut_off"      // the answer ended in the middle
	CodeGarbage     = "garbage"      // the answer makes no sense, nothing of it was yielded
	CodeSilence     = "silence"      // nothing came in time
)

// A Fault is a provider's failure, as text for the user.
type Fault struct {
	Code     string        // one of the Code constants
	Text     string        // plain text for the user who asked; holds no key, no URL with credentials, no setting
	Setting  string        // for the operator: the setting to check, "" for none
	CanRetry bool          // trying the same again later may help
	After    time.Duration // when the provider allows a retry
	Status   int           // HTTP status, 0 without
	Window   int           // with CodeTooLong: the tokens that the model takes, 0 unknown
	Err      error         // for the log
}

// Refused reports whether the provider refused the request for what is in it, so that it
// would refuse the same again.
func (f *Fault) Refused() bool {
	return f.Code == CodeBadRequest || f.Code == CodeTooLong || f.Code == CodeFiltered && f.Status == 400
}

// Error returns the text for the operator.
func (f *Fault) Error() string {
	text := f.Text
	if f.Setting != "" {
		text += " Check " + f.Setting
	}
	if f.Err == nil {
		return text
	}
	return text + ": " + f.Err.Error()
}
func (f *Fault) Unwrap() error { return f.Err }
