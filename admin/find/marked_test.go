package find

import (
	"slices"
	"testing"
)

func TestMarksAreRangesOfCharacters(t *testing.T) {
	for _, c := range []struct {
		name, text string
		marks      [][2]int
		want       []part
	}{
		{"none", "tea", nil, []part{{"tea", false}}},
		{"empty", "", [][2]int{{0, 3}}, nil},
		{"characters", "Äpfel & Öl", [][2]int{{0, 5}, {8, 10}}, []part{{"Äpfel", true}, {" & ", false}, {"Öl", true}}},
		{"beyond the end", "tea", [][2]int{{1, 9}, {12, 15}}, []part{{"t", false}, {"ea", true}}},
		{"overlapping", "green tea", [][2]int{{0, 5}, {3, 9}}, []part{{"green", true}, {" tea", true}}},
		{"out of order", "green tea", [][2]int{{6, 9}, {0, 5}}, []part{{"green ", false}, {"tea", true}}},
		{"reversed", "green tea", [][2]int{{5, 2}, {-3, -1}}, []part{{"green", false}, {" tea", false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := marked(c.text, c.marks); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
