package operations

import (
	"testing"

	"gatehouse/admin/page"
)

func TestPersonNameWithoutARow(t *testing.T) {
	for id, want := range map[string]string{"-1": "Programs on this machine, without a key", "1": "Operator", "2": "Ada", "3": "User 3", "0": "People who were forgotten"} {
		if got := personName(page.Names{2: "Ada"}, id); got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
}
