package journal

import (
	"slices"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core/journal"
)

type body struct {
	Date, Title string
	Path        string // of the file; "" where it cannot be read
	Head        string // text before the first entry
	Entries     []entry
	Broken      string
	Month       month
	Today       string // address
	Prev, Next  string // addresses of the days before and after
	IsToday     bool
	Draft       draft
}

// An entry is one as it is listed. All texts are hostile.
type entry struct {
	journal.Entry
	Editing bool
	URL     string // of its form
	Sounds  []media
	Photos  []media
}

// A media is an attachment: its address is "" where it is none of the journal's.
type media struct{ Label, URL string }

func entryOf(e journal.Entry, d *draft) entry {
	out := entry{Entry: e, Editing: e.ID != "" && e.ID == d.ID && !e.Damaged, URL: page.Address(pagePath, map[string]string{"date": e.Date, "edit": e.ID})}
	if out.Editing && d.Version == "" {
		d.Version, d.Text = e.Version, e.Text
	}
	for _, a := range e.Audio {
		out.Sounds = append(out.Sounds, mediaOf(a.Path, a.Duration))
	}
	for _, i := range e.Images {
		out.Photos = append(out.Photos, mediaOf(i.Path, i.Alt))
	}
	return out
}

func mediaOf(path, label string) media {
	m := media{Label: label}
	if _, err := journal.FileOf(1, path); err == nil {
		m.URL = page.Address(filePath, map[string]string{"path": path})
	}
	return m
}

// A month is the calendar around a day.
type month struct {
	Title      string
	Prev, Next string // addresses of the same day in the months around
	Weeks      [][]cell
}

// A cell is a day of the calendar; Day 0 is none.
type cell struct {
	Day     int
	URL     string
	Label   string // for screen readers
	Written bool
	Current bool
	Today   bool
}

// monthOf returns the calendar of at's month; written are its days with a file.
func monthOf(at, today time.Time, written []string) month {
	first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	m := month{Title: first.Format("January 2006"), Prev: dayURL(first.AddDate(0, 0, -1).Format(time.DateOnly)), Next: dayURL(first.AddDate(0, 1, 0).Format(time.DateOnly))}
	week := make([]cell, (int(first.Weekday())+6)%7, 7) // weeks begin on Monday
	for day := first; day.Month() == first.Month(); day = day.AddDate(0, 0, 1) {
		date := day.Format(time.DateOnly)
		c := cell{Day: day.Day(), URL: dayURL(date), Label: day.Format("Monday, 2 January"), Written: slices.Contains(written, date),
			Current: date == at.Format(time.DateOnly), Today: date == today.Format(time.DateOnly)}
		if c.Written {
			c.Label += ", has entries"
		}
		if week = append(week, c); len(week) == 7 {
			m.Weeks, week = append(m.Weeks, week), make([]cell, 0, 7)
		}
	}
	if len(week) > 0 {
		m.Weeks = append(m.Weeks, append(week, make([]cell, 7-len(week))...))
	}
	return m
}
