package record_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/importer/record"
)

func FuzzParse(f *testing.F) {
	f.Add("---\nsession_id: \"a\"\n---\n### User | 2025-12-07T04:39:47.485Z\n\nhello\n\n### Assistant | 2025-12-07T04:39:47Z\n\nhi\n")
	f.Add("\ufeff---\r\nsdk_session_id: 7\r\ntitle: [x]\r\n---\r\n### para:a1 Human | 2025-12-07T04:39:47\r\n\r\nx")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := record.Parse(text)
		if err != nil {
			if core.KindOf(err) != core.Invalid {
				t.Error(err)
			}
			return
		}
		if list, dropped := c.Ordered(); len(list) == 0 || dropped > 0 || c.ID == "" {
			t.Errorf("%d messages, %d dropped", len(list), dropped)
		}
	})
}

func TestOnlyAHeadingWithATimeBeginsAMessage(t *testing.T) {
	c, err := record.Parse("---\nid: x\n---\n\n# T\n\n### User | 2025-12-07T04:39:47Z\n\none\n\n### Not a | message\n\n## Nor this\n\n---\nend\n\n### Assistant | 2025-12-07T04:39:47.5+02:00\n\ntwo\n")
	if err != nil || len(c.Messages) != 2 || !strings.HasSuffix(c.Messages[0].Blocks[0].Text, "---\nend") || c.Messages[1].At.UTC().Hour() != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A few lines of aliases expand to gigabytes.
func TestAHeadWithAliasesIsNone(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\nsession_id: abc\na: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'k'; c++ {
		p := string(c - 1)
		fmt.Fprintf(&b, "%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", c, c, p, p, p, p, p, p, p, p)
	}
	b.WriteString("title: *k\n---\n")
	if h, _, ok := record.ReadHead(b.String()); ok {
		t.Errorf("it is read: %q", h.IDs)
	}
	if h, _, ok := record.ReadHead("---\nsession_id: abc\ntitle: x\nother: 1\n---\nbody"); !ok || h.IDs[0] != "abc" || h.Title != "x" {
		t.Errorf("a head with further fields: %+v %t", h, ok)
	}
}

func TestScopeAndUserAreReadOfTheGatewaysExportsAlone(t *testing.T) {
	for count, want := range map[string]bool{"": false, "message_count: 1\n": true} {
		c, err := record.Parse("---\nsession_id: x\nscope: group\nuser_id: 42\n" + count + "---\n\n### User | 2025-12-07T04:39:47Z\n\none\n")
		if err != nil || c.Others != want || (c.User == 42) != want {
			t.Errorf("%q: others %v, user %d, %v", count, c.Others, c.User, err)
		}
	}
}
