package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core/llm"
)

// A change of one tool's words, or of the order, must reach the server.
func TestChangedToolsAreNotTakenFromTheCache(t *testing.T) {
	var c ToolCache
	for i := range 3 * maxToolSets {
		tools := []llm.Tool{{Name: "a", Schema: json.RawMessage(`{}`)}, {Name: "b", About: fmt.Sprint("about ", i)}}
		if got, err := c.Encode(tools, func(t []llm.Tool) any { return t }); err != nil || !strings.Contains(string(got), fmt.Sprintf(`"about %d"`, i)) {
			t.Fatalf("%s, %v", got, err)
		}
		tools[0], tools[1] = tools[1], tools[0]
		if got, err := c.Encode(tools, func(t []llm.Tool) any { return t }); err != nil || !strings.HasPrefix(string(got), `[{"Name":"b"`) {
			t.Fatalf("in the other order: %s, %v", got, err)
		}
		if len(c.sets) > maxToolSets {
			t.Fatalf("%d sets are kept", len(c.sets))
		}
	}
}
