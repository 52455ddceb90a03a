package transcript

import (
	"slices"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// A chain is how the lines of a transcript hang together. Each names its
// parent; the conversation is what leads from the last line back to the
// first. So what was rewound, and sub-agents' side chains, stay out.
type chain struct {
	lines  []vault.Line
	at     map[string]int    // by uuid; the last line of that name
	marks  marks             // what the lines themselves do not contain
	parent map[string]string // of lines that a compaction has hung elsewhere
	kept   map[string]bool   // lines in front of a compaction that are still part of it
	cut    int               // index of the newest compaction's boundary, 0 without
	torn   map[int]bool      // boundaries whose summary was not written: no lines at all
	all    bool              // what compactions have taken out is wanted too

	refused map[string]bool  // lines that a model's provider refused
	decoded map[int]*Message // nil for lines without a message
}

func newChain(f vault.Tail, m marks) chain {
	c := chain{lines: f.Lines, at: make(map[string]int, len(f.Lines)), marks: m, parent: map[string]string{},
		kept: map[string]bool{}, torn: map[int]bool{}, refused: refusals(f.Lines), decoded: map[int]*Message{}}
	for i := range f.Lines {
		c.at[f.Lines[i].UUID] = i
	}
	return c
}

// conversation returns the conversation in the lines that were read, from the
// newest compaction on.
func conversation(f vault.Tail, m marks) tail {
	c := newChain(f, m)
	whole := c.compacted()
	t := c.tail(f)
	t.whole = t.whole && whole
	return t
}

// everything returns conversation with what compactions have taken out.
func everything(f vault.Tail, m marks) tail {
	c := newChain(f, m)
	c.all = true
	t := c.tail(f)
	c.helpers(t.messages)
	return t
}

func (c *chain) tail(f vault.Tail) tail {
	t := tail{skipped: f.Skipped, info: f.Info}
	if i := c.before(len(f.Lines)); i >= 0 {
		t.last = f.Lines[i].UUID
	}
	for i := c.cut; i < len(f.Lines); i++ {
		if f.Lines[i].IsSidechain {
			t.side += len(f.Lines[i].Message)
		}
	}
	indices, rooted := c.walk()
	t.whole = rooted || f.Whole
	for _, i := range c.rejoin(indices) {
		t.collect(c.message(i))
	}
	shed(t.messages, tailMedia)
	for i := range t.messages {
		t.size += t.messages[i].size()
		t.memory += t.messages[i].memory()
	}
	return t
}

// message returns line i's, nil where it holds none.
func (c *chain) message(i int) *Message {
	m, known := c.decoded[i]
	if !known {
		if got, ok := decode(&c.lines[i]); ok {
			got.Summary, got.refused = c.marks.summaries[c.lines[i].UUID], c.refused[c.lines[i].UUID]
			m = &got
		}
		c.decoded[i] = m
	}
	return m
}

// before returns the line before i in the main chain and behind the newest compaction,
// -1 without.
func (c *chain) before(i int) int {
	for i--; i >= c.cut; i-- {
		if !c.lines[i].IsSidechain && !c.torn[i] {
			return i
		}
	}
	return -1
}

// compacted finds the newest compaction: what is in front of its boundary
// is out, but for the lines that it keeps; these hang behind the summary, and
// what hung behind the summary hangs behind them. whole is false when kept
// lines are in front of what was read.
func (c *chain) compacted() (whole bool) {
	for i := len(c.lines) - 1; i >= 0; i-- {
		l := &c.lines[i]
		b, ok := c.marks.boundaries[l.UUID]
		if !ok || l.IsSidechain {
			continue
		}
		if anchor, found := c.at[b.anchor]; b.anchor != "" && (!found || anchor < i) || i == len(c.lines)-1 {
			c.torn[i] = true
			continue
		}
		whole = true
		behind := b.anchor
		for _, id := range b.kept {
			if j, ok := c.at[id]; !ok || j > i {
				whole = false
				continue
			}
			c.kept[id], c.parent[id], behind = true, behind, id
		}
		for j := i + 1; j < len(c.lines); j++ {
			if p := c.lines[j].ParentUUID; p != nil && *p == b.anchor && behind != b.anchor {
				c.parent[c.lines[j].UUID] = behind
			}
		}
		c.cut = i
		return whole
	}
	return true
}

// walk follows the parents from the last line back: indices, newest first, and
// whether the beginning was reached.
func (c *chain) walk() (indices []int, rooted bool) {
	seen := map[int]bool{}
	for i := c.before(len(c.lines)); i >= 0; {
		indices = append(indices, i)
		seen[i] = true
		l := &c.lines[i]
		parent, moved := c.parent[l.UUID]
		if !moved {
			if _, b := c.marks.boundaries[l.UUID]; l.ParentUUID == nil && !(c.all && b) {
				return indices, true
			}
			if l.ParentUUID != nil {
				parent = *l.ParentUUID
			}
		}
		j, ok := c.at[parent]
		switch {
		case ok && !seen[j] && (moved || j < i) && (j >= c.cut || c.kept[parent]):
			i = j
		case c.kept[l.UUID]: // goes on in front of what was read
			return indices, false
		default: // a broken line, or the start of what was read
			i = c.before(i)
		}
	}
	return indices, c.cut > 0
}

// rejoin joins parallel calls and their results. Claude Code links each result to its
// own call, so only one of them is in the chain; if that was not the last call, the
// later calls are missing too. The result is oldest first.
func (c *chain) rejoin(indices []int) []int {
	slices.Reverse(indices)
	in := make(map[int]bool, len(indices))
	for _, i := range indices {
		in[i] = true
	}
	var children map[string][]int // made when needed
	out := make([]int, 0, len(indices))
	for n := 0; n < len(indices); {
		m, end := c.message(indices[n]), n+1
		if m == nil || m.Role != "assistant" || m.id == "" {
			out, n = append(out, indices[n]), end
			continue
		}
		calls := m.calls()
		for ; end < len(indices); end++ {
			next := c.message(indices[end])
			if next == nil || next.id != m.id {
				break
			}
			calls = calls || next.calls()
		}
		out = append(out, indices[n:end]...)
		if calls {
			if children == nil {
				children = c.children()
			}
			more, results := c.siblings(indices[n:end], m.id, children, in)
			out = append(append(out, more...), results...)
		}
		n = end
	}
	return out
}

// children returns the lines that hang behind each line.
func (c *chain) children() map[string][]int {
	out := map[string][]int{}
	for i := c.cut; i < len(c.lines); i++ {
		if p := c.lines[i].ParentUUID; p != nil && !c.lines[i].IsSidechain {
			out[*p] = append(out[*p], i)
		}
	}
	for id := range c.kept {
		if p := c.lines[c.at[id]].ParentUUID; p != nil && c.at[id] < c.cut {
			out[*p] = append(out[*p], c.at[id])
		}
	}
	return out
}

// siblings returns the calls of message id that are not in the chain, and the
// results of all its calls that are not.
func (c *chain) siblings(lines []int, id string, children map[string][]int, in map[int]bool) (calls, results []int) {
	todo := slices.Clone(lines)
	for len(todo) > 0 {
		i := todo[0]
		todo = todo[1:]
		for _, j := range children[c.lines[i].UUID] {
			if in[j] {
				continue
			}
			switch m := c.message(j); {
			case m == nil:
			case m.Role == "assistant" && m.id == id && m.calls():
				calls, todo = append(calls, j), append(todo, j)
				in[j] = true
			case m.Role == "user" && m.Blocks[0].Type == "tool_result":
				results = append(results, j)
				in[j] = true
			}
		}
	}
	return calls, results
}

// calls reports whether m calls tools.
func (m *Message) calls() bool {
	return slices.ContainsFunc(m.Blocks, func(b core.Block) bool { return b.Type == "tool_use" })
}

// collect takes the next line's message. Lines of one answer are one message.
func (t *tail) collect(m *Message) {
	if m == nil {
		t.skipped++
		return
	}
	n := len(t.messages)
	if n == 0 || m.Role != "assistant" || m.id == "" || t.messages[n-1].id != m.id {
		t.messages = append(t.messages, *m)
		return
	}
	last := &t.messages[n-1]
	last.Blocks = append(last.Blocks, m.Blocks...)
	last.more, last.line = append(last.more, last.line), m.line
	last.Stop, last.Usage = m.Stop, m.Usage
}
