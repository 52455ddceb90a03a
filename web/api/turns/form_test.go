package turns

import (
	"net/http"
	"testing"
)

func TestAcceptDecidesTheForm(t *testing.T) {
	for accept, want := range map[string]form{
		"": asStream, "*/*": asStream, "text/event-stream": asStream, "application/json": asJSON, "application/json, */*": asJSON,
		"text/event-stream, application/json": asStream, "application/json;q=0.5, text/event-stream": asStream,
		"application/json, text/plain, */*": asJSON, "text/event-stream;q=0.1, application/json;q=0.2": asJSON, "application/*": asJSON,
		"text/html": 99, "text/event-stream;q=0": 99,
	} {
		t.Run(accept, func(t *testing.T) {
			r, _ := http.NewRequest("POST", "/", nil)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			got, err := formOf(r)
			if (err != nil) != (want == 99) || err == nil && got != want {
				t.Errorf("%v %v, want %v", got, err, want)
			}
		})
	}
}
