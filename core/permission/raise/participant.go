package raise

import (
	"time"

	"gatehouse/core"
)

// Tables returns the tables that keep data of users: raises are of the
// operator, who is not forgotten, and end within minutes.
func (s *Store) Tables() []string { return []string{"raises"} }

// Chores returns the table's housekeeping.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{{Name: "raises", Every: time.Minute, Run: s.Expire}}
}
