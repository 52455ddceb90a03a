package connectors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Recover ends a panic of bot's connector in op, which is logged, and returns it in err. It
// must be deferred itself: a panic ends the program in every goroutine that has no Recover.
func Recover(log *slog.Logger, bot, op string, err *error) {
	if p := recover(); p != nil {
		log.Error("connector panicked", "bot", bot, "op", op, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s %s: the connector panicked: %v", op, bot, p)
	}
}

// Go runs f in a goroutine of tasks. A panic of f is logged and affects nothing else.
func Go(tasks *sync.WaitGroup, log *slog.Logger, bot, op string, f func()) {
	tasks.Go(func() {
		var err error
		defer Recover(log, bot, op, &err)
		f()
	})
}
