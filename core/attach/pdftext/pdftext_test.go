package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func reader(t testing.TB) *Reader {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return New(self)
}

// file is a PDF of these objects, the first of which is 1; a trailer in front
// of the usual one is added to it.
func file(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, xref)
	return b.Bytes()
}

func stream(filter, data string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), filter, data)
}

// pages is a PDF with these content streams, one a page.
func pages(contents ...string) []byte {
	kids, objects := "", []string{"<< /Type /Catalog /Pages 2 0 R >>", ""}
	objects = append(objects, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for _, c := range contents {
		n := len(objects) + 1
		kids += fmt.Sprintf("%d 0 R ", n)
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", n+1), c)
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(contents), kids)
	return file("", objects...)
}

func words(text string) string { return stream("", "BT /F1 12 Tf 72 700 Td ("+text+") Tj ET") }

func TestTheTextOfAPDFIsReadPageByPage(t *testing.T) {
	got, err := reader(t).Text(t.Context(), pages(words("Hello tea."), stream("", ""), words("And milk.")))
	if err != nil || got != (Text{"Hello tea.\n\nAnd milk.", 3, 3}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// form is text that a page draws with Do; more stands in its dictionary.
func form(more, data string) string {
	return stream("/Type /XObject /Subtype /Form /BBox [0 0 600 800] "+more, data)
}

// withForms is a page with these objects after it, the first of which is 6. The
// page knows number 6 as /A and 7 as /B.
func withForms(content string, objects ...string) []byte {
	return file("", append([]string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [4 0 R] >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /A 6 0 R /B 7 0 R >> >> /Contents 5 0 R >>", stream("", content)}, objects...)...)
}

func TestTheTextOfFormsStandsWhereThePageDrawsThem(t *testing.T) {
	const own = "/Resources << /Font << /Own 3 0 R >> /XObject << /Inner 7 0 R >> >> "
	above, below := "BT /F1 12 Tf 72 700 Td (Above.) Tj ET ", " BT /F1 12 Tf 72 600 Td (Below.) Tj ET"
	for _, c := range []struct {
		name, content string
		objects       []string
		want          string
	}{
		{"one with its own font, in a line with the page's words", above + "q 1 0 0 1 150 700 cm /A Do Q" + below,
			[]string{form(own, "BT /Own 12 Tf (Inside.) Tj ET"), form("", "")}, "Above. Inside.\n\nBelow."},
		{"moved by its matrix, with the page's font", above + "/A Do" + below,
			[]string{form("/Matrix [1 0 0 1 72 650]", "BT /F1 12 Tf (Inside.) Tj ET"), form("", "")}, "Above.\n\nInside.\n\nBelow."},
		{"one in another", above + "/A Do" + below,
			[]string{form(own, "q 2 0 0 2 72 650 cm /Inner Do Q"), form("/Resources << /Font << /F1 3 0 R >> >>", "BT /F1 6 Tf (Innermost.) Tj ET")}, "Above.\n\nInnermost.\n\nBelow."},
		{"what it leaves open is closed with it", above + "/A Do" + below,
			[]string{form("", "Q Q q 1 0 0 1 900 900 cm BT /F1 40 Tf 3 Tc"), form("", "")}, "Above.\n\nBelow."},
		{"a damaged one", above + "/A Do" + below,
			[]string{form("/Filter /NoSuchFilter", "BT /F1 12 Tf (Inside.) Tj ET"), form("", "")}, "Above.\n\nBelow."},
		{"a picture, and one that is not there", above + "/A Do /Z Do" + below,
			[]string{stream("/Type /XObject /Subtype /Image /Width 1 /Height 1", "BT /F1 12 Tf (Inside.) Tj ET"), form("", "")}, "Above.\n\nBelow."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := reader(t).Text(t.Context(), withForms(c.content, c.objects...))
			if err != nil || got != (Text{c.want, 1, 1}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Forms that draw themselves, or each the next one twice, are followed so far
// and no farther; what the page says besides is read.
func TestFormsThatDrawOneAnotherEnd(t *testing.T) {
	again := "/Resources << /Font << /F1 3 0 R >> /XObject << /A 6 0 R /B 7 0 R >> >> "
	for name, objects := range map[string][]string{
		"itself": {form(again, "BT /F1 12 Tf 72 690 Td (Round.) Tj ET /A Do"), form("", "")},
		"each the other twice": {form(again, "BT /F1 12 Tf 72 690 Td (Round.) Tj ET /B Do /B Do"),
			form(again, "/A Do /A Do")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := reader(t).Text(t.Context(), withForms("/A Do BT /F1 12 Tf 72 600 Td (Below.) Tj ET", objects...))
			if n := strings.Count(got.Text, "Round."); err != nil || n < 5 || n > maxForms || !strings.HasSuffix(got.Text, "Below.") {
				t.Errorf("%d times, %d bytes, %v", n, len(got.Text), err)
			}
		})
	}
}

// A browser's print has no blanks and no plain letters in it: places and
// tables of letters.
func TestWhatABrowserPrintsIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/browser.pdf")
	if err != nil {
		t.Fatal(err)
	}
	got, err := reader(t).Text(t.Context(), data)
	if err != nil || got.Pages != 2 || got.Read != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range []string{"Quarterly report\n", "Grüße aus Köln: the kettle sang three times, and nobody looked at the clock.", "Tea", "42", "Second page"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("%q is not in %q", want, got.Text)
		}
	}
}

func TestALongPDFIsReadAsFarAsThereIsRoom(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = words(fmt.Sprint("page", i, strings.Repeat(" x", 2000)))
	}
	got, err := reader(t).Text(t.Context(), pages(many...))
	if err != nil || len(got.Text) > MaxText || got.Pages != 40 || got.Read < 5 || got.Read >= 40 || !strings.Contains(got.Text, fmt.Sprint("page", got.Read-1)) {
		t.Errorf("%d bytes, %d of %d pages, %v", len(got.Text), got.Read, got.Pages, err)
	}
}

func TestWhatCannotBeReadOfAPDFIsSaid(t *testing.T) {
	var bomb bytes.Buffer // of a few kilobytes, 110 MB to hold
	z := zlib.NewWriter(&bomb)
	_, _ = z.Write([]byte("BT /F1 12 Tf "))
	letters := []byte(strings.Repeat("("+strings.Repeat("a", 1000)+") ", 1000)) // and nobody takes them
	for range 110 {
		_, _ = z.Write(letters)
	}
	_ = z.Close()
	circle := file("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 9 /Kids [2 0 R] >>")
	locked := file("/ID [(0123456789abcdef) (0123456789abcdef)] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ("+strings.Repeat("o", 32)+") /U ("+strings.Repeat("u", 32)+") >>",
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 0 /Kids [] >>")
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"nothing", nil, "it is damaged"}, {"not one", []byte("%PDF-1.7 nothing"), "it is damaged"},
		{"half", pages(words("x"))[:200], "it is damaged"},
		{"locked", locked, "it is protected with a password"},
		{"larger than taken", make([]byte, MaxFile+1), "it is larger than"},
		{"a circle", circle, "it takes too long to read"},
		{"a bomb", pages(stream("/Filter /FlateDecode", bomb.String())), "it is damaged, or takes too much to read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := reader(t)
			r.memory = 96 << 20       // so that the bomb may be small
			r.time = 10 * time.Minute // the process ends by itself, however slow the machine
			if c.name == "a circle" {
				r.time = time.Second
			}
			got, err := r.Text(t.Context(), c.data)
			if core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), c.says) || got.Text != "" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestReadingAPDFEndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reader(t).Text(ctx, pages(words("x"))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAPDFOfPicturesHasNoTextAndIsNoError(t *testing.T) {
	got, err := reader(t).Text(t.Context(), pages(stream("", "q 1 0 0 1 0 0 cm Q")))
	if err != nil || got != (Text{"", 1, 1}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzWhateverAPDFHoldsItIsReadWithinBounds(f *testing.F) {
	f.Add(pages(words("Hello")))
	f.Add(pages(stream("", "BT /F1 12 Tf 1 0 0 1 0 0 Tm [(a) -300 (b)] TJ T* (c) ' ET")))
	f.Add(withForms("/A Do", form("/Matrix [1 0 0 1 9 9] /Resources << /Font << /F1 3 0 R >> /XObject << /A 6 0 R /B 7 0 R >> >>", "BT /F1 12 Tf (x) Tj ET /B Do /A Do"), form("", "q BT (y) ' ET")))
	f.Add(file("/Encrypt 3 0 R", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [2 0 R] >>", "<<>>"))
	f.Add([]byte("%PDF-1.7"))
	r := reader(f)
	r.time = time.Second / 4
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := r.Text(t.Context(), data)
		if err != nil && core.KindOf(err) != core.Invalid {
			t.Fatal(err)
		}
		if len(got.Text) > MaxText || !utf8.ValidString(got.Text) || got.Read > min(got.Pages, MaxPages) {
			t.Errorf("%d bytes, %d of %d pages", len(got.Text), got.Read, got.Pages)
		}
	})
}
