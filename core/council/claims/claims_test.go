package claims

import (
	"strings"
	"testing"

	"gatehouse/core/council/choice"
)

// pairs are labelled by hand: what two answers to a question are to each other. Where
// the label is unclear, a wrong decision is one of either kind.
var pairs = []struct {
	question, a, b string
	want           choice.Relation
}{
	// numbers and units
	{"How tall is the Eiffel Tower?", "The Eiffel Tower is 330 metres tall.", "It is 330 m tall.", choice.Agree},
	{"How tall is the Eiffel Tower?", "330 m", "0.33 km", choice.Agree},
	{"How tall is the Eiffel Tower?", "The Eiffel Tower is 330 metres tall.", "The Eiffel Tower is 300 metres tall.", choice.Contradict},
	{"How far is the moon?", "The moon is 384,400 km away.", "The moon is 384.400 Kilometer away.", choice.Agree},
	{"How fast is light?", "About 300,000 km/s", "299792 km/s", choice.Agree},
	{"What is 17 % of 340?", "57.8", "17 % of 340 is 57.8.", choice.Agree},
	{"What is 17 % of 340?", "57.8", "58.7", choice.Contradict},
	{"How many legs has a spider?", "A spider has eight legs.", "Spiders have 8 legs.", choice.Agree},
	{"How many days has a leap year?", "365", "366", choice.Contradict},
	{"How much does it cost?", "It costs $20 a month.", "It costs 25 dollars a month.", choice.Contradict},
	{"Maximum dose of ibuprofen?", "The maximum daily dose is 2400 mg.", "The maximum daily dose is 2.4 g.", choice.Agree},
	{"Maximum dose of ibuprofen?", "The maximum daily dose is 1200 mg.", "The maximum daily dose is 2400 mg.", choice.Contradict},
	{"How long is the marathon?", "A marathon is 42.195 km long.", "A marathon is 26.2 miles long.", choice.Agree},
	{"How long does it take?", "It takes 2 hours.", "It takes 120 minutes.", choice.Agree},
	{"Wie hoch ist die Zugspitze?", "Die Zugspitze ist 2.962 m hoch.", "2962 Meter", choice.Agree},
	{"Wie hoch ist die Zugspitze?", "Die Zugspitze ist 2.962 m hoch.", "Die Zugspitze ist 2.692 m hoch.", choice.Contradict},
	{"Wie viele Einwohner hat Berlin?", "Berlin hat 3,7 Millionen Einwohner.", "Berlin hat 3.700.000 Einwohner.", choice.Agree},
	{"Wie viel Prozent?", "Es sind 12 Prozent.", "Es sind 12 %.", choice.Agree},
	{"Wie lange ist die Kündigungsfrist?", "Die Kündigungsfrist beträgt 3 Monate.", "Die Kündigungsfrist beträgt 4 Wochen.", choice.Unclear},
	// dates
	{"When did the wall fall?", "The Berlin Wall fell on November 9, 1989.", "On 9 November 1989.", choice.Agree},
	{"When did the wall fall?", "The Berlin Wall fell on 1989-11-09.", "The Berlin Wall fell on 9.11.1989.", choice.Agree},
	{"When did the wall fall?", "The Berlin Wall fell in 1989.", "The Berlin Wall fell in 1990.", choice.Contradict},
	{"Wann endete der Krieg?", "Der Krieg endete am 8. Mai 1945.", "1945", choice.Agree},
	{"Wann endete der Krieg?", "Der Krieg endete 1945.", "Der Krieg endete 1918.", choice.Contradict},
	{"Wann wurde Luther geboren?", "Martin Luther wurde am 10. November 1483 geboren.", "Luther wurde 1483 geboren.", choice.Agree},
	// yes and no
	{"Is a tomato a fruit?", "Yes, botanically a tomato is a fruit.", "Yes.", choice.Agree},
	{"Is a tomato a fruit?", "Yes, botanically a tomato is a fruit.", "No, it is a vegetable.", choice.Contradict},
	{"Ist Glas eine Flüssigkeit?", "Nein, Glas ist ein amorpher Feststoff.", "Ja, Glas ist eine Flüssigkeit.", choice.Contradict},
	{"Darf ich das?", "Ja, das ist erlaubt.", "Ja", choice.Agree},
	{"Is it safe?", "It is safe to take both together.", "It is not safe to take both together.", choice.Contradict},
	{"Ist es sicher?", "Die gemeinsame Einnahme ist sicher.", "Die gemeinsame Einnahme ist nicht sicher.", choice.Contradict},
	{"Who may enter?", "No one may enter without a permit.", "Nobody may enter without a permit.", choice.Unclear},
	// names
	{"What is the capital of Australia?", "Canberra", "The capital of Australia is Canberra.", choice.Agree},
	{"What is the capital of Australia?", "The capital of Australia is Sydney.", "The capital of Australia is Canberra.", choice.Contradict},
	{"What is the capital of Australia?", "Sydney", "Canberra", choice.Contradict},
	{"Where is it?", "USA", "United States of America", choice.Unclear},
	{"Who wrote Faust?", "Goethe", "Johann Wolfgang von Goethe", choice.Unclear},
	{"Who painted it?", "Leonardo da Vinci painted the Mona Lisa.", "Raphael painted the Mona Lisa.", choice.Contradict},
	{"Wer erfand den Buchdruck?", "Johannes Gutenberg", "Gutenberg", choice.Unclear},
	// code
	{"Reverse a list in Python", "Use a slice:\n```python\nb = a[::-1]\n```", "```python\nb  =  a[::-1]\n```\nThis makes a copy.", choice.Agree},
	{"Reverse a list in Python", "```python\nb = a[::-1]\n```", "```python\na.reverse()\n```", choice.Unclear},
	// the same words, and different texts about the same
	{"Why is the sky blue?", "The sky is blue because air scatters short wavelengths more strongly than long ones.", "The sky is blue, because air scatters short wavelengths more strongly than long ones!", choice.Agree},
	{"Why is the sky blue?", "Because of Rayleigh scattering.", "Air molecules scatter blue light more than red light.", choice.Unclear},
	{"What should I cook?", "Try a risotto with mushrooms.", "A simple lentil soup would be nice.", choice.Unclear},
	{"Write a poem", "Leaves fall in golden light upon the silent ground", "The wind of autumn sings its song tonight", choice.Unclear},
	{"Which language should I learn?", "Learn Python first, it has a gentle start.", "I would begin with JavaScript, since it runs in every browser.", choice.Unclear},
	{"How do I lose weight?", "Eat less sugar and walk 30 minutes a day.", "Sleep well, and count calories: about 1800 a day.", choice.Unclear},
	{"Explain inflation", "Inflation is a rise of the price level. At 2 % prices double in 36 years.", "Inflation means that money buys less. The ECB aims at 2 %.", choice.Unclear},
	{"Plan a trip", "Day 1: Alfama. Day 2: Belém.", "Day 1: Sintra. Day 2: Cascais. Day 3: Lisbon.", choice.Unclear},
}

