package discordtest_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"gatehouse/connectors/discord/discordtest"
)

// BenchmarkExchange is one message of a person over the gateway and one
// answer over REST: the simulator's own share of any figure taken with it.
func BenchmarkExchange(b *testing.B) {
	s := discordtest.New(discordtest.Options{FloodOff: true})
	defer s.Close()
	ada := s.NewUser("Ada")
	dm := ada.DM()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL(), "http")+"/gateway?v=10&encoding=json", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ws.Close()
	ws.ReadMessage() // HELLO
	ws.WriteJSON(m{"op": 2, "d": m{"token": s.Token(), "intents": discordtest.IntentDirect, "properties": m{}}})
	ws.ReadMessage() // READY
	for b.Loop() {
		ada.Send("hello")
		if _, _, err := ws.ReadMessage(); err != nil {
			b.Fatal(err)
		}
		req, _ := http.NewRequest("POST", s.URL()+"/api/v10/"+messages(dm), bytes.NewReader([]byte(`{"content":"hello"}`)))
		req.Header = http.Header{"Authorization": {"Bot " + s.Token()}, "User-Agent": {"DiscordBot (x, 1)"}, "Content-Type": {"application/json"}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			b.Fatal(res.Status)
		}
		ws.ReadMessage() // its own message
	}
}
