// Package halt has the form in which the stop of a turn is stored with its messages: the session of
// the turn, and why it was stopped.
package halt

import "strings"

// A Cause is why a turn was stopped.
type Cause string

const (
	Aborted     Cause = ""
	Interrupted Cause = " interrupted" // by its sender's next message
)

// Text returns what is stored.
func Text(session string, why Cause) string { return session + string(why) }

// Of reports whether text, which is stored or "", stops a turn of session, and why.
func Of(text, session string) (why Cause, stops bool) {
	rest, ok := strings.CutPrefix(text, session)
	why = Cause(rest)
	return why, ok && session != "" && (why == Aborted || why == Interrupted)
}
