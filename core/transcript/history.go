package transcript

import (
	"encoding/json"
	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/transcript/record"
	"gatehouse/core/vault"
	"slices"
)

// A Resume describes how a conversation was continued, in the two forms that clients
// know: sdk_resume and valid if all of it was replayed (of a compacted one, the summary
// and what follows); context_injection if it was cut to the budget or begins with
// another session's messages; otherwise new.
type Resume struct {
	Info    core.ResumeInfo
	Session core.SessionResume
}

// History returns the newest messages that take at most budget tokens (estimated at
// 4 bytes a token), as whole turns, each beginning with a user's text; of a
// single larger turn, that text and the newest rounds. The summary of
// a compaction is always first. What the present run has already written is
// part of it. Where all of an imported or continued session fits, as much of
// what it goes on from as fits too is in front of it; of an imported one that
// exists as Markdown alone, a message that holds its newest parts as data.
//
// What was refused (Refuse) is left out.
//
// Callers change neither the messages nor their blocks, which are those of the conversation.
// It is a valid sequence: a message with tool calls is followed by one with all
// their results; a result that is missing is an error that reports it, and the
// result of no call is text. So ask Open what the run has left open, and
// Append results for it, before History.
func (c *Conversation) History(budget int) ([]Message, Resume, error) {
	if err := c.load(budget * lines.BytesPerToken); err != nil {
		return nil, Resume{}, err
	}
	all := lines.Accepted(c.tail.Messages)
	taken, size := lines.Newest(all, budget*lines.BytesPerToken)
	r := c.resume(len(taken), len(all), size)
	if c.tail.Whole && len(taken) == len(all) && (len(all) == 0 || !all[0].Summary) {
		if c.from != nil {
			taken, r = c.injected(taken, size, budget*lines.BytesPerToken, r)
		} else {
			taken, r = c.recorded(taken, size, budget*lines.BytesPerToken, r)
		}
	}
	return lines.Repaired(taken), r, nil
}

func (c *Conversation) resume(given, known, size int) Resume {
	previous := max(c.sess.MessageCount, known)
	r := Resume{
		Info: core.ResumeInfo{Method: "new", IsNewSession: previous == 0, PreviousMessageCount: previous, SDKSessionAvailable: c.existed},
		Session: core.SessionResume{Method: "new", SDKResumeAttempted: c.existed, PreviousMessageCount: previous,
			LoadedFromDisk: c.disk, CacheHit: c.hit},
	}
	switch {
	case given == 0:
	case given == known && c.tail.Whole:
		r.Info.Method, r.Session.Method, r.Session.SDKSessionValid = "sdk_resume", "sdk_resume", true
	default:
		r.Info.Method, r.Session.Method = "context_injection", "context_injection"
		r.Session.ContextInjected, r.Session.MessagesInjected = true, given
		r.Session.TokensEstimate = (size + lines.BytesPerToken - 1) / lines.BytesPerToken
	}
	return r
}

// injected inserts what the conversation goes on from in front of taken, which
// takes size of room.
func (c *Conversation) injected(taken []Message, size, room int, r Resume) ([]Message, Resume) {
	if err := c.from.load(room - size); err != nil {
		c.s.log.Warn("an earlier session is left out", "session", c.sess.ID, "err", err)
		return taken, r
	}
	front, more := lines.Newest(lines.Accepted(c.from.tail.Messages), room-size)
	if len(front) == 0 {
		return taken, r
	}
	r.Info.Method, r.Session.Method = "context_injection", "context_injection"
	r.Session.SDKSessionValid, r.Session.ContextInjected = false, true
	r.Session.MessagesInjected = len(front) + len(taken)
	r.Session.TokensEstimate = (size + more + lines.BytesPerToken - 1) / lines.BytesPerToken
	r.Session.LoadedFromDisk = r.Session.LoadedFromDisk || c.from.disk
	before := max(c.from.sess.MessageCount, len(c.from.tail.Messages))
	r.Info.PreviousMessageCount += before
	r.Session.PreviousMessageCount += before
	return append(front[:len(front):len(front)], taken...), r
}

// recorders are the sources of sessions that may exist as a record only.
var recorders = []string{"parachute", "claude", "chatgpt"}

// recorded inserts the record of an imported session in front of taken, which
// takes size of room: its newest parts that fit, in one message that reports what
// they are. Nothing is changed where the session is not the operator's, or its
// transcript holds lines from elsewhere: then these are the imported words.
func (c *Conversation) recorded(taken []Message, size, room int, r Resume) ([]Message, Resume) {
	foreign := func(m Message) bool { return m.Run == "" }
	if c.sess.User != core.Operator || !slices.Contains(recorders, c.sess.Source) || slices.ContainsFunc(c.tail.Messages, foreign) {
		return taken, r
	}
	var m struct {
		Original string `json:"original_id"`
	}
	_ = json.Unmarshal(c.sess.Metadata, &m) // without it, the session's own id counts
	ids := slices.DeleteFunc([]string{c.sess.ID, m.Original}, func(id string) bool { return !vault.ValidID(id) })
	rec, err := record.Find(c.s.vault.Root(), c.sess.Source, ids...)
	if err != nil {
		c.s.log.Warn("a record of an imported session is left out", "session", c.sess.ID, "err", err)
	}
	if rec == nil {
		return taken, r
	}
	message := func(text string) Message {
		return Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}}
	}
	text, given := rec.Text(room-size, func(text string) int {
		m := message(text)
		return m.Size()
	})
	if given == 0 {
		return taken, r
	}
	front := message(text)
	r.Info.Method, r.Session.Method = "context_injection", "context_injection"
	r.Session.SDKSessionValid, r.Session.ContextInjected, r.Session.LoadedFromDisk = false, true, true
	r.Session.MessagesInjected = given + len(taken)
	r.Session.TokensEstimate = (size + front.Size() + lines.BytesPerToken - 1) / lines.BytesPerToken
	previous := max(r.Info.PreviousMessageCount, len(rec.Parts)+len(c.tail.Messages)) // an importer's row may count them
	r.Info.PreviousMessageCount, r.Session.PreviousMessageCount, r.Info.IsNewSession = previous, previous, false
	return append([]Message{front}, taken...), r
}
