package pdftext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// word is the first argument of our own program that Main answers.
const word = "gatehouse:pdf"

// Main is called before anything else in main (and TestMain): where this
// process was started by a Reader it does that work and never returns;
// otherwise it does nothing.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != word {
		return
	}
	memory, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(1)
	}
	limit(memory)
	debug.SetMaxStack(64 << 20)
	time.AfterFunc(maxTime, func() { os.Exit(1) }) // also when who asked is gone
	go watch(memory)
	data, err := io.ReadAll(io.LimitReader(os.Stdin, MaxFile+1))
	if err != nil {
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(read(data)); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watch ends the process when it holds too much.
func watch(most uint64) {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(10 * time.Millisecond) {
		if metrics.Read(held); held[0].Value.Uint64() > most {
			os.Exit(1)
		}
	}
}

// read returns the text of a PDF, in this process.
func read(data []byte) (out outcome) {
	defer func() {
		if x := recover(); x != nil {
			out = outcome{Fault: isDamaged}
		}
	}()
	doc, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err == pdf.ErrInvalidPassword {
		return outcome{Fault: isLocked}
	}
	if err != nil {
		return outcome{Fault: isDamaged}
	}
	out.Pages = min(max(0, doc.NumPage()), math.MaxInt32)
	var all strings.Builder
	for out.Read < min(out.Pages, MaxPages) {
		text := tidy(page(doc, out.Read+1))
		if all.Len()+len(text)+2 > MaxText {
			if all.Len() == 0 {
				all.WriteString(strings.ToValidUTF8(text[:MaxText], "")) // as much of the first page as there is room for
			}
			break
		}
		out.Read++
		if text != "" && all.Len() > 0 {
			all.WriteString("\n\n")
		}
		all.WriteString(text)
	}
	out.Text.Text = all.String()
	return out
}

// page returns what one page states; of a page that is not there nothing.
func page(doc *pdf.Reader, n int) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return lines(letters(doc.Page(n)))
}

// lines joins letters: another height is another line, and a gap is a
// blank, since many PDFs have no blanks.
func lines(letters []pdf.Text) string {
	var b strings.Builder
	var was pdf.Text
	end, doubt := 0.0, 0.0 // where the letters before end, and how much that may be wrong
	for _, l := range letters {
		if l.S == "\n" {
			continue
		}
		size := max(math.Abs(l.FontSize), 1)
		switch gap, down := l.X-end, math.Abs(l.Y-was.Y); {
		case b.Len() == 0:
		case down > 2*size:
			b.WriteString("\n\n")
		case down > size/2:
			b.WriteByte('\n')
		case (l.W != 0 || l.X != was.X) && (gap > size/6+doubt || gap < -size-doubt) && l.S != " " && was.S != " ":
			b.WriteByte(' ')
		}
		b.WriteString(l.S)
		if b.Len() > 4*MaxText {
			break
		}
		switch {
		case l.W != 0:
			end, doubt = l.X+l.W, 0
		case was.W == 0 && l.X == was.X && l.Y == was.Y: // the widths of this font are not known
			end, doubt = end+size*width(l.S), doubt+size*width(l.S)/10
		default:
			end, doubt = l.X+size*width(l.S), size/5
		}
		was = l
	}
	return b.String()
}

// width returns about how wide a letter is, for a size of one.
func width(letter string) float64 {
	r, _ := utf8.DecodeRuneInString(letter)
	switch {
	case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
		return 0.3
	case strings.ContainsRune("mwMW@%", r):
		return 0.86
	case unicode.IsUpper(r):
		return 0.68
	case r >= 0x2e80: // East Asian
		return 1
	}
	return 0.53
}

// tidy returns text without what is not to be seen, and without blanks at line ends.
func tidy(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return -1
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	var b strings.Builder
	empty := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			fmt.Fprint(&b, strings.Repeat("\n", 1+min(empty, 1)))
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}
