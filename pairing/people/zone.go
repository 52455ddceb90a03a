package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// timezone is the field of a user's settings.
const timezone = "timezone"

// maxZone is the longest name of a time zone, in bytes.
const maxZone = 64

// ParseZone returns the time zone of a name such as Europe/Berlin; core.Invalid for one
// that is none.
func ParseZone(name string) (*time.Location, error) {
	if name == "" || len(name) > maxZone || strings.EqualFold(name, "local") {
		return nil, core.Errorf(core.Invalid, "the time zone is not known: names are like Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the time zone is not known: names are like Europe/Berlin")
	}
	return zone, nil
}

// Timezone returns the time zone that a user has set; the host's without one.
func (s *Store) Timezone(ctx context.Context, q store.Queryer, user int64) (*time.Location, error) {
	set, err := s.userSettings(ctx, q, user)
	if err != nil {
		return nil, err
	}
	var name string
	if json.Unmarshal(set[timezone], &name) == nil && name != "" {
		if zone, err := ParseZone(name); err == nil {
			return zone, nil
		}
	}
	return time.Local, nil
}

// SetTimezone sets a user's time zone.
func (s *Store) SetTimezone(ctx context.Context, tx *store.Tx, user int64, name string) error {
	if _, err := ParseZone(name); err != nil {
		return err
	}
	set, err := s.userSettings(ctx, tx, user)
	if err != nil {
		return err
	}
	if set[timezone], err = json.Marshal(name); err != nil {
		return err
	}
	b, err := json.Marshal(set)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE users SET settings = $2 WHERE id = $1`, user, string(b))
	if err == nil && n == 0 {
		err = core.Errorf(core.NotFound, "there is no such user")
	}
	return err
}

// userSettings returns the settings of a user, by name; none for an unknown user.
func (s *Store) userSettings(ctx context.Context, q store.Queryer, user int64) (map[string]json.RawMessage, error) {
	var text string
	err := q.Get(ctx, &text, `SELECT coalesce(settings, '') FROM users WHERE id = $1`, user)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return nil, fmt.Errorf("settings of a user: %w", err)
	}
	set := map[string]json.RawMessage{} // the fields of one row
	if json.Unmarshal([]byte(text), &set) != nil || set == nil {
		set = map[string]json.RawMessage{}
	}
	return set, nil
}
