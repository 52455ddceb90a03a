// Package check compiles what a user wants of answers into checks that a program can
// do: words that an answer must or must not contain, its language, its length, its format.
// It is pure.
package check

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/memory/detect"
)

// A Kind is what a check is about.
type Kind string

// Kinds of checks.
const (
	Contain    Kind = "contain"
	NotContain Kind = "not_contain"
	Language   Kind = "language"
	Length     Kind = "length"
	Format     Kind = "format"
)

// A Check is one condition on an answer.
type Check struct {
	Kind  Kind
	Value string // words, a language's code, a unit, or a format
	Limit int    // of Length
}

// Topic names what c decides: two corrections that decide the same differently are in
// conflict. It is "" for checks of words, of which there may be many.
func (c *Check) Topic() string {
	switch c.Kind {
	case Language:
		return "language"
	case Length:
		return "length"
	case Format:
		return "format " + strings.TrimPrefix(c.Value, "no ")
	}
	return ""
}

// Differ reports whether two corrections with these checks decide the same differently.
func Differ(a, b []Check) bool {
	decided := map[string]Check{} // at most the checks of one text
	for _, k := range a {
		decided[k.Topic()] = k
	}
	for _, k := range b {
		if mine, ok := decided[k.Topic()]; ok && k.Topic() != "" && mine != k {
			return true
		}
	}
	return false
}

// maxChecks bounds the checks of one text.
const maxChecks = 6

const quoted = `["'„“”‚‘’»«` + "`" + `]([^"'„“”‚‘’»«` + "`" + `\n]{1,60})["'„“”‚‘’»«` + "`" + `]`

var (
	language = core.Pattern(`\b(?:answers?|answering|reply|replies|respond|responses?|write|writing|speak|talk|antworte|antworten|antwort|schreib|schreibe|sprich|rede)\b.{0,40}?\b(?:in|auf)\s+(english|british english|american english|german|french|spanish|italian|portuguese|dutch|englisch|deutsch|franzoesisch|spanisch|italienisch|portugiesisch|niederlaendisch)\b`)
	length   = core.Pattern(`\b(?:under|below|at most|max(?:imum|imal)?(?: of)?|no more than|not more than|fewer than|less than|up to|within|only|unter|hoechstens|nicht mehr als|weniger als|nur|bis zu)\s+(\d{1,4}|one|two|three|four|five|six|ten|einem|einen|ein|zwei|drei|vier|fuenf|sechs|zehn)\s+(words?|sentences?|lines?|characters?|paragraphs?|woerter|worten|worte|saetze|saetzen|satz|zeilen?|zeichen|absaetze|absaetzen)\b`)
	lengthy  = core.Pattern(`\b(?:short(?:er|ly)?|brief(?:er|ly)?|concise(?:ly)?|terse(?:ly)?|succinct(?:ly)?|long(?:er)?|length|lengthy|verbose|detail(?:s|ed)?|summar(?:y|ies|ize|ise)|words?|sentences?|lines?|characters?|paragraphs?|kurz\w*|kuerz\w*|knapp\w*|buendig\w*|lang|lange|langen|laenger\w*|laenge|ausfuehrlich\w*|weitschweifig\w*|woerter|worte|worten|satz|saetze|saetzen|zeilen?|zeichen|absatz|absaetze|absaetzen)\b`)
	never    = core.Pattern(`\b(?:no|never|not|don't|do not|stop|avoid|without|hate|dislike|quit|kein|keine|keinen|nie|niemals|nicht|ohne|vermeide|verzichte|hasse|lass)\b`)
	avoid    = core.Pattern(`(?i)\b(?:never|don't|do not|stop|avoid|not|nie|niemals|nicht|vermeide|kein|keine|statt|anstatt|instead of|rather than)\b[^.!?\n]{0,40}?` + quoted)
	include  = core.Pattern(`(?i)\b(?:always (?:say|write|use|include|add|mention|end with|start with|sign with|begin with|close with)|sign (?:\w+ ){0,3}with|end (?:\w+ ){0,3}with|(?:schreib|schreibe|nenne|sag|verwende|nutze|beende|beginne|ende|unterschreibe)\b[^.!?\n"„“]{0,30}\b(?:immer|stets)|immer)\b[^.!?\n]{0,30}?` + quoted)
)

var codes = map[string]string{"english": "en", "british english": "en", "american english": "en", "englisch": "en", "german": "de", "deutsch": "de", "french": "fr", "franzoesisch": "fr",
	"spanish": "es", "spanisch": "es", "italian": "it", "italienisch": "it", "portuguese": "pt", "portugiesisch": "pt", "dutch": "nl", "niederlaendisch": "nl"}

