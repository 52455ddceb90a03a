package telegramtest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
)

// BenchmarkConversation is a message from a person and the bot's answer, over
// HTTP: what the simulator itself costs a load test.
func BenchmarkConversation(b *testing.B) {
	s := telegramtest.New(telegramtest.Options{FloodOff: true})
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	url := s.URL() + "/bot" + s.Token() + "/sendMessage"
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		u := s.NewUser(fmt.Sprint("P", n.Add(1)))
		body := fmt.Appendf(nil, `{"chat_id":%d,"text":"An answer of middling length without any markup in it."}`, u.ID())
		for pb.Next() {
			u.Send("A question of middling length.")
			res, err := client.Post(url, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "conversations/s")
}
