package source_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"gatehouse/core"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/source"
)

// FuzzOpenFile opens anything as a file to import.
func FuzzOpenFile(f *testing.F) {
	var zip bytes.Buffer
	if err := importertest.Zip(&zip, func(w io.Writer) error { return importertest.New(1).Claude(w, 2) }, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(zip.Bytes())
	for _, text := range []string{`[{"uuid":"a","chat_messages":[{"uuid":"m","sender":"human","text":"t"}]},{"mapping":{}}]`, `{"conversations":[1,"a",null,{"a":[{}]}]}`,
		`{"type":"user","sessionId":"a"}`, "---\nid: a\n---\n### User | 2025-12-07T04:39:47Z\n\nx", "[[[[", `{"a":"\"]}`, "PK\x03\x04", "[]]", "[1,"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := source.OpenFile(bytes.NewReader(data), "x", int64(len(data)))
		if err != nil {
			if k := core.KindOf(err); k != core.Invalid && k != core.TooLarge {
				t.Error(err)
			}
			return
		}
		n := 0
		err = s.Each(context.Background(), func(i source.Item) error {
			n++
			if (i.Tree != nil) == (i.Err != nil) && i.Copy == nil {
				t.Errorf("%+v", i)
			}
			return nil
		})
		if n > len(data)+1 {
			t.Errorf("%d items of %d bytes", n, len(data))
		}
		// What a reader of JSON takes, this one splits in as many elements.
		var all []json.RawMessage
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) && json.Unmarshal(data, &all) == nil && (err != nil || n != len(all)) {
			t.Errorf("%d items, %v, want %d of %q", n, err, len(all), data)
		}
	})
}
