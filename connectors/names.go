package connectors

import "strings"

var inAddresses = strings.NewReplacer(".", "\u2024", ":", "\ua789", "\u3002", "\u2024", "\uff0e", "\u2024", "\uff61", "\u2024")

// NoAddress returns a name that a message mentions so that it names no host or address of the
// web: its dots and colons are others that look alike, each of one UTF-16 unit. Who mentions a
// user or a channel has not chosen its name, and what users write opens hosts to models.
func NoAddress(name string) string { return inAddresses.Replace(name) }
