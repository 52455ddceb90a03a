package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *telegramScene) told(who, _ string) (out []string) {
	for _, r := range s.w.sim.Requests(0, "answercallbackquery") {
		if r.Params["text"] != "" && s.asked[r.Params["callback_query_id"]] == who {
			out = append(out, r.Params["text"])
		}
	}
	return out
}

func (s *discordScene) told(who, room string) (out []string) {
	for _, m := range s.sim.History(s.in(room)) {
		if m.OnlyFor == s.people[who].ID() {
			out = append(out, asSeen.Replace(m.Text))
		}
	}
	return out
}

func download(url string) string {
	r, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

// leaves are so many short sentences, in paragraphs.
func leaves(n string) string {
	var b strings.Builder
	most, _ := strconv.Atoi(n)
	for i := range most {
		fmt.Fprintf(&b, "leaf%d is steeped. ", i)
		if i%20 == 19 {
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

func (s *script) pressesFirst(m []string) {
	sc, who, room := s.actor(m[1])
	id, at := "", 0
	s.await(sc, room, "a button "+m[2], func(all []line) bool {
		for _, l := range all {
			if i := slices.IndexFunc(l.buttons, func(b string) bool { return strings.Contains(b, m[2]) }); l.bot && i >= 0 {
				id, at = l.id, i
				return true
			}
		}
		return false
	})
	s.must(sc.press(who, room, id, at))
}

func (s *script) told(m []string) {
	sc, who, room := s.actor(m[1])
	key := "told " + m[1]
	s.w.until("told "+m[2]+" after "+s.where, func() bool {
		for i, text := range sc.told(who, room) {
			if i >= s.seen[key] && strings.Contains(text, m[2]) {
				s.seen[key] = i + 1
				return true
			}
		}
		return false
	})
}

func (s *script) allButtons(m []string) {
	sc, room, _ := s.room(m[1])
	s.await(sc, room, "all buttons "+m[2], func(all []line) bool {
		var labels []string
		for _, l := range all {
			labels = append(labels, l.buttons...)
		}
		return strings.Join(labels, " | ") == m[2]
	})
}

func (s *script) file(m []string) {
	sc, room, _ := s.room(m[1])
	s.await(sc, room, "a file "+m[2], func(all []line) bool {
		for _, l := range slices.Backward(all) {
			if l.bot && len(l.files) > 0 {
				return l.files[0] == m[2] && strings.Contains(l.content, m[3])
			}
		}
		return false
	})
}
