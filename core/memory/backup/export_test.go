package backup

// Rung reports whether Run would look for what is due, and takes the ring.
func (s *Store) Rung() bool {
	select {
	case <-s.bell:
		return true
	default:
		return false
	}
}
