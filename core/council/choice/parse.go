package choice

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core/llm/strict"
)

// Bounds of what members and reviewers return.
const (
	MaxReply      = strict.MaxReply
	MaxPoints     = 10      // points of a judge, issues of a reviewer
	MaxPoint      = 500     // bytes of each
	MaxCorrection = 8 << 10 // bytes
)

// ParseRatings reads the reply to a ballot of n answers: a score from 0 to 1 for each
// letter, none missing, none twice.
func ParseRatings(reply string, n int) (map[string]float64, error) {
	var r struct {
		Ratings *[]struct {
			Answer string   `json:"answer"`
			Score  *float64 `json:"score"`
		} `json:"ratings"`
	}
	if err := strict.Decode(reply, &r); err != nil {
		return nil, err
	}
	if r.Ratings == nil {
		return nil, errors.New("ratings: missing")
	}
	out := make(map[string]float64, n)
	for i, x := range *r.Ratings {
		if i >= n {
			return nil, fmt.Errorf("ratings: more than the %d answers", n)
		}
		if len(x.Answer) != 1 || x.Answer[0] < 'A' || int(x.Answer[0]-'A') >= n {
			return nil, fmt.Errorf("ratings[%d].answer: must be a letter from A to %s", i, Letter(n-1))
		}
		if _, twice := out[x.Answer]; twice {
			return nil, fmt.Errorf("ratings[%d].answer: %s is rated twice", i, x.Answer)
		}
		if x.Score == nil || !(*x.Score >= 0 && *x.Score <= 1) {
			return nil, fmt.Errorf("ratings[%d].score: must be from 0 to 1", i)
		}
		out[x.Answer] = *x.Score
	}
	if len(out) < n {
		return nil, fmt.Errorf("ratings: %d of %d answers are rated", len(out), n)
	}
	return out, nil
}

// Verdicts of a judge.
const (
	VerdictAgree         = "agree"
	VerdictComplementary = "complementary"
	VerdictContradict    = "contradict"
)

// A Verdict is a judge's comparison of answers.
type Verdict struct {
	Verdict string   `json:"verdict"`
	Points  []string `json:"points"`
	Pairs   [][2]int `json:"-"` // of answers, by letter from 0, that contradict each other
}

// ParseVerdict reads a judge's reply about n answers. A contradiction names the pairs
// of answers that it is between; of two answers that is known without it.
func ParseVerdict(reply string, n int) (Verdict, error) {
	var r struct {
		Verdict string   `json:"verdict"`
		Pairs   []string `json:"pairs"`
		Points  []string `json:"points"`
	}
	if err := strict.Decode(reply, &r); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Verdict: r.Verdict, Points: bounded(r.Points)}
	for i, name := range r.Pairs {
		p, ok := pair(name, n)
		if !ok || i >= n*n {
			return Verdict{}, fmt.Errorf("pairs[%d]: must be two letters from A to %s, such as A-B", i, Letter(n-1))
		}
		v.Pairs = append(v.Pairs, p)
	}
	switch v.Verdict {
	case VerdictContradict:
		if len(v.Pairs) == 0 && n == 2 {
			v.Pairs = [][2]int{{0, 1}}
		}
		if len(v.Pairs) == 0 {
			return Verdict{}, errors.New("pairs: name each pair of answers that contradict each other")
		}
	case VerdictAgree, VerdictComplementary:
		if len(v.Pairs) > 0 {
			return Verdict{}, fmt.Errorf("pairs: must be empty where the verdict is %s", v.Verdict)
		}
	default:
		return Verdict{}, errors.New("verdict: must be agree, complementary or contradict")
	}
	return v, nil
}

// pair reads two different letters of n that stand alone, in either case, whatever is between
// them: "A-B", "a – b", "answer-A-answer-B".
func pair(name string, n int) (p [2]int, ok bool) {
	found := 0
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(word) != 1 {
			continue
		}
		if found++; found > 2 {
			return p, false
		}
		p[found-1] = int(word[0]&^0x20) - 'A'
	}
	return p, found == 2 && p[0] != p[1] && min(p[0], p[1]) >= 0 && max(p[0], p[1]) < n
}

// Verdicts of a reviewer. Unreviewed is of an answer whose reviewer returned none.
const (
	ReviewCorrect   = "correct"
	ReviewIncorrect = "incorrect"
	ReviewPartially = "partially_correct"
	Unreviewed      = "unreviewed"
)

// A Review is what a reviewer found in an answer.
type Review struct {
	Verdict    string   `json:"verdict"`
	Issues     []string `json:"issues"`
	Correction string   `json:"correction"`
}

// ParseReview reads a reviewer's reply.
func ParseReview(reply string) (Review, error) {
	var r Review
	if err := strict.Decode(reply, &r); err != nil {
		return Review{}, err
	}
	switch r.Verdict {
	case ReviewCorrect, ReviewIncorrect, ReviewPartially:
	default:
		return Review{}, errors.New("verdict: must be correct, incorrect or partially_correct")
	}
	r.Issues = bounded(r.Issues)
	r.Correction = cut(r.Correction, MaxCorrection)
	return r, nil
}