var numbers = map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "ein": 1, "einen": 1, "einem": 1, "zwei": 2, "drei": 3, "vier": 4, "fuenf": 5, "sechs": 6, "zehn": 10}

// units are the units of lengths, by how their names begin.
var units = []struct{ prefix, unit string }{
	{"word", "words"}, {"woerter", "words"}, {"wort", "words"}, {"sentence", "sentences"}, {"satz", "sentences"}, {"saetz", "sentences"}, {"line", "lines"}, {"zeile", "lines"},
	{"character", "characters"}, {"zeichen", "characters"}, {"paragraph", "paragraphs"}, {"absaetz", "paragraphs"},
}

// formats are what answers can be without, by the words that name them.
var formats = []struct {
	names func() *regexp.Regexp
	value string
}{
	{core.Pattern(`\b(?:emojis?|smileys?|smilies)\b`), "no emojis"},
	{core.Pattern(`\b(?:bullet(?:s| ?points?| lists?)?|bulleted lists?|aufzaehlungen|aufzaehlung|stichpunkte|aufzaehlungszeichen)\b`), "no bullets"},
	{core.Pattern(`\b(?:tables?|tabellen?)\b`), "no tables"},
	{core.Pattern(`\b(?:headings?|headlines?|headers|ueberschriften|ueberschrift)\b`), "no headings"},
	{core.Pattern(`\b(?:exclamation marks?|ausrufezeichen)\b`), "no exclamation marks"},
	{core.Pattern(`\b(?:bold|bold text|fettschrift|fettdruck)\b`), "no bold"},
}

// Conditional reports whether a text applies only where its condition is met, as in "when
// you write code".
func Conditional(text string) bool {
	return condition().MatchString(scope().ReplaceAllString(detect.Fold(text), ""))
}

// scope are words that say where a text applies, which is known apart from it.
var scope = core.Pattern(`\b(?:in|for|fuer) (?:this|our|diesem|dieser|diesen|diese|dieses|unserem) (?:chat|conversation|thread|session|project|repo|gespraech|unterhaltung|projekt)\b`)

var condition = core.Pattern(`\b(?:when|whenever|if|unless|for|in (?:code|emails?|letters?|python|go|sql|javascript|this|our|my)|every time|wenn|falls|sobald|fuer|ausser|in (?:mails?|briefen|code|python|diesem|unserem|meinem)|beim?)\b`)

// Compile returns the checks of a text; none for one that only a reader could judge. A text
// with a condition has none: the condition is not known here.
func Compile(text string) []Check {
	folded := detect.Fold(text)
	if Conditional(text) {
		return nil
	}
	var out []Check
	if m := language().FindStringSubmatch(folded); m != nil && !never().MatchString(folded) {
		out = append(out, Check{Kind: Language, Value: codes[m[1]]})
	}
	if m := length().FindStringSubmatch(folded); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			n = numbers[m[1]]
		}
		for _, u := range units {
			if strings.HasPrefix(m[2], u.prefix) && n > 0 {
				out = append(out, Check{Kind: Length, Value: u.unit, Limit: n})
				break
			}
		}
	}
	if never().MatchString(folded) {
		for _, f := range formats {
			if f.names().MatchString(folded) {
				out = append(out, Check{Kind: Format, Value: f.value})
			}
		}
	}
	out = append(out, words(text)...)
	return out[:min(len(out), maxChecks)]
}

// Lengthy reports whether a text is about how long answers are.
func Lengthy(text string) bool { return lengthy().MatchString(detect.Fold(text)) }

// words returns the checks for words in quotation marks.
func words(text string) (out []Check) {
	kind, match := Contain, include
	if avoid().MatchString(text) {
		kind, match = NotContain, avoid
	}
	for _, m := range match().FindAllStringSubmatch(text, maxChecks) {
		if w := strings.TrimSpace(m[1]); w != "" {
			out = append(out, Check{Kind: kind, Value: w})
		}
	}
	return out
}

// Met reports whether an answer in Markdown meets c. Code blocks do not count.
func (c *Check) Met(answer string) bool {
	text := prose(answer)
	switch c.Kind {
	case Contain:
		return has(text, c.Value)
	case NotContain:
		return !has(text, c.Value)
	case Language:
		is := languageOf(text)
		return is == "" || is == c.Value
	case Length:
		return measure(text, c.Value) <= c.Limit
	}
	return !formatted(text, c.Value)
}

// Broken returns the checks that an answer does not meet.
func Broken(checks []Check, answer string) (out []Check) {
	for i := range checks {
		if !checks[i].Met(answer) {
			out = append(out, checks[i])
		}
	}
	return out
}

