// Package period reads the periods of the command line.
package period

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Option has flags that are a time.Duration take days as well, as chats do.
func Option() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("period", &text); err != nil {
			return err
		}
		d, err := Parse(text)
		if err == nil {
			target.SetInt(int64(d))
		}
		return err
	}))
}

// maxDays is a hundred years.
const maxDays = 36500

// Parse returns a period that is written as 30m, 24h or 7d.
func Parse(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a period: write 30m, 24h or 7d", text)
}
