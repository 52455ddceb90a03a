// Package values holds the types of settings: each reads itself from the text of an
// environment variable and writes it back.
package values

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A List is values separated by commas. Blanks around a value and empty
// values are left out.
type List []string

// Decode takes the list from the environment.
func (l *List) Decode(value string) error {
	*l = nil
	for v := range strings.SplitSeq(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			*l = append(*l, v)
		}
	}
	return nil
}

func (l List) String() string { return strings.Join(l, ",") }

// Sizes are numbers by name, as NAME=NUMBER with commas between.
type Sizes map[string]int

// Decode takes the list from the environment.
func (s *Sizes) Decode(value string) error {
	*s = nil
	return eachNamed(value, "NAME=NUMBER", func(name, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q of %s is not a whole number", text, name)
		}
		if *s == nil {
			*s = Sizes{}
		}
		(*s)[name] = n
		return nil
	})
}

// eachNamed calls f with each NAME and text of a list of NAME=text; no name comes twice.
func eachNamed(value, form string, f func(name, text string) error) error {
	var list List
	_ = list.Decode(value)
	seen := map[string]bool{}
	for _, v := range list {
		at := strings.LastIndex(v, "=")
		if at < 1 {
			return fmt.Errorf("%q is not %s", v, form)
		}
		name := strings.TrimSpace(v[:at])
		if seen[name] {
			return fmt.Errorf("%s is named twice", name)
		}
		seen[name] = true
		if err := f(name, strings.TrimSpace(v[at+1:])); err != nil {
			return err
		}
	}
	return nil
}

func (s Sizes) String() string {
	var list List
	for _, name := range slices.Sorted(maps.Keys(s)) {
		list = append(list, name+"="+strconv.Itoa(s[name]))
	}
	return list.String()
}

// Proxies are addresses and networks, separated by commas.
type Proxies []netip.Prefix

// Decode takes the list from the environment. A plain address is a network of one.
func (p *Proxies) Decode(value string) error {
	*p = nil
	var list List
	_ = list.Decode(value)
	for _, v := range list {
		if addr, err := netip.ParseAddr(v); err == nil {
			*p = append(*p, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		n, err := netip.ParsePrefix(v)
		if err != nil {
			return fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", v)
		}
		*p = append(*p, n.Masked())
	}
	return nil
}

func (p Proxies) String() string {
	list := make([]string, len(p))
	for i, n := range p {
		list[i] = n.String()
		if n.IsSingleIP() {
			list[i] = n.Addr().String()
		}
	}
	return strings.Join(list, ",")
}

// A Rate is at most N in any time of length Per. The zero Rate is no limit.
type Rate struct {
	N   int
	Per time.Duration
}

// Off reports whether there is no limit.
func (r Rate) Off() bool { return r.N == 0 }

const (
	maxRate = 10_000         // N
	maxPer  = 24 * time.Hour // Per
)

// Decode knows "10/60s" and "off".
func (r *Rate) Decode(value string) error {
	*r = Rate{}
	if value == "off" {
		return nil
	}
	count, per, ok := strings.Cut(value, "/")
	if !ok {
		return fmt.Errorf("%q is neither COUNT/TIME nor off", value)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxRate {
		return fmt.Errorf("the count %q is not a whole number from 1 to %d", count, maxRate)
	}
	d, err := time.ParseDuration(per)
	if err != nil || d < time.Second || d > maxPer {
		return fmt.Errorf("the time %q is not a duration from 1s to 24h", per)
	}
	*r = Rate{N: n, Per: d}
	return nil
}

func (r Rate) String() string {
	if r.Off() {
		return "off"
	}
	return fmt.Sprintf("%d/%s", r.N, shortDuration(r.Per))
}

// A Switch is on or off.
type Switch bool

// Decode knows "on" and "off".
func (s *Switch) Decode(value string) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%q is neither on nor off", value)
	}
	*s = value == "on"
	return nil
}

func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// A Level is the least important log line that is written. It is a slog.Leveler.
type Level slog.Level

// Level implements slog.Leveler.
func (l Level) Level() slog.Level { return slog.Level(l) }

// Decode knows debug, info, warn and error.
func (l *Level) Decode(value string) error {
	switch value {
	case "debug", "info", "warn", "error":
		var s slog.Level
		err := s.UnmarshalText([]byte(value))
		*l = Level(s)
		return err
	}
	return errors.New(strconv.Quote(value) + " is not one of debug, info, warn, error")
}

func (l Level) String() string { return strings.ToLower(slog.Level(l).String()) }

// Format returns a value of a setting as the environment would hold it. 0 is "".
func Format(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return shortDuration(v)
	case int:
		if v == 0 {
			return ""
		}
		return strconv.Itoa(v)
	default:
		return fmt.Sprint(v)
	}
}

// shortDuration writes 30m, not 30m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// A Budget is what may be used in a day: tokens, or millionths of a dollar. The
// zero Budget is no bound.
type Budget struct {
	Tokens   int64
	MicroUSD int64
}

// maxBudget bounds both, so that sums do not overflow.
const maxBudget = 1_000_000_000_000_000

// Decode reads "200k", "1.5m" or "40000" (tokens), "$2" or "$0.50", or "off".
func (b *Budget) Decode(value string) error {
	*b = Budget{}
	if value == "off" || value == "" {
		return nil
	}
	number, usd := strings.CutPrefix(strings.ToLower(value), "$")
	scale := 1.0
	switch {
	case usd:
		scale = 1e6
	case strings.HasSuffix(number, "k"):
		number, scale = strings.TrimSuffix(number, "k"), 1e3
	case strings.HasSuffix(number, "m"):
		number, scale = strings.TrimSuffix(number, "m"), 1e6
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f > 0) || f*scale > maxBudget || f*scale < 1 || strings.ContainsAny(number, "exp_+-inf") {
		return fmt.Errorf("%q is neither a number of tokens (200k), nor dollars ($2), nor off", value)
	}
	if usd {
		b.MicroUSD = int64(f*scale + 0.5)
	} else {
		b.Tokens = int64(f*scale + 0.5)
	}
	return nil
}

func (b Budget) String() string {
	switch {
	case b.MicroUSD > 0:
		return "$" + strconv.FormatFloat(float64(b.MicroUSD)/1e6, 'f', -1, 64)
	case b.Tokens > 0:
		return strconv.FormatInt(b.Tokens, 10)
	}
	return ""
}
