package claims

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// A value is a number, half of its last digit, and how else it may be read: 2.962 is
// two thousand and some in German; 0 is no other way.
type value struct{ of, half, other float64 }

// An answer is a text that was read for its claims.
type answer struct {
	folded    string             // in lower case, blanks joined
	polarity  int                // 1 yes, -1 no, 0 neither
	numbers   map[string][]value // by unit
	dates     map[string][]value // by precision
	names     map[string]bool    // in lower case
	code      string             // formatted
	negations int
	words     int
	counts    map[string]float64 // of the words that are left
	norm      float64
}

// bare reports whether the text is hardly more than its claim.
func (a *answer) bare() bool { return a.words <= 4 }

var (
	fence    = core.Pattern("(?s)```[^\n]*\n(.*?)```")
	markup   = core.Pattern("[*_`#>|]+")
	clean    = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "’", "'", "–", "-", "−", "-", "½", ".5", "\u200b", "")
	wordForm = core.Pattern(`[\p{L}\p{N}][\p{L}\p{N}'’_-]*`)
)

// read reads a text.
func read(text string) answer {
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "")
	}
	text = strings.ToValidUTF8(text, "")
	var a answer
	var code strings.Builder
	text = fence().ReplaceAllStringFunc(text, func(block string) string {
		code.WriteString(formatted(fence().FindStringSubmatch(block)[1]))
		return "\n"
	})
	a.code = code.String()
	text = clean.Replace(markup().ReplaceAllString(text, " "))
	a.folded = strings.ToLower(strings.Join(strings.Fields(text), " ")) + a.code
	a.polarity = polarity(a.folded)
	text, a.dates = dates(text)
	text, a.numbers = numbers(text)
	a.names = names(text)
	a.counts = map[string]float64{}
	for _, w := range wordForm().FindAllString(text, maxWords) {
		a.words++
		w = strings.ToLower(strings.Trim(w, "'_-"))
		if negations[w] || strings.HasSuffix(w, "n't") {
			a.negations++
			continue
		}
		if !fillers[w] && w != "" && !a.names[w] {
			a.counts[stem(w)]++
		}
	}
	return a
}

// formatted returns code with blanks and empty lines made uniform.
func formatted(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "# ") {
			continue
		}
		var last rune
		space := false
		for _, r := range line {
			if unicode.IsSpace(r) {
				space = true
				continue
			}
			if space && inWord(last) && inWord(r) {
				b.WriteByte(' ')
			}
			b.WriteRune(r)
			last, space = r, false
		}
		b.WriteByte('\n')
	}
	return strings.ReplaceAll(b.String(), "'", `"`)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// stem takes off endings, so that forms of a word meet.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "en", "er", "em", "s", "e", "n"} {
		if rest, ok := strings.CutSuffix(w, end); ok && utf8.RuneCountInString(rest) >= 4 {
			return rest
		}
	}
	return w
}

// polarity reads a yes or no at the beginning.
func polarity(folded string) int {
	head := wordForm().FindAllString(folded[:min(len(folded), 80)], 4)
	if len(head) == 0 {
		return 0
	}
	switch head[0] {
	case "yes", "ja", "yep", "yeah", "true", "wahr", "correct", "richtig", "stimmt", "absolutely", "jawohl", "definitely":
		if len(head) > 1 && (head[1] == "and" || head[1] == "und") && len(head) > 2 && (head[2] == "no" || head[2] == "nein") {
			return 0
		}
		if head[0] == "richtig" && len(head) > 1 && head[1] != "das" {
			return 0 // "richtig gut"
		}
		return 1
	case "no", "nein", "nope", "false", "falsch", "incorrect", "untrue":
		if head[0] == "no" && len(folded) > 2 && !strings.ContainsAny(folded[2:3], ".,;:!-") && folded != "no" {
			return 0 // "no one", "no more than"
		}
		return -1
	}
	return 0
}

var number = core.Pattern(`(?i)([$€£]\s?)?(-?\d[\d.,' ]*\d|-?\d|\.\d+)\s?(×\s?10\^?(-?\d+)|%|°\s?[cf]\b|[$€£]|[\p{L}µ²³/]+)?`)

