// Package scripted has the models of the demo's council. Each has a prepared answer to
// the same questions; on one they contradict each other, on the other they agree. They
// compare, rate and review answers by the claim that decides a question.
package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Provider is the name of the models' provider.
const Provider = "scripted"

// A model is one member of the council. Prices are invented, in USD per million tokens.
type model struct {
	name          string
	think         time.Duration // until its first word
	confidence    float64       // that it reports
	input, output float64
}

func models() []model {
	return []model{{"birch", 300 * time.Millisecond, 0.8, 1, 4}, {"maple", 700 * time.Millisecond, 0.9, 3, 12}, {"oak", 1200 * time.Millisecond, 0.85, 2, 8}}
}

// A prepared question with the answer of each model.
type prepared struct {
	text   string
	domain string
	about  string            // what the answers may differ in
	says   map[string]answer // by model
}

type answer struct{ text, claim string }

func questions() []prepared {
	return []prepared{
		{text: "In which year did tea first come to Europe?", domain: "history", about: "year", says: map[string]answer{
			"birch": {"Tea first came to Europe in 1610, on a ship of the Dutch East India Company.", "1610"},
			"maple": {"Tea first came to Europe in 1610, when the Dutch East India Company brought it to Amsterdam.", "1610"},
			"oak":   {"Tea first came to Europe in 1606, on a ship of the Dutch East India Company from Java.", "1606"},
		}},
		{text: "At what temperature does water boil at sea level?", domain: "science.physics", about: "temperature", says: map[string]answer{
			"birch": {"At sea level water boils at 100 °C.", "100 °C"},
			"maple": {"Water boils at 100 °C at sea level; on a mountain it boils earlier.", "100 °C"},
			"oak":   {"At sea level water boils at 100 °C, because of the pressure of the air there.", "100 °C"},
		}},
	}
}

// Questions returns the prepared questions: a disputed one, then one that all models
// answer the same.
func Questions() (texts []string) {
	for _, q := range questions() {
		texts = append(texts, q.text)
	}
	return texts
}

// Members returns the models' names, as GATEHOUSE_COUNCIL has them.
func Members() (names []string) {
	for _, m := range models() {
		names = append(names, Provider+"/"+m.name)
	}
	return names
}

// Providers returns the content of GATEHOUSE_PROVIDERS_FILE that has the models at
// this base URL. It does not list them: they are members of the council only.
func Providers(baseURL string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The scripted models of gatehouse demo, which writes this file at each start.\nproviders:\n  - {name: %s, kind: openai, base_url: %q}\nprices:\n", Provider, baseURL)
	for _, m := range models() {
		fmt.Fprintf(&b, "  %s/%s: {input: %v, output: %v}\n", Provider, m.name, m.input, m.output)
	}
	return b.String()
}

// find returns the prepared question that is in a text.
func find(text string) (prepared, bool) {
	text = folded(text)
	for _, q := range questions() {
		if strings.Contains(text, folded(q.text)) {
			return q, true
		}
	}
	return prepared{}, false
}

// folded returns the words of a text in lower case, between blanks.
func folded(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return " " + strings.Join(words, " ") + " "
}

// answerTo returns the answer of m to text, with its report.
func (m model) answerTo(text string) string {
	q, ok := find(text)
	said, domain := q.says[m.name].text, q.domain
	if !ok {
		said, domain = "I am a scripted model of the demo and know the answers to these questions only:\n\n- "+strings.Join(Questions(), "\n- "), "general"
	}
	return fmt.Sprintf("%s\nREPORT: {\"confidence\": %v, \"domain\": %q}", said, m.confidence, domain)
}

// quoted finds answers in a request to compare, rate or review some.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<answer-(?:([A-Z])-)?[0-9a-f]+>\n(.*?)\n</answer-`)
})

// judge returns the reply to a request of that format: JSON as the council expects it.
func (m model) judge(format, text string) (string, error) {
	q, _ := find(text)
	own := q.says[m.name].claim
	found := quoted().FindAllStringSubmatch(text, -1)
	var reply any
	switch format {
	case "verdict":
		reply = q.compare(found)
	case "ratings":
		list := []rating{}
		for _, a := range found {
			score := 0.2
			if strings.Contains(a[2], own) {
				score = 0.9
			}
			list = append(list, rating{a[1], score})
		}
		reply = map[string]any{"ratings": list}
	case "review":
		r := review{Verdict: "correct", Issues: []string{}}
		if len(found) > 0 && !strings.Contains(found[0][2], own) {
			r = review{"incorrect", []string{fmt.Sprintf("The %s is wrong; it should be %s", q.about, own)}, q.says[m.name].text}
		}
		reply = r
	default:
		return "", fmt.Errorf("the format %q is not known", format)
	}
	b, err := json.Marshal(reply)
	return string(b), err
}

type rating struct {
	Answer string  `json:"answer"`
	Score  float64 `json:"score"`
}

type review struct {
	Verdict    string   `json:"verdict"`
	Issues     []string `json:"issues"`
	Correction string   `json:"correction"`
}

type verdict struct {
	Verdict string   `json:"verdict"`
	Pairs   []string `json:"pairs"`
	Points  []string `json:"points"`
}

// compare finds which claims are in the answers.
func (q prepared) compare(found [][]string) verdict {
	var claims []string
	of := make([]string, len(found)) // the claim of each answer
	for _, a := range q.says {
		for i, f := range found {
			if strings.Contains(f[2], a.claim) {
				of[i] = a.claim
			}
		}
	}
	v := verdict{"agree", []string{}, []string{}}
	for i, claim := range of {
		if claim == "" {
			continue
		}
		for j := range i {
			if of[j] != "" && of[j] != claim {
				v.Verdict, v.Pairs = "contradict", append(v.Pairs, found[j][1]+"-"+found[i][1])
			}
		}
		if !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	if slices.Sort(claims); len(claims) > 1 {
		v.Points = append(v.Points, fmt.Sprintf("They differ in the %s: %s.", q.about, strings.Join(claims, " or ")))
	}
	return v
}
