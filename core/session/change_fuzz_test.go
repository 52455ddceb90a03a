package session

import (
	"encoding/json"
	"fmt"
	"testing"

	"gatehouse/core"
	"gatehouse/core/permission"
)

// FuzzAGuestsChange: whatever a guest writes into a session's metadata, what is
// permitted there stays what it was.
func FuzzAGuestsChange(f *testing.F) {
	for _, metadata := range []string{
		`{"permissions":{"bash":true}}`, `{"Permi\u017f\u017fions":{"bash":true,"trust_auto":true}}`, `{"a":{"permissions":1}}`,
		`{"permissions":null,"PERMISSIONS":{}}`, `{"permissions":null}`, `{"\ud800":1,"":[]}`, `{"permissions ":{"bash":true}}`, `[`,
	} {
		f.Add(metadata)
	}
	defaults := permission.ForGuest(7)
	f.Fuzz(func(t *testing.T, metadata string) {
		var given map[string]json.RawMessage
		if json.Unmarshal([]byte(metadata), &given) != nil {
			return
		}
		for _, had := range []string{``, `{"permissions":{"read":["A/**"],"trust_mode":false}}`} {
			was := Detail{Session: Session{AgentType: "vault-agent", TrustLevel: core.Vault, Metadata: json.RawMessage(had)}}
			now, err := new(Store).changed(was, Change{Metadata: given})
			if err != nil {
				continue
			}
			before, after := permission.ParseConfigured(was.Metadata, defaults), permission.ParseConfigured(now.Metadata, defaults)
			if fmt.Sprint(before) != fmt.Sprint(after) || was.TrustAuto(true) != now.TrustAuto(true) || was.TrustAuto(false) != now.TrustAuto(false) || len(now.Metadata) > 0 && !json.Valid(now.Metadata) {
				t.Errorf("%s over %s: %s", metadata, had, now.Metadata)
			}
		}
	})
}
