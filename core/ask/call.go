package ask

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/diff"
	"gatehouse/core/texts"
)

// Options on the buttons of a permission.
const (
	OptionOnce = "once" // this call only
	OptionDeny = "deny"
)

// OptionGrant returns the option of the i-th suggested grant.
func OptionGrant(i int) string { return "grant" + strconv.Itoa(i) }

// A Payload is what an ask of a tool call or of a model carries.
type Payload struct {
	Request   *core.PermissionRequest `json:"request,omitempty"`
	Questions json.RawMessage         `json:"questions,omitempty"`
	Session   string                  `json:"session_id"`
	User      int64                   `json:"user_id"`
	Owner     bool                    `json:"owner"`
	Trust     core.Trust              `json:"trust_level"`
	Call      string                  `json:"call,omitempty"`
	Commands  []string                `json:"commands,omitempty"`
	Reason    string                  `json:"reason,omitempty"`
	Input     string                  `json:"input,omitempty"` // InputHash of the call
	Diff      *diff.File              `json:"diff,omitempty"`  // what the call would change
	Shown     string                  `json:"shown,omitempty"` // tool.Change.State of the file in Diff
}

// InputHash identifies a call by its tool and input.
func InputHash(tool string, input json.RawMessage) string {
	h := sha256.New()
	_, _ = io.WriteString(h, tool+"\x00") // a hash does not fail
	_, _ = h.Write(input)
	return hex.EncodeToString(h.Sum(nil))
}

// Call returns what a permission is about; core.NotFound for any other
func (a Ask) Call() (Payload, error) {
	var body Payload
	if a.Kind != KindPermission || json.Unmarshal([]byte(a.Payload), &body) != nil || body.Request == nil {
		return Payload{}, texts.Error(core.NotFound, "question_gone")
	}
	return body, nil
}

// A Waiting is an ask that waits for the owner, as the panel and the API show it.
type Waiting struct {
	Request  core.PermissionRequest `json:"request"`
	Session  string                 `json:"session_id"`
	Run      string                 `json:"run_id"`
	Bot      string                 `json:"bot"`
	User     int64                  `json:"user_id"` // the call is for
	Trust    core.Trust             `json:"trust_level"`
	Reason   string                 `json:"reason"`             // why it is asked
	Commands []string               `json:"commands,omitempty"` // of a shell, as parsed
	Diff     *diff.File             `json:"diff,omitempty"`     // of a call that changes a file
	At       time.Time              `json:"created_at"`
}

// Caution returns why it is asked, where that is more than that nothing allows
// it: a command that hides what it runs, that is not wholly understood, or that
// names what is on the deny list.
func (w Waiting) Caution() string {
	if strings.HasPrefix(w.Reason, w.Request.ToolName+WantsTo) {
		return ""
	}
	return w.Reason
}

// WantsTo follows a tool's name in the reason of an ask that nothing allows.
const WantsTo = " wants to "

// View returns an ask of a tool call as the panel and the API show it; NotFound for
// any other
func View(a Ask) (Waiting, error) {
	body, err := a.Call()
	if err != nil {
		return Waiting{}, err
	}
	return Waiting{Request: *body.Request, Session: body.Session, Run: a.Run, Bot: a.Bot, User: body.User, Trust: body.Trust,
		Reason: body.Reason, Commands: body.Commands, Diff: body.Diff, At: a.CreatedAt}, nil
}

// A Question is one of Ask's that waits for its person's answer.
type Question struct {
	ID        string
	Questions json.RawMessage // the input of AskUserQuestion, hostile text
	ExpiresAt time.Time
}

// Told returns a settled ask's outcome as text for each user that it asked; it does
// not name the user who decided.
func Told(a Ask) string {
	switch {
	case a.State != Decided || a.Kind == KindQuestion:
		return OutcomeText(a)
	case a.Decision == Granted:
		return texts.Text("permission_granted_told")
	}
	return texts.Text("permission_refused_told")
}

// OutcomeText returns an ask's outcome as text.
func OutcomeText(a Ask) string {
	switch {
	case a.State == Expired:
		return texts.Text("ask_unanswered")
	case a.State == Closed:
		return a.Decision
	case a.Kind == KindQuestion:
		return texts.Text("question_answered")
	case a.Decision == Granted:
		return texts.Text("permission_granted", texts.With{"By": a.DecidedBy})
	}
	return texts.Text("permission_refused", texts.With{"By": a.DecidedBy})
}