// numbers returns the text without its numbers, and these by unit.
func numbers(text string) (string, map[string][]value) {
	found, n := map[string][]value{}, 0
	text = number().ReplaceAllStringFunc(text, func(all string) string {
		if n >= maxClaims {
			return all
		}
		m := number().FindStringSubmatch(all)
		v, ok := parse(m[2])
		if !ok {
			return all
		}
		n++
		unit, factor, rest := unitOf(strings.TrimSpace(strings.ToLower(m[3])), m[3])
		if m[4] != "" {
			exp, _ := strconv.Atoi(m[4])
			factor = math.Pow(10, float64(max(-300, min(exp, 300))))
		}
		if m[1] != "" {
			unit = strings.TrimSpace(m[1])
		}
		found[unit] = append(found[unit], value{v.of * factor, v.half * factor, v.other * factor})
		return " " + rest + " "
	})
	if n == 0 {
		for _, w := range wordForm().FindAllString(text, 64) {
			if v, ok := numerals[strings.ToLower(w)]; ok && n < 4 {
				found[""] = append(found[""], value{of: v})
				n++
			}
		}
	}
	return text, found
}

// parse reads a number in the English or German way of writing.
func parse(s string) (value, bool) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "'", "")
	dot, comma := strings.Count(s, "."), strings.Count(s, ",")
	other := 0.0
	switch {
	case dot == 1 && comma == 0 && grouped(s, '.'):
		other, _ = strconv.ParseFloat(strings.Replace(s, ".", "", 1), 64)
	case comma == 1 && dot == 0 && grouped(s, ','):
		other, _ = strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	}
	switch {
	case dot > 0 && comma > 0:
		if strings.LastIndexByte(s, '.') > strings.LastIndexByte(s, ',') {
			s = strings.ReplaceAll(s, ",", "")
		} else {
			s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
		}
	case comma > 1 || comma == 1 && grouped(s, ','):
		s = strings.ReplaceAll(s, ",", "")
	case comma == 1:
		s = strings.Replace(s, ",", ".", 1)
	case dot > 1:
		s = strings.ReplaceAll(s, ".", "")
	}
	v, err := strconv.ParseFloat(s, 64)
	half := 0.5
	if _, decimals, ok := strings.Cut(s, "."); ok {
		half = 0.5 * math.Pow10(-len(decimals))
	} else if zeros := len(s) - len(strings.TrimRight(s, "0")); zeros >= 3 && v != 0 {
		half = 0.5 * math.Pow10(zeros)
	}
	return value{v, half, other}, err == nil && !math.IsInf(v, 0)
}

// grouped reports whether three digits follow the separator, and not a zero precedes it.
func grouped(s string, separator byte) bool {
	i := strings.IndexByte(s, separator)
	return len(s)-i-1 == 3 && strings.TrimLeft(s[:i], "-0") != ""
}

// unitOf returns the unit that a word names, its factor, and what is left of the word.
func unitOf(word, original string) (unit string, factor float64, rest string) {
	if scale, ok := scales[word]; ok {
		return "", scale, ""
	}
	if u, ok := units[strings.ReplaceAll(word, " ", "")]; ok {
		return u.name, u.factor, ""
	}
	return "", 1, original
}

