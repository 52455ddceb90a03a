package upload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"gatehouse/core/attach"
	"gatehouse/core/vault"
)

func drop(s *extractor) {
	for _, a := range s.aside {
		a.Drop()
	}
}

func TestDecodeReadsEveryKindOfBase64(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		valid            bool
	}{
		{"padded", "aGVsbG8=", "hello", true},
		{"not padded", "aGVsbG8", "hello", true},
		{"in lines", `aGV\r\nsbG8=\n`, "hello", true},
		{"blanks", "aGVs bG8=", "hello", true},
		{"for URLs", "-_8", "\xfb\xff", true},
		{"standard", "+/8=", "\xfb\xff", true},
		{"escaped", `aGVs\u0062G8=`, "hello", true},
		{"escaped slash", `+\/8`, "\xfb\xff", true},
		{"empty", "", "", true},
		{"start of a data URL that is base64", "data", "u\xabZ", true},
		{"data URL", "data:text/plain;base64,aGVsbG8=", "hello", true},
		{"data URL in escapes", `\u0064ata:;base64,aGVsbG8=`, "hello", true},
		{"data URL without base64", "data:text/plain,hello", "", false},
		{"data URL without a comma", "data:text/plain", "", false},
		{"data URL with a long head", "data:" + strings.Repeat("x", 300) + ";base64,eA", "", false},
		{"after the padding", "aGVsbG8=eA", "", false},
		{"one symbol too many", "aGVsb", "", false},
		{"another character", "aGV*bG8", "", false},
		{"another escape", `aGVs\u00e9`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			in := bufio.NewReader(strings.NewReader(c.text + `",more`))
			valid, err := decode(&got, in)
			if err != nil || valid != c.valid || valid && got.String() != c.want {
				t.Errorf("%q, %v, %v, want %q, %v", got.String(), valid, err, c.want, c.valid)
			}
			if rest, _ := io.ReadAll(in); string(rest) != ",more" {
				t.Errorf("%q is left", rest)
			}
		})
	}
	if _, err := decode(io.Discard, bufio.NewReader(strings.NewReader("aGVs"))); err == nil {
		t.Error("a string without an end was read")
	}
}

// symbolsOf is a reader of n symbols of base64.
type symbolsOf struct{ n int }

func (r *symbolsOf) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n)
	for i := range p[:n] {
		p[i] = 'Q'
	}
	r.n -= n
	return n, nil
}

// TestMemoryIsBoundedForTheLargestBody reads 32 MiB of attachments; encoding/json
// would hold 93 MB for a moment.
func TestMemoryIsBoundedForTheLargestBody(t *testing.T) {
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := attach.New(v, nil, nil)
	one := func() io.Reader {
		return io.MultiReader(strings.NewReader(`{"name":"a","data":"`), &symbolsOf{MaxFiles / 2 / 3 * 4}, strings.NewReader(`"}`))
	}
	s := &extractor{in: bufio.NewReaderSize(io.MultiReader(strings.NewReader(`{"attachments":[`), one(), strings.NewReader(","), one(), strings.NewReader("]}")), 32<<10),
		begin: func() (*attach.Incoming, error) { return k.Begin(context.Background(), 7, 0) }}
	defer drop(s)
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	if err := s.extract(); err != nil || len(s.aside) != 2 || !s.aside[0].valid || !s.aside[1].valid {
		t.Fatal(err, s.aside)
	}
	runtime.ReadMemStats(&is)
	if got := is.TotalAlloc - was.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes were allocated for a body of %d, want at most 8 MiB", got, MaxFiles/3*4)
	}
}

// FuzzJSONKeepsEverythingButData checks that a body that is valid JSON is valid
// without the data of its attachments, and unchanged when it has none.
func FuzzJSONKeepsEverythingButData(f *testing.F) {
	for _, s := range []string{
		`{"message":"a","attachments":[{"name":"x","data":"aGVsbG8="}]}`, `{"attachments":[{"d\u0061ta":"aGVs\/bG8","Data":1}],"attachments":[]}`,
		`[{"attachments":[{"data":"x"}]}]`, `{"a":{"attachments":[{"data":"x"}]},"Attachments":[{"DATA":"eA"}, "data"]}`, `{"a\"b":"\\","attachments":[[{"data":"x"}],{"x":{"data":"y"},"data":"data:;base64,eA=="}]}`,
		`{"data":"x"}`, `"x"`, `{"attachments":[{"data":"\u00e9"}]}`, `{"attachments" : [ { "data" : "e\nA" } ] }`,
	} {
		f.Add([]byte(s))
	}
	v, err := vault.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	k := attach.New(v, nil, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &extractor{in: bufio.NewReader(bytes.NewReader(body)), begin: func() (*attach.Incoming, error) { return k.Begin(context.Background(), 7, 1<<20) }}
		defer drop(s)
		err := s.extract()
		if !json.Valid(body) {
			if err == nil && json.Valid(s.out.Bytes()) {
				var v map[string]any // an escape or character inside base64 is not judged as JSON
				if len(s.aside) == 0 && json.Unmarshal(s.out.Bytes(), &v) == nil {
					t.Errorf("%q became valid: %q", body, s.out.Bytes())
				}
			}
			return
		}
		if err != nil {
			return // a bound
		}
		var was, is any
		if json.Unmarshal(body, &was) != nil || json.Unmarshal(s.out.Bytes(), &is) != nil {
			t.Fatalf("%q became %q", body, s.out.Bytes())
		}
		if len(s.aside) == 0 && !bytes.Equal(body, s.out.Bytes()) {
			t.Errorf("%q became %q", body, s.out.Bytes())
		}
		if strings.Count(s.out.String(), `"@`) < len(s.aside) {
			t.Errorf("%d were stored of %q: %q", len(s.aside), body, s.out.Bytes())
		}
	})
}
