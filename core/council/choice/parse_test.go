package choice

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRatingsAreReadOnlyWhenEveryAnswerHasOneFromZeroToOne(t *testing.T) {
	got, err := ParseRatings("```json\n{\"ratings\":[{\"answer\":\"B\",\"score\":0},{\"answer\":\"A\",\"score\":0.25}]}\n```", 2)
	if err != nil || got["A"] != 0.25 || got["B"] != 0 || len(got) != 2 {
		t.Fatal(got, err)
	}
	for name, reply := range map[string]string{
		"empty": "", "text": "A is best", "an array": "[]", "no ratings": "{}",
		"one missing":   `{"ratings":[{"answer":"A","score":1}]}`,
		"one twice":     `{"ratings":[{"answer":"A","score":1},{"answer":"A","score":0}]}`,
		"a stranger":    `{"ratings":[{"answer":"A","score":1},{"answer":"C","score":0}]}`,
		"too many":      `{"ratings":[{"answer":"A","score":1},{"answer":"B","score":0},{"answer":"B","score":0}]}`,
		"above one":     `{"ratings":[{"answer":"A","score":1.5},{"answer":"B","score":0}]}`,
		"no score":      `{"ratings":[{"answer":"A"},{"answer":"B","score":0}]}`,
		"a text":        `{"ratings":[{"answer":"A","score":"1"},{"answer":"B","score":0}]}`,
		"a field more":  `{"ratings":[{"answer":"A","score":1},{"answer":"B","score":0}],"winner":"A"}`,
		"a name twice":  `{"ratings":[],"ratings":[{"answer":"A","score":1},{"answer":"B","score":0}]}`,
		"another case":  `{"ratings":[],"Ratings":[{"answer":"A","score":1},{"answer":"B","score":0}]}`,
		"text after it": `{"ratings":[{"answer":"A","score":1},{"answer":"B","score":0}]} {}`,
		"five megabyte": `{"ratings":[` + strings.Repeat(" ", 5<<20) + `]}`,
		"deep":          strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
	} {
		if got, err := ParseRatings(reply, 2); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestVerdictsAndReviewsAreReadWithinTheirBounds(t *testing.T) {
	v, err := ParseVerdict(`{"verdict":"contradict","points":["", "`+strings.Repeat("ä", 1000)+`","b"]}`, 2)
	if err != nil || v.Verdict != VerdictContradict || len(v.Points) != 2 || len(v.Points[0]) > MaxPoint {
		t.Error(v, err)
	}
	r, err := ParseReview(`{"verdict":"incorrect","issues":["wrong year"],"correction":"It was 1990."}`)
	if err != nil || r.Verdict != ReviewIncorrect || len(r.Issues) != 1 || r.Correction == "" {
		t.Error(r, err)
	}
	for _, reply := range []string{`{"verdict":"yes","points":[]}`, `{"points":[]}`, `{"verdict":"agree","points":"none"}`} {
		if _, err := ParseVerdict(reply, 2); err == nil {
			t.Error(reply)
		}
	}
	if _, err := ParseReview("The verdict is incorrect."); err == nil {
		t.Error("a review is found in prose")
	}
}

func TestAContradictionNamesThePairsThatItIsBetween(t *testing.T) {
	v, err := ParseVerdict(`{"verdict":"contradict","pairs":["A-C","C-B"],"points":[]}`, 3)
	if err != nil || !slices.Equal(v.Pairs, [][2]int{{0, 2}, {2, 1}}) {
		t.Errorf("%v, %v", v.Pairs, err)
	}
	for _, name := range []string{"A-B", "a-b", "A - B", "A–B", "A, B", "A and B", "answer-A-answer-B", "Answers A vs. B"} {
		if v, err := ParseVerdict(`{"verdict":"contradict","pairs":["`+name+`"],"points":[]}`, 3); err != nil || !slices.Equal(v.Pairs, [][2]int{{0, 1}}) {
			t.Errorf("%s: %v, %v", name, v.Pairs, err)
		}
	}
	if v, err := ParseVerdict(`{"verdict":"contradict","pairs":[],"points":[]}`, 2); err != nil || !slices.Equal(v.Pairs, [][2]int{{0, 1}}) {
		t.Errorf("of two answers: %v, %v", v.Pairs, err)
	}
	for name, reply := range map[string]string{
		"no pair of three":      `{"verdict":"contradict","points":[]}`,
		"a letter that is none": `{"verdict":"contradict","pairs":["A-D"],"points":[]}`,
		"one letter":            `{"verdict":"contradict","pairs":["A-A"],"points":[]}`,
		"no pair of letters":    `{"verdict":"contradict","pairs":["AB"],"points":[]}`,
		"three letters":         `{"verdict":"contradict","pairs":["A-B-C"],"points":[]}`,
		"numbers":               `{"verdict":"contradict","pairs":["1-2"],"points":[]}`,
		"too many":              `{"verdict":"contradict","pairs":["A-B"` + strings.Repeat(`,"A-B"`, 9) + `],"points":[]}`,
		"a pair that agrees":    `{"verdict":"agree","pairs":["A-B"],"points":[]}`,
	} {
		if v, err := ParseVerdict(reply, 3); err == nil {
			t.Errorf("%s: %v", name, v.Pairs)
		}
	}
}

func TestTheMajorityOfReviewsObjects(t *testing.T) {
	of := func(verdicts ...string) (all []Review) {
		for _, v := range verdicts {
			all = append(all, Review{Verdict: v})
		}
		return all
	}
	for _, c := range []struct {
		reviews []Review
		want    bool
	}{
		{of(), false}, {of(ReviewIncorrect), true}, {of(ReviewIncorrect, ReviewCorrect), false},
		{of(ReviewIncorrect, ReviewPartially, ReviewIncorrect), true}, {of(Unreviewed, Unreviewed, ReviewIncorrect), true},
	} {
		if Objects(c.reviews) != c.want {
			t.Errorf("%v", c.reviews)
		}
	}
}

func TestAReportIsTakenOffTheAnswer(t *testing.T) {
	text, r, ok := SplitReport("It is 42.\n\nREPORT: {\"confidence\": 0.8, \"domain\": \"math.numbers\"}\n")
	if !ok || text != "It is 42." || r != (Report{0.8, "math.numbers"}) {
		t.Errorf("%q %+v %v", text, r, ok)
	}
	if text, _, ok := SplitReport("It is 42.\nREPORT: very sure"); ok || text != "It is 42." {
		t.Errorf("%q", text)
	}
	if text, _, ok := SplitReport("See the REPORT: it is long"); ok || text != "See the REPORT: it is long" {
		t.Errorf("%q", text)
	}
}

func TestAReportInACodeFenceLeavesNoFenceInTheAnswer(t *testing.T) {
	report := "REPORT: {\"confidence\": 0.8, \"domain\": \"math\"}"
	if text, _, ok := SplitReport("It is 42.\n```\n" + report + "\n```"); !ok || text != "It is 42." {
		t.Errorf("%q", text)
	}
	if text, _, ok := SplitReport("```\nx := 1\n```\n" + report); !ok || text != "```\nx := 1\n```" {
		t.Errorf("%q", text)
	}
}

// The names of domains are not encrypted, and all users share them.
func TestADomainInAReportIsATopicAndNoText(t *testing.T) {
	for domain, want := range map[string]string{
		"code.python": "code.python", " Data Analysis ": "Data Analysis", "c++": "c++", "medizin.dosis": "medizin.dosis", "web3": "web3",
		"jane@example.org": "", "card 4111111111111111": "", "call 0664123": "", "the user says that he is ill": "", "x: y": "", strings.Repeat("a", 30): "",
	} {
		_, r, ok := SplitReport("x\nREPORT: {\"confidence\": 1, \"domain\": \"" + domain + "\"}")
		if !ok || r.Domain != want {
			t.Errorf("%q: %q", domain, r.Domain)
		}
	}
}

func TestNamesThatADecoderTakesForOneAreRefused(t *testing.T) {
	for _, reply := range []string{
		`{"ratings":[{"answer":"A","score":0.1,"\u017fcore":1}]}`, `{"ratings":[{"answer":"A","score":0.1,"ſcore":1}]}`, `{"ratings":[{"answer":"A","score":0.1,"SCORE":1}]}`,
	} {
		if got, err := ParseRatings(reply, 1); err == nil {
			t.Errorf("%s: %v", reply, got)
		}
	}
}

func TestRepliesBeyondTheBoundsAreRefused(t *testing.T) {
	const fine = `{"verdict":"agree","points":[]}`
	if _, err := ParseVerdict(fine, 2); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ reply, want string }{
		"5 MB":       {fine + strings.Repeat(" ", 5<<20), "more than"},
		"deep":       {`{"verdict":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"points":[]}`, "nested too deep"},
		"two of it":  {fine + fine, "after the JSON object"},
		"text first": {"Sure: " + fine, "not a JSON object"},
		"no UTF-8":   {"{\"verdict\":\"agree\xff\"}", "UTF-8"},
	} {
		if _, err := ParseVerdict(c.reply, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARepliesVerdictsOnWishesAreOneForEachNumber(t *testing.T) {
	got, err := ParseWishes("```json\n"+`{"wishes":[{"wish":2,"verdict":"not_followed"},{"wish":1,"verdict":"followed"},{"wish":3,"verdict":"does_not_apply"}]}`+"\n```", 3)
	if err != nil || strings.Join(got, " ") != "followed not_followed does_not_apply" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{
		``, `yes`, `{"wishes":[]}`, `{"wishes":[{"wish":1,"verdict":"followed"}]}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":1,"verdict":"followed"}]}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":3,"verdict":"followed"}]}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":0,"verdict":"followed"}]}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":2,"verdict":"yes"}]}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":2,"verdict":"followed"}],"note":"x"}`,
		`{"wishes":[{"wish":1,"verdict":"followed"},{"wish":2,"verdict":"followed"}]} all are followed`,
	} {
		if got, err := ParseWishes(bad, 2); err == nil {
			t.Errorf("%s is read as %v", bad, got)
		}
	}
}

func FuzzReplies(f *testing.F) {
	for _, s := range []string{`{"ratings":[{"answer":"A","score":1},{"answer":"B","score":0}]}`, `{"verdict":"agree","points":["a"]}`, `{"verdict":"correct","issues":[],"correction":""}`, "a\nREPORT: {\"confidence\":1,\"domain\":\"x\"}", "```json\n{}```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		if got, err := ParseRatings(reply, 2); err == nil {
			for _, l := range []string{"A", "B"} {
				if v, ok := got[l]; !ok || !(v >= 0 && v <= 1) {
					t.Errorf("%v", got)
				}
			}
		}
		if v, err := ParseVerdict(reply, 3); err == nil && (len(v.Points) > MaxPoints || v.Verdict == "") {
			t.Errorf("%+v", v)
		}
		if r, err := ParseReview(reply); err == nil && (len(r.Issues) > MaxPoints || len(r.Correction) > MaxCorrection) {
			t.Errorf("%+v", r)
		}
		text, r, ok := SplitReport(reply)
		if len(text) > len(reply) || ok && !(r.Confidence >= 0 && r.Confidence <= 1) || utf8.ValidString(reply) && !utf8.ValidString(text+r.Domain) {
			t.Errorf("%q %+v", text, r)
		}
	})
}
