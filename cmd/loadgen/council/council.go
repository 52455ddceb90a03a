// Package council is the members of a council for measurements: each a server of its own
// that answers, rates, judges and reviews after the same delay, and is timed.
package council

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds what is read of one request, in bytes.
const maxRequest = 4 << 20

// Members are the servers. They are safe for concurrent use.
type Members struct {
	delay   time.Duration
	servers []*http.Server
	file    strings.Builder
	names   []string

	mu    sync.Mutex
	took  map[string]time.Duration // of the slowest call, by stage
	calls int
}

// Open starts n members on loopback, which take delay for each call. Close them.
func Open(n int, delay time.Duration) (*Members, error) {
	m := &Members{delay: delay, took: map[string]time.Duration{}}
	m.file.WriteString("providers:\n")
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		s := &http.Server{Handler: http.HandlerFunc(m.serve), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = s.Serve(l) }()
		name := fmt.Sprintf("member%d", i+1)
		m.servers, m.names = append(m.servers, s), append(m.names, name+"/load")
		fmt.Fprintf(&m.file, "  - {name: %s, kind: openai, base_url: %q, models: [{name: load, input: 1, output: 1}]}\n", name, "http://"+l.Addr().String()+"/v1")
	}
	return m, nil
}

// Providers returns the content of a file for GATEHOUSE_PROVIDERS_FILE.
func (m *Members) Providers() string { return m.file.String() }

// Names returns the members' names.
func (m *Members) Names() []string { return m.names }

// Close ends the servers.
func (m *Members) Close() (err error) {
	for _, s := range m.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Taken returns the time of the slowest call of each stage, added up, and the number of
// calls, since it was called before. It means something while one question is asked at a
// time.
func (m *Members) Taken() (slowest time.Duration, calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.took {
		slowest += d
	}
	calls = m.calls
	clear(m.took)
	m.calls = 0
	return slowest, calls
}

type request struct {
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	Format struct {
		Schema struct {
			Name string `json:"name"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

func (m *Members) serve(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if r.Method != http.MethodPost {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"load","object":"model"}]}`)
		return
	}
	var req request
	if err := json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, `{"error":{"message":"not a request","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(m.delay):
	case <-r.Context().Done():
		return
	}
	stage := req.Format.Schema.Name
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range reply(stage, req.Messages[len(req.Messages)-1].Content) {
		text, _ := json.Marshal(piece)
		chunk(w, `{"content":`+string(text)+`}`, "null")
	}
	chunk(w, `{}`, `"stop"`)
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"load\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":40,\"total_tokens\":90}}\n\n")
	m.mu.Lock() // the next request can be here before the last line is
	m.took[stage] = max(m.took[stage], time.Since(began))
	m.calls++
	m.mu.Unlock()
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// answer is what every member says: the council has nothing to dispute.
const answer = "The bridge opened in 1932, after eight years of work, and its arch still carries both the road and the railway."

// reply returns the pieces of what a member says in a stage: "" is the answer.
func reply(stage, asked string) []string {
	switch stage {
	case "ratings":
		var list []string
		for i := range strings.Count(asked, "<answer-") {
			list = append(list, fmt.Sprintf(`{"answer":"%c","score":0.9}`, 'A'+i))
		}
		return []string{`{"ratings":[` + strings.Join(list, ",") + `]}`}
	case "verdict":
		return []string{`{"verdict":"agree","points":[]}`}
	case "review":
		return []string{`{"verdict":"correct","issues":[],"correction":""}`}
	}
	return append(strings.SplitAfter(answer, " "), "\nREPORT: {\"confidence\": 0.9, \"domain\": \"history\"}")
}

// chunk is one event of the answer.
func chunk(w http.ResponseWriter, delta, reason string) {
	fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1767323045,\"model\":\"load\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, reason)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
