package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// leaps is the system's clock, but that a script can have time pass at once.
type leaps struct {
	mu      sync.Mutex
	ahead   time.Duration
	waiting []*leapWait
}

type leapWait struct {
	at time.Time // by Now
	c  chan time.Time
}

func (l *leaps) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.ahead)
}

// After delivers when the system has waited d, or a leap brought it there.
func (l *leaps) After(d time.Duration) <-chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &leapWait{time.Now().Add(l.ahead + d), make(chan time.Time, 1)}
	l.waiting = append(l.waiting, w)
	time.AfterFunc(max(0, d), l.deliver)
	return w.c
}

// deliver tells those whose time has come.
func (l *leaps) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().Add(l.ahead)
	l.waiting = slices.DeleteFunc(l.waiting, func(w *leapWait) bool {
		if w.at.After(now) {
			return false
		}
		w.c <- now
		return true
	})
}

func (l *leaps) leap(d time.Duration) {
	l.mu.Lock()
	l.ahead += d
	l.mu.Unlock()
	l.deliver()
}

var _ core.Clock = (*leaps)(nil)

func (s *script) passes(m []string) {
	n, _ := strconv.Atoi(m[1])
	unit := time.Minute
	if m[2] == "seconds" {
		unit = time.Second
	}
	s.w.clock.(*leaps).leap(time.Duration(n) * unit)
}

func (s *script) restarts([]string) {
	s.w.stop()
	s.w.start()
}

var minutesField = regexp.MustCompile(`name="minutes" value="(\d+)" checked`)

// operates presses a button of the form on the panel's page, without JavaScript.
func (s *script) operates(m []string) {
	b := s.w.browser()
	page := b.page("/admin/approvals")
	form := regexp.MustCompile(`action="(/admin/approvals/raises/[a-z0-9]+/` + m[1] + `)"`).FindStringSubmatch(page)
	if m[2] == "nothing" {
		if form != nil {
			s.fatalf("there is a form: %s", page)
		}
		return
	}
	if form == nil {
		s.fatalf("no such form: %s", page)
	}
	values := url.Values{}
	if minutes := minutesField.FindStringSubmatch(page); minutes != nil {
		values.Set("minutes", minutes[1])
	}
	if status, body := b.submit(form[1], "", values); status != 403 {
		s.fatalf("without its token the form is taken: %d %s", status, body)
	}
	if status, body := b.submit(form[1], page, values); status != 200 || !strings.Contains(body, `class="flash good"`) {
		s.fatalf("%d %s", status, body)
	}
}

func (s *script) panelShows(m []string) {
	if page := s.w.browser().page("/admin/approvals"); !strings.Contains(page, m[1]) {
		s.fatalf("the page: %s", page)
	}
}

func (s *script) audited(m []string) {
	var rows []string
	if err := s.w.app.db.Select(s.t.Context(), &rows, `SELECT action FROM audit_events WHERE action LIKE 'raise.%' ORDER BY id`); err != nil {
		s.fatalf("%v", err)
	}
	if got := strings.Join(rows, " "); got != m[1] {
		s.fatalf("%s", fmt.Sprintf("the log says %s", got))
	}
}

// deafTool is a tool that heeds no end of its time.
type deafTool struct {
	began, end chan struct{}
	gone       chan struct{} // the test is over
}

func newDeafTool(t *testing.T) *deafTool {
	d := &deafTool{began: make(chan struct{}, 10), end: make(chan struct{}), gone: make(chan struct{})}
	t.Cleanup(func() { close(d.gone) })
	return d
}

func (d *deafTool) tool() tool.Tool {
	return tool.Tool{Name: "Deaf", About: "works", Schema: json.RawMessage(`{"type":"object"}`), Kind: tool.Inner, Timeout: time.Hour,
		Run: func(context.Context, *tool.Call) (tool.Result, error) {
			d.began <- struct{}{}
			select {
			case <-d.end:
			case <-d.gone:
			}
			return tool.Result{Text: "worked"}, nil
		}}
}

func (s *script) tool(m []string) {
	c := s.deaf.began
	if m[1] == "ends" {
		close(s.deaf.end)
		return
	}
	select {
	case <-c:
	case <-time.After(patience):
		s.fatalf("it was not called")
	}
}
