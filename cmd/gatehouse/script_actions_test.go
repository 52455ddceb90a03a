package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/core/llm/llmtest"
)

// must ends the script with an error of the platform's.
func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.fatalf("%v", err)
	}
}

// actor is who does something, the scene and the room: "ada", "ada in Garden".
func (s *script) actor(text string) (sc scene, who, room string) {
	name, group, in := strings.Cut(text, " in ")
	if !in {
		group = name
	}
	who, _, _ = strings.Cut(s.person(name), "@")
	sc, room, _ = s.room(group)
	return sc, who, room
}

func (s *script) gathers(m []string) {
	s.scenes[s.platform].gather(m[2], strings.Fields(m[3]), m[1] == "forum")
}

func (s *script) posts(actor string, p post) {
	sc, who, room := s.actor(actor)
	s.must(sc.post(who, room, p))
}

// about is the newest message of a room with text in it.
func (s *script) about(sc scene, room, text string) line {
	s.t.Helper()
	var found line
	s.await(sc, room, "a message with "+text, func(all []line) bool {
		for _, l := range slices.Backward(all) {
			if found = l; strings.Contains(l.text, text) {
				return true
			}
		}
		return false
	})
	return found
}

func (s *script) edits(m []string) {
	sc, who, room := s.actor(m[1])
	s.must(sc.edit(who, room, s.about(sc, room, m[2]).id, m[3]))
}

func (s *script) reacts(m []string) {
	sc, who, room := s.actor(m[1])
	s.must(sc.react(who, room, s.about(sc, room, m[3]).id, m[2]))
}

func (s *script) replies(m []string) {
	sc, _, room := s.actor(m[1])
	s.posts(m[1], post{text: m[3], replyTo: s.about(sc, room, m[2]).id})
}

func (s *script) sends(m []string) {
	p := post{text: m[3]}
	for _, name := range strings.Fields(m[2]) {
		data, ok := s.files[name]
		switch {
		case path.Ext(name) == ".png":
			data = string(smallPicture(s.t))
		case !ok:
			s.fatalf("the script has no file %s", name)
		}
		p.files = append(p.files, enclosed{name, []byte(data)})
	}
	s.posts(m[1], p)
}

// button waits for a message with such a button.
func (s *script) button(sc scene, room, label string) (id string, at int) {
	s.await(sc, room, "a button "+label, func(all []line) bool {
		for _, l := range all {
			if i := slices.IndexFunc(l.buttons, func(b string) bool { return strings.Contains(b, label) }); l.bot && i >= 0 {
				id, at = l.id, i
			}
		}
		return id != ""
	})
	return id, at
}

func (s *script) presses(m []string) {
	sc, who, room := s.actor(m[1])
	id, at := s.button(sc, room, m[2])
	s.must(sc.press(who, room, id, at))
}

// quoted: the message that was looked at last answers the one with the text.
func (s *script) quoted(m []string) {
	sc, room, _ := s.room(m[2])
	for _, l := range sc.read(room) {
		if l.id == s.last.replyTo && strings.Contains(l.text, m[1]) {
			return
		}
	}
	s.fatalf("it answers message %q", s.last.replyTo)
}

// handed: the bot's next message has a file of that name.
func (s *script) handed(m []string) {
	sc, room, key := s.room(m[1])
	s.await(sc, room, "the bot sends "+m[2], func(all []line) bool {
		for i, l := range all {
			if i >= s.seen[key] && l.bot && slices.Contains(l.files, m[2]) {
				s.seen[key], s.last = i+1, l
				return true
			}
		}
		return false
	})
}

// shown: a message of the bot, or what it is writing, comes to say it.
func (s *script) shown(m []string) {
	sc, room, _ := s.room(m[1])
	s.await(sc, room, "a message of the bot comes to say "+m[2], func(all []line) bool {
		for _, l := range append(all, sc.drafts(room)...) {
			if l.bot && strings.Contains(l.text, m[2]) {
				s.last = l
				return true
			}
		}
		return false
	})
}

func (s *script) modelUses(m []string) {
	s.calls++
	s.model.Script(llmtest.CallTool(fmt.Sprintf("call_%d", s.calls), m[1], m[2]))
}

func (s *script) inVault(m []string) {
	b, err := os.ReadFile(filepath.Join(s.w.cfg.VaultPath, filepath.FromSlash(m[1])))
	switch {
	case m[2] == "" && os.IsNotExist(err):
	case err != nil:
		s.fatalf("%v", err)
	case m[2] == "" || !strings.Contains(string(b), m[2]):
		s.fatalf("the file says %q", b)
	}
}
