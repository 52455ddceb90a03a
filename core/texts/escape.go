package texts

import "strings"

// Escape returns a text of a user, or another part that is no Markdown, as Markdown in which
// no character is markup.
func Escape(text string) string { return escape.Replace(text) }

var escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`)