var (
	digits4   = core.Pattern(`\d{4}`)
	monthName = core.Pattern(`(?i)\b(?:` + monthNames + `)\b`)

	isoDate  = core.Pattern(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	german   = core.Pattern(`\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b`)
	dayMonth = core.Pattern(`(?i)\b(\d{1,2})(?:\.|st|nd|rd|th)?\s+(?:of\s+)?(` + monthNames + `)\.?,?\s+(\d{4})\b`)
	monthDay = core.Pattern(`(?i)\b(` + monthNames + `)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b`)
	month    = core.Pattern(`(?i)\b(` + monthNames + `)\.?,?\s+(\d{4})\b`)
	year     = core.Pattern(`\b(1[3-9]\d{2}|20\d{2})\b`)
)

const monthNames = `january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|okt|nov|dec|dez`

// dates returns the text without its dates, and these by year, and by day where the
// day is given.
func dates(text string) (string, map[string][]value) {
	found, n := map[string][]value{}, 0
	add := func(y, m, d string) string {
		n++
		yy, _ := strconv.Atoi(y)
		found["year"] = append(found["year"], value{of: float64(yy)})
		if m != "" {
			mm, _ := strconv.Atoi(m)
			if mm == 0 {
				mm = monthOf(m)
			}
			dd, _ := strconv.Atoi(d)
			found["day"] = append(found["day"], value{of: float64(yy*400 + mm*32 + dd)})
		}
		return " "
	}
	if !digits4().MatchString(text) {
		return text, found
	}
	months := monthName().MatchString(text)
	each := func(form *regexp.Regexp, y, m, d int) {
		text = form.ReplaceAllStringFunc(text, func(all string) string {
			g := append(form.FindStringSubmatch(all), "")
			if n >= maxClaims {
				return all
			}
			return add(g[y], g[m], g[d])
		})
	}
	each(isoDate(), 1, 2, 3)
	each(german(), 3, 2, 1)
	if months {
		each(dayMonth(), 3, 2, 1)
		each(monthDay(), 3, 1, 2)
		each(month(), 2, 1, 3)
	}
	for at, end := 0, 0; n < maxClaims; {
		m := year().FindStringIndex(text[end:])
		if m == nil {
			break
		}
		at, end = end+m[0], end+m[1]
		if !measures(text[:at], text[end:]) {
			text = text[:at] + add(text[at:end], "", "") + text[end:]
			end = at + 1
		}
	}
	return text, found
}

// measures reports whether a number between these texts counts something.
func measures(before, after string) bool {
	if strings.HasSuffix(before, ".") || strings.HasSuffix(before, ",") || strings.ContainsAny(before[max(0, len(before)-4):], "$€£") {
		return true
	}
	after = strings.TrimLeft(after[:min(len(after), 40)], " ")
	if after == "" {
		return false
	}
	if strings.ContainsAny(after[:1], "%$") || strings.HasPrefix(after, "€") || strings.HasPrefix(after, "£") || strings.HasPrefix(after, "°") {
		return true
	}
	if (after[0] == '.' || after[0] == ',') && len(after) > 1 && after[1] >= '0' && after[1] <= '9' {
		return true
	}
	word := strings.ToLower(strings.TrimRightFunc(strings.SplitN(after, " ", 2)[0], unicode.IsPunct))
	_, unit := units[word]
	_, scale := scales[word]
	return unit || scale
}

func monthOf(name string) int {
	name = strings.ToLower(name)
	for i, prefix := range []string{"jan", "feb", "mar|mär", "apr", "may|mai", "jun", "jul", "aug", "sep", "oct|okt", "nov", "dec|dez"} {
		for p := range strings.SplitSeq(prefix, "|") {
			if strings.HasPrefix(name, p) {
				return i + 1
			}
		}
	}
	return 0
}

var capital = core.Pattern(`\p{Lu}[\p{L}\p{N}.-]*(?:\s+\p{Lu}[\p{L}\p{N}.-]*)*`)

// names returns what is written with a capital, in lower case, without words that only
// begin a sentence.
func names(text string) map[string]bool {
	found := map[string]bool{}
	for _, at := range capital().FindAllStringIndex(text, maxClaims) {
		name := text[at[0]:at[1]]
		before := strings.TrimRight(text[:at[0]], " \t")
		starts := before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:\n")
		parts := strings.Fields(strings.ToLower(name))
		for len(parts) > 0 && (fillers[strings.Trim(parts[0], ".")] || negations[parts[0]] || answers[parts[0]]) {
			parts, starts = parts[1:], false
		}
		if len(parts) == 0 || starts && len(parts) == 1 && len(strings.Fields(text)) > 3 && !strings.ContainsAny(name[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !subject(text[at[1]:]) {
			continue
		}
		found[strings.Trim(strings.Join(parts, " "), ".-")] = true
	}
	return found
}

// subject reports whether what follows a capitalised word makes it a name at the
// beginning of a sentence: "Paris is the …".
func subject(after string) bool {
	words := wordForm().FindAllString(after[:min(len(after), 24)], 1)
	return len(words) == 1 && verbs[strings.ToLower(words[0])]
}

// weigh turns the counts of words into TF-IDF over the answers and the question.
func weigh(asked *answer, answers []answer) {
	df := map[string]float64{}
	for w := range asked.counts {
		df[w]++
	}
	for i := range answers {
		for w := range answers[i].counts {
			df[w]++
		}
	}
	n := float64(len(answers) + 1)
	for i := range answers {
		a := &answers[i]
		sum := 0.0
		for w, c := range a.counts {
			v := (1 + math.Log(c)) * (math.Log((n+1)/(df[w]+1)) + 1)
			a.counts[w] = v
			sum += v * v
		}
		a.norm = math.Sqrt(sum)
	}
}

// cosine returns the similarity of the words of two answers, to nine digits: the order
// in which a map is added up decides nothing.
func cosine(a, b *answer) float64 {
	if a.norm == 0 || b.norm == 0 {
		return 0
	}
	dot := 0.0
	for w, v := range a.counts {
		dot += v * b.counts[w]
	}
	return min(math.Round(dot/(a.norm*b.norm)*1e9)/1e9, 1)
}
