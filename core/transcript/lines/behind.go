package lines

import "slices"

// Behind returns how many messages are behind the one with this id, and about how many
// tokens they take; false where it is not there, or in the middle of a turn.
func Behind(all []Message, id string) (n, tokens int, ok bool) {
	size := 0
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].UUID == id || slices.Contains(all[i].Earlier, id) {
			n = len(all) - 1 - i
			return n, size / BytesPerToken, n == 0 || all[i+1].Begins()
		}
		size += all[i].Size()
	}
	return 0, 0, false
}
