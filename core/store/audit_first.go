package store

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"gatehouse/core"
)

// alreadyScan is how many events of each action Already reads.
const alreadyScan = 50

// Already returns a core.Conflict that names who was first, "already dismissed by
// operator via panel (15:04 UTC)", from the newest event with key and value in
// its detail. done has the verb of each action to search. Without such an event it
// returns nil.
func Already(ctx context.Context, q Queryer, key string, value any, done map[string]string) error {
	var first AuditEvent
	for _, action := range slices.Sorted(maps.Keys(done)) {
		page, _, err := AuditLog(ctx, q, AuditFilter{Action: action, Limit: alreadyScan})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(page, func(e AuditEvent) bool { return e.holds(key, value) })
		if i >= 0 && page[i].ID > first.ID {
			first = page[i]
		}
	}
	if first.ID == 0 {
		return nil
	}
	by := core.Actor{User: first.User, Via: first.Via}
	return core.Errorf(core.Conflict, "already %s by %s (%s UTC)", done[first.Action], by, first.At.UTC().Format("15:04"))
}

func (e AuditEvent) holds(key string, value any) bool {
	var detail map[string]json.RawMessage
	if json.Unmarshal(e.Detail, &detail) != nil {
		return false
	}
	want, err := json.Marshal(value)
	return err == nil && string(detail[key]) == string(want)
}
