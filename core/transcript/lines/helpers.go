package lines

// helpers gives the calls of Task in messages what their helpers did.
func (c *chain) helpers(messages []Message) {
	var of map[string][]Message // by call
	for i := range c.lines {
		l := &c.lines[i]
		if !l.IsSidechain || l.ParentCall == "" {
			continue
		}
		m, ok := Decode(l)
		if !ok {
			continue
		}
		if of == nil {
			of = map[string][]Message{}
		}
		of[l.ParentCall] = append(of[l.ParentCall], m)
	}
	if of == nil {
		return
	}
	for i := range messages {
		for j := range messages[i].Blocks {
			b := &messages[i].Blocks[j]
			if did := of[b.ID]; b.Type == "tool_use" && len(did) > 0 {
				if messages[i].Helpers == nil {
					messages[i].Helpers = map[string][]Message{}
				}
				messages[i].Helpers[b.ID] = did
			}
		}
	}
}

// HelperSize returns how large what the helpers of m's calls did is, in bytes.
func (m *Message) HelperSize() (n int) {
	for _, did := range m.Helpers {
		n += SizeOf(did)
	}
	return n
}
