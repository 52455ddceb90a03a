package period

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestPeriodsOfTheCommandLineMayBeDays(t *testing.T) {
	var c struct {
		For   time.Duration `default:"2160h"`
		Since time.Duration
	}
	p, err := kong.New(&c, Option())
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][2]time.Duration{
		"--for=30d --since 7d": {720 * time.Hour, 168 * time.Hour}, "--since 90m": {2160 * time.Hour, 90 * time.Minute}, "--for 0": {0, 0}, "--for 0d": {0, 0},
	} {
		c.For, c.Since = 0, 0
		if _, err := p.Parse(strings.Fields(args)); err != nil || c.For != want[0] || c.Since != want[1] {
			t.Errorf("%s: %v %v, %v", args, c.For, c.Since, err)
		}
	}
	for _, args := range []string{"--for 30x", "--for=d", "--for 99999d", "--for=-1d", "--for tomorrow"} {
		if _, err := p.Parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), "write 30m, 24h or 7d") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
