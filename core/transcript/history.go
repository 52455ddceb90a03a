package transcript

import "gatehouse/core"

// A Resume describes how a conversation was continued, in the two forms that clients
// know: sdk_resume and valid if all of it was replayed (of a compacted one, the summary
// and what follows); context_injection if it was cut to the budget or begins with
// another session's messages; otherwise new.
type Resume struct {
	Info    core.ResumeInfo
	Session core.SessionResume
}

// bytesPerToken estimates a text's tokens.
const bytesPerToken = 4

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
// It is a valid sequence: a message with tool calls is followed by one with all
// their results; a result that is missing is an error that says so, and the
// result of no call is text. So ask Open what the run has left open, and
// Append results for it, before History.
func (c *Conversation) History(budget int) ([]Message, Resume, error) {
	if err := c.load(budget * bytesPerToken); err != nil {
		return nil, Resume{}, err
	}
	all := accepted(c.tail.messages)
	taken, size := newest(all, budget*bytesPerToken)
	r := c.resume(len(taken), len(all), size)
	if c.tail.whole && len(taken) == len(all) && (len(all) == 0 || !all[0].Summary) {
		if c.from != nil {
			taken, r = c.injected(taken, size, budget*bytesPerToken, r)
		} else {
			taken, r = c.recorded(taken, size, budget*bytesPerToken, r)
		}
	}
	return repaired(taken), r, nil
}

// newest chooses from all what takes at most room bytes.
func newest(all []Message, room int) (taken []Message, size int) {
	var front []Message
	if len(all) > 0 && all[0].Summary && all[0].size() <= room {
		front, all = all[:1:1], all[1:]
		room -= front[0].size()
	}
	start, sum := len(all), 0
	for i := len(all) - 1; i >= 0; i-- {
		if sum += all[i].size(); sum > room {
			break
		}
		if all[i].Begins() || i == 0 && front != nil { // a summary may replace the text
			start, size = i, sum
		}
	}
	taken = all[start:len(all):len(all)]
	if start == len(all) && len(all) > 0 && unfinished(&all[len(all)-1]) {
		taken, size = rounds(all, room, front != nil)
	}
	if front == nil {
		return taken, size
	}
	return append(front, taken...), size + front[0].size()
}

// unfinished reports whether the turn that ends with m goes on.
func unfinished(m *Message) bool { return m.calls() || m.Role == "user" && !m.Begins() }

// rounds returns the text that begins the newest turn and its newest rounds, each from an
// answer of the model on; nothing if the text alone is too long. After a summary
// (summed) the text may be missing.
func rounds(all []Message, room int, summed bool) (taken []Message, size int) {
	first := len(all) - 1
	for first >= 0 && !all[first].Begins() {
		first--
	}
	if first < 0 && !summed || first >= 0 && all[first].size() > room {
		return nil, 0
	}
	words, rest := all[:0:0], all[first+1:]
	if first >= 0 {
		words = all[first : first+1 : first+1]
		size = words[0].size()
	}
	start, sum := len(rest), size
	for i := len(rest) - 1; i >= 0; i-- {
		if sum += rest[i].size(); sum > room {
			break
		}
		if rest[i].Role == "assistant" {
			start, size = i, sum
		}
	}
	return append(words, rest[start:]...), size
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
	case given == known && c.tail.whole:
		r.Info.Method, r.Session.Method, r.Session.SDKSessionValid = "sdk_resume", "sdk_resume", true
	default:
		r.Info.Method, r.Session.Method = "context_injection", "context_injection"
		r.Session.ContextInjected, r.Session.MessagesInjected = true, given
		r.Session.TokensEstimate = (size + bytesPerToken - 1) / bytesPerToken
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
	front, more := newest(accepted(c.from.tail.messages), room-size)
	if len(front) == 0 {
		return taken, r
	}
	r.Info.Method, r.Session.Method = "context_injection", "context_injection"
	r.Session.SDKSessionValid, r.Session.ContextInjected = false, true
	r.Session.MessagesInjected = len(front) + len(taken)
	r.Session.TokensEstimate = (size + more + bytesPerToken - 1) / bytesPerToken
	r.Session.LoadedFromDisk = r.Session.LoadedFromDisk || c.from.disk
	before := max(c.from.sess.MessageCount, len(c.from.tail.messages))
	r.Info.PreviousMessageCount += before
	r.Session.PreviousMessageCount += before
	return append(front[:len(front):len(front)], taken...), r
}
