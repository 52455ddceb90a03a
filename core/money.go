package core

import "fmt"

// Dollars returns millionths of a US dollar as every page and message writes an amount: to the
// cent, below a cent to four places. Only nothing is "$0".
func Dollars(micro int64) string {
	switch {
	case micro == 0:
		return "$0"
	case micro > 0 && micro < 100:
		return "less than $0.0001"
	case micro < 10_000:
		return fmt.Sprintf("$%.4f", float64(micro)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}
