package core

import "testing"

func TestDollarsShowsNoSmallAmountAsNothing(t *testing.T) {
	for micro, want := range map[int64]string{
		0: "$0", 1: "less than $0.0001", 99: "less than $0.0001", 100: "$0.0001", 9000: "$0.0090", 9_999: "$0.0100",
		10_000: "$0.01", 14_900: "$0.01", 1_840_000: "$1.84", 20_000_000: "$20.00", 1_234_567_890: "$1234.57",
	} {
		if got := Dollars(micro); got != want {
			t.Errorf("%d millionths are written %q, want %q", micro, got, want)
		}
	}
}
