package markdown

import (
	"reflect"
	"testing"
)

func TestPicturesOfAReplyAreThoseThatNameAFile(t *testing.T) {
	r := New(4096)
	for source, want := range map[string][]Picture{
		"none":                               nil,
		"![A *nice* chart](Charts/tea.png)":  {{"Charts/tea.png", "A nice chart"}},
		"![a](./x%20y.png) ![b](<x y.png>)":  {{"x y.png", "a"}},
		"![a](a.png)\n\n- ![](b/../c.pdf)":   {{"a.png", "a"}, {"c.pdf", ""}},
		"![a](https://example.org/a.png)":    nil,
		"![a](data:image/png;base64,AA)":     nil,
		"![a](//example.org/a.png)":          nil,
		"`![a](a.png)` and [a](a.png)":       nil,
		"```\n![a](a.png)\n```":              nil,
		"![a](../../etc/passwd)":             {{"../../etc/passwd", "a"}},
		"![1](1) ![2](2) ![3](3) ![4](4)":    {{"1", "1"}, {"2", "2"}, {"3", "3"}},
		"[![a](a.png)](https://example.org)": {{"a.png", "a"}},
	} {
		if got := r.Pictures(source, 3); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", source, got, want)
		}
	}
}
