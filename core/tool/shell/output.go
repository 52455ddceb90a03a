package shell

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

// An output keeps the beginning and the end of what a command prints; what it
// holds is bounded by 8 × MaxOutput bytes.
type output struct {
	clock    core.Clock
	progress func(string)

	head, tail []byte
	left       int // characters that are in neither
	told       time.Time
}

const (
	halfBytes     = MaxOutput / 2 * utf8.UTFMax // of each half: enough for its characters
	progressEvery = 250 * time.Millisecond
	progressRunes = 200
)

// readAll reads r to its end.
func (o *output) readAll(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			o.add(buf[:n])
			o.show(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (o *output) add(b []byte) {
	if room := halfBytes - len(o.head); room > 0 {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	o.tail = append(o.tail, b...)
	if over := len(o.tail) - halfBytes; over > 0 {
		o.left += utf8.RuneCount(o.tail[:over])
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

// show reports the last line, at intervals.
func (o *output) show(b []byte) {
	now := o.clock.Now()
	if o.progress == nil || now.Sub(o.told) < progressEvery && !o.told.IsZero() {
		return
	}
	line := bytes.TrimSpace(b)
	if i := bytes.LastIndexAny(line, "\r\n"); i >= 0 {
		line = line[i+1:]
	}
	if text := core.CutRunes(strings.ToValidUTF8(string(line), "\uFFFD"), progressRunes); text != "" {
		o.told = now
		o.progress(text)
	}
}

// String returns what was printed, at most MaxOutput characters and a sentence.
func (o *output) String() string {
	if o.left == 0 {
		all := []rune(clean(append(bytes.Clone(o.head), o.tail...)))
		if len(all) <= MaxOutput {
			return string(all)
		}
		return cut(all[:MaxOutput/2], all[len(all)-MaxOutput/2:], len(all)-MaxOutput)
	}
	head, tail := []rune(clean(o.head)), []rune(clean(o.tail))
	h, t := min(len(head), MaxOutput/2), max(0, len(tail)-MaxOutput/2)
	return cut(head[:h], tail[t:], o.left+len(head)-h+t)
}

func cut(head, tail []rune, left int) string {
	return fmt.Sprintf("%s\n… %d characters left out …\n%s", string(head), left, string(tail))
}

// clean returns text that every client can show.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "")
}
