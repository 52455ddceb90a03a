package speech

import (
	"testing"

	"gatehouse/configs"
)

func TestTheModelOfACommandIsNotNamedToClients(t *testing.T) {
	for want, cfg := range map[string]*configs.Config{
		"whisper-1": {TranscribeCommand: "whisper-cli -m {model} {file}", TranscribeModel: "/srv/models/base.bin"},
		"large-v3":  {TranscribeURL: "http://127.0.0.1:9000", TranscribeModel: "large-v3"},
	} {
		if got := Model(cfg); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
