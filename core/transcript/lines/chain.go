package lines

import (
	"io/fs"
	"slices"

	"gatehouse/core"
	"gatehouse/core/vault/line"
)

// A Part is the newest part of a conversation.
type Part struct {
	Messages []Message
	Last     string      // uuid of the last line, the parent of the next
	Whole    bool        // Messages is the whole conversation
	Size     int         // of Messages, as Size counts
	Memory   int         // of Messages, as Memory counts
	Skipped  int         // lines that are no messages of it
	Side     int         // bytes of the helpers' lines in what was read, or written since
	Info     fs.FileInfo // the file when this was true; nil without a file
}

// A chain is how the lines of a transcript hang together. Each names its
// parent; the conversation is what leads from the last line back to the
// first. So what was rewound, and sub-agents' side chains, stay out.
type chain struct {
	lines  []line.Line
	at     map[string]int    // by uuid; the last line of that name
	marks  Marks             // what the lines themselves do not contain
	parent map[string]string // of lines that a compaction has hung elsewhere
	kept   map[string]bool   // lines in front of a compaction that are still part of it
	cut    int               // index of the newest compaction's boundary, 0 without
	torn   map[int]bool      // boundaries whose summary was not written: no lines at all
	all    bool              // what compactions have taken out is wanted too

	refused map[string]bool  // lines that a model's provider refused
	decoded map[int]*Message // nil for lines without a message
}

func newChain(f line.Tail, m Marks) chain {
	c := chain{lines: f.Lines, at: make(map[string]int, len(f.Lines)), marks: m, parent: map[string]string{},
		kept: map[string]bool{}, torn: map[int]bool{}, refused: refusals(f.Lines), decoded: map[int]*Message{}}
	for i := range f.Lines {
		c.at[f.Lines[i].UUID] = i
	}
	return c
}

// Current returns the conversation in the lines that were read, from the
// newest compaction on.
func Current(f line.Tail, m Marks) Part {
	c := newChain(f, m)
	whole := c.compacted()
	t := c.part(f)
	t.Whole = t.Whole && whole
	return t
}

// All returns conversation with what compactions have taken out.
func All(f line.Tail, m Marks) Part {
	c := newChain(f, m)
	c.all = true
	t := c.part(f)
	c.helpers(t.Messages)
	return t
}

func (c *chain) part(f line.Tail) Part {
	t := Part{Skipped: f.Skipped, Info: f.Info}
	if i := c.before(len(f.Lines)); i >= 0 {
		t.Last = f.Lines[i].UUID
	}
	for i := c.cut; i < len(f.Lines); i++ {
		if f.Lines[i].IsSidechain {
			t.Side += len(f.Lines[i].Message)
		}
	}
	indices, rooted := c.walk()
	t.Whole = rooted || f.Whole
	for _, i := range c.rejoin(indices) {
		t.collect(c.message(i))
	}
	shed(t.Messages, tailMedia)
	for i := range t.Messages {
		t.Size += t.Messages[i].Size()
		t.Memory += t.Messages[i].Memory()
	}
	return t
}

// message returns line i's, nil where it holds none.
func (c *chain) message(i int) *Message {
	m, known := c.decoded[i]
	if !known {
		if got, ok := Decode(&c.lines[i]); ok {
			got.Summary, got.Refused = c.marks.summaries[c.lines[i].UUID], c.refused[c.lines[i].UUID]
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
		if m == nil || m.Role != "assistant" || m.ProviderID == "" {
			out, n = append(out, indices[n]), end
			continue
		}
		calls := m.Calls()
		for ; end < len(indices); end++ {
			next := c.message(indices[end])
			if next == nil || next.ProviderID != m.ProviderID {
				break
			}
			calls = calls || next.Calls()
		}
		out = append(out, indices[n:end]...)
		if calls {
			if children == nil {
				children = c.children()
			}
			more, results := c.siblings(indices[n:end], m.ProviderID, children, in)
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
			case m.Role == "assistant" && m.ProviderID == id && m.Calls():
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

// Calls reports whether m calls tools.
func (m *Message) Calls() bool {
	return slices.ContainsFunc(m.Blocks, func(b core.Block) bool { return b.Type == "tool_use" })
}

// collect takes the next line's message. Lines of one answer are one message.
func (t *Part) collect(m *Message) {
	if m == nil {
		t.Skipped++
		return
	}
	n := len(t.Messages)
	if n == 0 || m.Role != "assistant" || m.ProviderID == "" || t.Messages[n-1].ProviderID != m.ProviderID {
		t.Messages = append(t.Messages, *m)
		return
	}
	last := &t.Messages[n-1]
	last.Blocks = append(last.Blocks, m.Blocks...)
	last.Earlier, last.UUID = append(last.Earlier, last.UUID), m.UUID
	last.Stop, last.Usage = m.Stop, m.Usage
}
