package shell

import (
	"errors"
	"path"
	"slices"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/tool"
)

// isArea reports whether name is the area of a guest.
func isArea(name string) bool { return path.Dir(name) == core.GuestsDir }

// guest checks the area of another user. What that person left there must
// keep no one's shell from working, and its names can be exchanged at any time:
// an area is shown as a whole or not at all.
func (w *walk) guest(at place, id beneath.ID, in, g grade) error {
	if g == hidden && in == hidden {
		return nil
	}
	sub := walk{ctx: w.ctx, t: w.t, v: newView(), most: tool.MaxAreaEntries, deepest: tool.MaxAreaDepth + 1}
	why := ""
	switch {
	case slices.Contains(w.except, at.name):
		why = "a command of that person is running"
	case w.guests >= maxGuests:
		why = "guests have too many files"
	default:
		err := sub.child(at, id, g, 0, 0)
		w.guests += sub.v.seen
		switch {
		case errors.Is(err, errMany) || errors.Is(err, errDeep):
			why = "it holds too many files or folders"
		case err != nil:
			return err
		case len(sub.v.readOnly)+len(sub.v.writable)+len(sub.v.masked)+len(sub.v.links) > 0:
			why = "it holds files that are not open at this trust"
		}
	}
	if why != "" {
		w.v.closed[at.name] = true
		w.v.notes = append(w.v.notes, at.name+" is hidden here: "+why)
		g = hidden
	}
	if in == writable && g != writable {
		w.v.fixed[at.name] = id
	}
	w.mount(at.name, id, in, g)
	if why == "" {
		w.v.take(sub.v, g == writable, at.name)
	}
	return nil
}

// take adds what was checked in another user's area.
func (v *view) take(sub *view, open bool, name string) {
	if open {
		v.open[name] = true
	}
	for name := range sub.open {
		v.open[name] = true
	}
	for name, to := range sub.loose {
		v.loose[name] = to
	}
	for id := range sub.known {
		v.known[id] = true
	}
}

// areaOf returns the area of a guest that name is in, "" elsewhere.
func areaOf(name string) string {
	for ; name != "."; name = path.Dir(name) {
		if isArea(name) {
			return name
		}
	}
	return ""
}

// close hides the area of a guest as a whole: a file in it must not be written,
// and is in a directory whose names can be exchanged.
func (w *walk) close(top *beneath.Dir, area string) {
	info, err := top.Stat(area)
	if err != nil || w.v.closed[area] {
		return
	}
	w.v.closed[area], w.v.fixed[area] = true, info.ID
	w.v.notes = append(w.v.notes, area+" is hidden here: it holds files that are not open at this trust")
	p := w.path(area)
	w.v.ids[p], w.v.masked = info.ID, append(w.v.masked, p)
}
