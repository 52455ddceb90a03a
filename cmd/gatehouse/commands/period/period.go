// Package period reads the periods of the command line.
package period

import (
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/core"
)

// Option has flags that are a time.Duration take days as well, as chats do.
func Option() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("period", &text); err != nil {
			return err
		}
		d, err := core.Period(text, maxDays)
		if err == nil {
			target.SetInt(int64(d))
		}
		return err
	}))
}

// maxDays is a hundred years.
const maxDays = 36500