// Verdicts on whether an answer follows a wish.
const (
	WishFollowed = "followed"
	WishBroken   = "not_followed"
	WishNoMatter = "does_not_apply"
)

// ParseWishes reads the reply about n wishes: a verdict for each number from 1, none
// missing, none twice. The result has them in the order of the numbers.
func ParseWishes(reply string, n int) ([]string, error) {
	var r struct {
		Wishes []struct {
			Wish    int    `json:"wish"`
			Verdict string `json:"verdict"`
		} `json:"wishes"`
	}
	if err := strict.Decode(reply, &r); err != nil {
		return nil, err
	}
	if len(r.Wishes) != n {
		return nil, fmt.Errorf("wishes: %d of %d have a verdict", len(r.Wishes), n)
	}
	out := make([]string, n)
	for i, x := range r.Wishes {
		if x.Wish < 1 || x.Wish > n || out[x.Wish-1] != "" {
			return nil, fmt.Errorf("wishes[%d].wish: must be a number from 1 to %d, each once", i, n)
		}
		switch x.Verdict {
		case WishFollowed, WishBroken, WishNoMatter:
			out[x.Wish-1] = x.Verdict
		default:
			return nil, fmt.Errorf("wishes[%d].verdict: must be followed, not_followed or does_not_apply", i)
		}
	}
	return out, nil
}

// Objects reports whether the majority of the reviews finds the answer incorrect.
// Reviews without a verdict do not count; at a tie no one objects.
func Objects(reviews []Review) bool {
	against, in := 0, 0
	for _, r := range reviews {
		switch r.Verdict {
		case ReviewIncorrect:
			against++
		case ReviewCorrect, ReviewPartially:
			in++
		}
	}
	return against > in
}

// A Report is what a member states of its own answer.
type Report struct {
	Confidence float64 `json:"confidence"` // from 0 to 1
	Domain     string  `json:"domain"`     // in its own words, at most MaxDomainName bytes
}

// MaxDomainName bounds the domain of a report, in bytes.
const MaxDomainName = 80

// ReportInstruction asks a member for a report, as the last part of its prompt.
const ReportInstruction = `End your answer with one line of this form and nothing after it. The line is removed before the answer is shown.
REPORT: {"confidence": 0.0, "domain": "topic"}
confidence is the probability from 0 to 1 that your answer is right. domain is its topic in one to three English words, from general to special, separated by dots, such as code.python or medical.dosage.`

// SplitReport returns an answer without its last line if that is a report, and the
// report. A line that begins like one and is not valid is removed, too.
func SplitReport(answer string) (text string, r Report, ok bool) {
	trimmed := strings.TrimRight(answer, " \t\r\n`")
	start := strings.LastIndexByte(trimmed, '\n') + 1
	rest, is := strings.CutPrefix(strings.TrimSpace(trimmed[start:]), "REPORT:")
	if !is {
		return answer, Report{}, false
	}
	text = strings.TrimRight(trimmed[:start], " \t\r\n")
	if fenced, ok := strings.CutSuffix(text, "\n```"); ok && strings.Count(text, "```")%2 == 1 { // the fence of the report
		text = strings.TrimRight(fenced, " \t\r\n")
	}
	var in struct {
		Confidence *float64 `json:"confidence"`
		Domain     string   `json:"domain"`
	}
	if err := strict.Decode(rest, &in); err != nil || in.Confidence == nil || !(*in.Confidence >= 0 && *in.Confidence <= 1) {
		return text, Report{}, false
	}
	return text, Report{Confidence: *in.Confidence, Domain: topic(in.Domain)}, true
}

// Bounds of a topic, so that hardly more than a topic fits in.
const (
	maxTopicWords  = 4
	maxTopicWord   = 24 // characters
	maxTopicDigits = 2  // of a word
)

// topic returns the name of a domain if it is of the form that a report has: a few words.
// Names of domains are stored as they are and are the same for all users, so nothing else
// of a conversation may be in one.
func topic(name string) string {
	name = strings.TrimSpace(name)
	if len(name) > MaxDomainName || strings.ContainsFunc(name, func(r rune) bool { return !inTopic(r) && !strings.ContainsRune(" ./&_-", r) }) {
		return ""
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return !inTopic(r) })
	for _, w := range words {
		digits := 0
		for _, r := range w {
			if unicode.IsDigit(r) {
				digits++
			}
		}
		if utf8.RuneCountInString(w) > maxTopicWord || digits > maxTopicDigits {
			return ""
		}
	}
	if len(words) > maxTopicWords {
		return ""
	}
	return name
}

func inTopic(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' || r == '#' }

// bounded returns the texts that are not empty, within the bounds.
func bounded(texts []string) []string {
	out := []string{}
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" && len(out) < MaxPoints {
			out = append(out, cut(t, MaxPoint))
		}
	}
	return out
}

// cut returns the beginning of a text, at most n bytes in whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
