package markdown

import "strings"

// Escape returns text in which no character is markup.
func Escape(text string) string { return escape.Replace(text) }

var escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`)
