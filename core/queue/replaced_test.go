package queue_test

import (
	"context"
	"testing"

	"gatehouse/core/queue"
)

// A gateway that is being stopped, and whose place another one takes meanwhile, does not
// finish its turns: the other one begins them anew.
func TestTurnsOfAGatewayThatIsReplacedEndAtOnce(t *testing.T) {
	for name, early := range map[string]bool{"while it works": true, "while it stops": false} {
		t.Run(name, func(t *testing.T) {
			replaced := make(chan struct{})
			f := newFixture(t, func(o *options) { o.Replaced = replaced })
			began, cause := make(chan struct{}), make(chan error, 1)
			f.serve(func(ctx context.Context, turn *queue.Turn) {
				close(began)
				<-ctx.Done() // whose grace period, of the fixture's clock, does not end
				cause <- context.Cause(ctx)
				if err := f.q.GiveBack(ctx, turn); err != nil {
					t.Error(err)
				}
			})
			f.put(msg(1, "a", "ann", "one"))
			<-began
			if early {
				close(replaced)
			}
			stopped := make(chan struct{})
			go func() { f.stop(); close(stopped) }()
			if !early {
				close(replaced)
			}
			<-stopped
			if err := <-cause; err != queue.ErrShutdown {
				t.Errorf("it ended because of %v", err)
			}
		})
	}
}