func TestClearAnswersAreDecidedAndNoneWrongly(t *testing.T) {
	clear, decided := 0, 0
	for _, p := range pairs {
		s := New(p.question, []string{p.a, p.b})
		got := s.Compare(0, 1)
		if back := s.Compare(1, 0); back.Relation != got.Relation {
			t.Errorf("%q and %q: %v one way, %v the other", p.a, p.b, got, back)
		}
		if p.want == choice.Unclear {
			if got.Relation == choice.Contradict {
				t.Errorf("%q and %q contradict each other: %s", p.a, p.b, got.Reason)
			}
			continue
		}
		clear++
		if got.Relation == p.want {
			decided++
		} else if got.Relation != choice.Unclear {
			t.Errorf("%q and %q: %+v, want %v", p.a, p.b, got, p.want)
		} else {
			t.Logf("%q and %q: unclear (%.2f), want %v", p.a, p.b, got.Cosine, p.want)
		}
	}
	if 10*decided < 9*clear {
		t.Errorf("%d of %d clear pairs are decided", decided, clear)
	}
	t.Logf("%d of %d clear pairs decided, none wrongly", decided, clear)
}

func TestAnAnswerOfFiveMegabytesIsComparedByItsBeginning(t *testing.T) {
	s := New("Is it?", []string{"Yes. " + strings.Repeat("1 km ", 1<<20), "No."})
	if got := s.Compare(0, 1); got.Relation != choice.Contradict {
		t.Errorf("%+v", got)
	}
}

func BenchmarkNineAnswers(b *testing.B) {
	texts := make([]string, 9)
	for i := range texts {
		texts[i] = strings.Repeat("The Battle of Hastings was fought between 7,000 men each, and took 9 hours. It is why so much of our law has French words in it, as every lawyer knows. ", 12+i)
	}
	for b.Loop() {
		s := New("When was the battle?", texts)
		for i := range texts {
			for j := range i {
				s.Compare(i, j)
			}
		}
	}
}

// Both numbers of one text are near the first of the other, whose second is near none.
func TestWhichAnswerIsFirstDoesNotMatter(t *testing.T) {
	near, far := "The pipes are 1000 mm and 1004 mm long.", "The pipes are 1.00 m and 5.00 m long."
	for _, texts := range [][]string{{near, far}, {far, near}} {
		if r := New("How long are the pipes?", texts).Compare(0, 1); r.Relation != choice.Unclear {
			t.Errorf("%q: %+v", texts, r)
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, p := range pairs {
		f.Add(p.question, p.a, p.b)
	}
	f.Fuzz(func(t *testing.T, question, a, b string) {
		s := New(question, []string{a, b})
		one, other := s.Compare(0, 1), s.Compare(1, 0)
		if one.Relation != other.Relation || one.Cosine < 0 || one.Cosine > 1 {
			t.Errorf("%+v, %+v", one, other)
		}
		if same := New(question, []string{a, a}).Compare(0, 1); same.Relation != choice.Agree {
			t.Errorf("a text and itself: %+v", same)
		}
	})
}

func TestWhatIsNotClearIsForTheJudge(t *testing.T) {
	for name, c := range map[string]struct {
		question, a, b string
	}{
		"other numbers of other things": {"What do you know of the bridge?", "The bridge carries 40 trains every week.", "Its oldest pillar stands 12 metres under the river."},
		"a date more":                   {"How long is the tunnel?", "The tunnel is 57 km long.", "The tunnel is 57 km long and was opened in 2016."},
		"a number in another text":      {"Tell me a number", "Seventeen apples, or 17, grew on our neighbour's smallest tree.", "Light needs 17 nanoseconds to cross a small laboratory hall."},
	} {
		if r := New(c.question, []string{c.a, c.b}).Compare(0, 1); r.Relation != choice.Unclear {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAtMost16AnswersAreCompared(t *testing.T) {
	texts := make([]string, 20)
	for i := range texts {
		texts[i] = "yes"
	}
	s := New("?", texts)
	if s.Relation(0, 15) != choice.Agree || s.Relation(0, 16) != choice.Unclear || s.Relation(-1, 0) != choice.Unclear {
		t.Error(s.Compare(0, 16))
	}
}
