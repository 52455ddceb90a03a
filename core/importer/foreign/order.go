package foreign

// A Placed is a message at its place in a transcript.
type Placed struct {
	*Message
	Parent string // the message that it hangs behind; "" for none
	Side   bool   // it is of another branch than the one that is shown
}

// Ordered returns the messages as a transcript has them: the branch that is shown, and
// behind each of its messages the other branches that begin there. Parents that do not
// exist, and cycles, are taken for the beginning. Messages with an id that an earlier one has are left
// out; dropped is how many. It needs time and memory in proportion to the messages, at any depth.
func (c *Conversation) Ordered() (list []Placed, dropped int) {
	o := order{c: c, at: make(map[string]int, len(c.Messages)), children: map[string][]int{}, main: map[int]bool{}, placed: make([]bool, len(c.Messages))}
	for i := range c.Messages {
		m := &c.Messages[i]
		if _, twice := o.at[m.ID]; twice || m.ID == "" {
			o.placed[i] = true
			dropped++
			continue
		}
		o.at[m.ID] = i
	}
	for i := range c.Messages {
		if !o.placed[i] {
			p := o.parent(i)
			o.children[p] = append(o.children[p], i)
		}
	}
	branch := o.branch()
	last := ""
	o.branches(last) // other beginnings
	for _, i := range branch {
		o.put(i, last, false)
		last = c.Messages[i].ID
		o.branches(last)
	}
	for i := range c.Messages { // what a cycle holds together
		if !o.placed[i] {
			o.put(i, "", true)
			o.branches(c.Messages[i].ID)
		}
	}
	return o.list, dropped
}

// order is one Ordered.
type order struct {
	c        *Conversation
	at       map[string]int   // index by id
	children map[string][]int // by the parent's id
	main     map[int]bool     // the branch that is shown
	placed   []bool
	list     []Placed
}

// parent returns the id of the message in front of message i, "" where there is none.
func (o *order) parent(i int) string {
	p := o.c.Messages[i].Parent
	if _, known := o.at[p]; !known || p == o.c.Messages[i].ID {
		return ""
	}
	return p
}

// branch returns the messages that are shown, oldest first.
func (o *order) branch() []int {
	leaf, ok := o.at[o.c.Leaf]
	for i := len(o.c.Messages) - 1; !ok && i >= 0; i-- {
		if !o.placed[i] {
			leaf, ok = i, true
		}
	}
	if !ok {
		return nil
	}
	var up []int
	for !o.main[leaf] {
		o.main[leaf] = true
		up = append(up, leaf)
		p := o.parent(leaf)
		if p == "" {
			break
		}
		leaf = o.at[p]
	}
	for a, b := 0, len(up)-1; a < b; a, b = a+1, b-1 {
		up[a], up[b] = up[b], up[a]
	}
	return up
}

func (o *order) put(i int, parent string, side bool) {
	o.placed[i] = true
	o.list = append(o.list, Placed{Message: &o.c.Messages[i], Parent: parent, Side: side})
}

// branches places everything behind the message id but the branch that is shown, depth first.
func (o *order) branches(id string) {
	type step struct {
		i      int
		parent string
	}
	var todo []step
	push := func(parent string) {
		list := o.children[parent]
		for k := len(list) - 1; k >= 0; k-- {
			if !o.main[list[k]] && !o.placed[list[k]] {
				todo = append(todo, step{list[k], parent})
			}
		}
	}
	for push(id); len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if o.placed[s.i] {
			continue
		}
		o.put(s.i, s.parent, true)
		push(o.c.Messages[s.i].ID)
	}
}
