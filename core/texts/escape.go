package texts

import (
	"strings"

	"gatehouse/core"
)

// Escape returns a text of a user, or another part that is no Markdown, as Markdown in which
// no character is markup.
func Escape(text string) string { return escape.Replace(text) }

var escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`)

// maxExcerpt limits an Excerpt, in characters.
const maxExcerpt = 40

// Excerpt returns what an answer repeats of a user's text: cleaned, cut and escaped for Markdown.
func Excerpt(s string) string { return Escape(core.CutRunes(core.CleanName(s), maxExcerpt)) }

// Plain returns a name or text of a user, cleaned and escaped for Markdown; "somebody" where
// nothing is left.
func Plain(s string) string {
	if s = core.CleanName(s); s == "" {
		return Text("somebody")
	}
	return Escape(s)
}