// has reports whether text contains words, in any case, not as a part of another word.
func has(text, words string) bool {
	text, words = strings.ToLower(text), strings.ToLower(words)
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(words)
		if !joins(text[:start], words, true) && !joins(text[end:], words, false) {
			return true
		}
		at = end
	}
}

// joins reports whether a neighbour continues a word.
func joins(beside, words string, before bool) bool {
	if beside == "" || words == "" {
		return false
	}
	near, edge := utf8.DecodeRuneInString, utf8.DecodeLastRuneInString
	if before {
		near, edge = edge, near
	}
	a, _ := near(beside)
	b, _ := edge(words)
	return wordy(a) && wordy(b)
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// prose returns an answer without code blocks.
func prose(answer string) string {
	var b strings.Builder
	code := false
	for line := range strings.SplitSeq(answer, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// measure returns how long a text is in a unit.
func measure(text, unit string) (n int) {
	switch unit {
	case "words":
		return len(strings.Fields(text))
	case "characters":
		return len([]rune(text))
	case "lines", "paragraphs":
		gap := true
		for line := range strings.SplitSeq(text, "\n") {
			blank := strings.TrimSpace(line) == ""
			if !blank && (unit == "lines" || gap) {
				n++
			}
			gap = blank
		}
		return n
	}
	open := false
	for _, r := range text + "\n" {
		switch {
		case wordy(r):
			open = true
		case open && (r == '.' || r == '!' || r == '?' || r == '\n'):
			n, open = n+1, false
		}
	}
	return n
}

var (
	bullet  = core.Pattern(`(?m)^\s*[-*+•]\s+\S`)
	table   = core.Pattern(`(?m)^\s*\|?\s*:?-{3,}:?\s*\|`)
	heading = core.Pattern(`(?m)^#{1,6}\s`)
	bold    = core.Pattern(`\*\*[^*\n]+\*\*`)
)

// formatted reports whether a text has what a format excludes.
func formatted(text, format string) bool {
	switch format {
	case "no emojis":
		return strings.ContainsFunc(text, emoji)
	case "no bullets":
		return bullet().MatchString(text)
	case "no tables":
		return table().MatchString(text)
	case "no headings":
		return heading().MatchString(text)
	case "no exclamation marks":
		return strings.Contains(text, "!")
	}
	return bold().MatchString(text)
}

func emoji(r rune) bool {
	return r >= 0x1F300 && r <= 0x1FAFF || r >= 0x2600 && r <= 0x27BF || r >= 0x1F1E6 && r <= 0x1F1FF
}

// small are frequent words by language; a text's language is that of most of its words.
var small = map[string][]string{
	"en": {"the", "and", "is", "of", "to", "in", "that", "it", "for", "with", "was", "are", "this", "you", "not", "have", "be", "on", "by", "from"},
	"de": {"der", "die", "das", "und", "ist", "nicht", "ein", "eine", "zu", "mit", "den", "von", "sie", "es", "ich", "auf", "fuer", "dem", "sich", "auch"},
	"fr": {"le", "la", "les", "et", "est", "des", "une", "un", "dans", "que", "pour", "pas", "vous", "sur", "avec", "ce", "il", "du", "au", "sont"},
	"es": {"el", "los", "las", "y", "es", "una", "por", "para", "con", "no", "del", "se", "lo", "como", "su", "al", "pero", "este", "muy", "son"},
	"it": {"il", "lo", "gli", "e", "un", "una", "per", "non", "con", "del", "della", "che", "sono", "di", "ma", "si", "anche", "nel", "questo", "come"},
	"pt": {"o", "os", "as", "e", "uma", "um", "para", "com", "do", "da", "em", "que", "por", "mais", "como", "mas", "ao", "isso", "foi", "seu"},
	"nl": {"het", "een", "en", "van", "is", "dat", "op", "te", "zijn", "voor", "met", "niet", "aan", "er", "om", "ook", "als", "bij", "maar", "deze"},
}

// languageOf returns the code of the language that a text is in, "" where that is not
// certain: a text has at least three of its frequent words, and twice as many as of the next.
func languageOf(text string) string {
	counts := map[string]int{} // by word, of at most 400
	n := 0
	for w := range strings.FieldsFuncSeq(detect.Fold(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[w]++
		if n++; n == 400 {
			break
		}
	}
	best, most, next := "", 0, 0
	for _, code := range []string{"en", "de", "fr", "es", "it", "pt", "nl"} {
		found := 0
		for _, w := range small[code] {
			found += counts[w]
		}
		switch {
		case found > most:
			best, most, next = code, found, most
		case found > next:
			next = found
		}
	}
	if most < 3 || most < 2*next {
		return ""
	}
	return best
}
