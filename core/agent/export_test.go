package agent

// Held is how many lines are in memory, of how many chats.
func (o *Overheard) Held() (lines, chats int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.chats {
		lines += len(e.Value.(*talkOf).lines)
	}
	return lines, len(o.chats)
}
