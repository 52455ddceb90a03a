package operations

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

const (
	sparkHours = 24
	activities = 8 // lines of the newest activity
)

// The drawing of a spark, in its own units.
const sparkWide, sparkHigh = 120, 28

// Sparks returns four series of the last 24 hours for the overview; none without
// figures.
func (p *Pages) Sparks(ctx context.Context) page.Part[[]page.Spark] {
	if p.models.o.Models == nil {
		return page.Part[[]page.Spark]{}
	}
	return page.Load(ctx, p.models.frame, "The figures", func(ctx context.Context) ([]page.Spark, error) {
		c, err := p.models.o.Models.Chart(ctx, time.Hour, sparkHours, time.UTC)
		if err != nil {
			return nil, err
		}
		failed := make([]int64, sparkHours)
		for _, s := range wrongs(c, sparkHours) {
			for i, v := range s.Values {
				failed[i] += v
			}
		}
		all := []page.Spark{
			spark("received", "Messages", summed(c, "received|"), page.Grouped),
			spark("answers", "Answers", summed(c, "runs|done"), page.Grouped),
			spark("errors", "Went wrong", failed, page.Grouped),
			spark("usd", "Cost", summed(c, "usd|"), core.Dollars),
		}
		if !slices.ContainsFunc(all, func(s page.Spark) bool { return s.Points != "" }) {
			return nil, nil // nothing happened: four empty drawings say less than none
		}
		return all, nil
	})
}

func px(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }

// summed returns the sum of the series with a prefix, by step.
func summed(c usage.Chart, prefix string) []int64 {
	all := make([]int64, sparkHours)
	for series, values := range c.Series {
		if strings.HasPrefix(series, prefix) {
			for i, v := range values[:min(len(values), sparkHours)] {
				all[i] += v
			}
		}
	}
	return all
}

func spark(key, label string, values []int64, word func(int64) string) page.Spark {
	s := page.Spark{Key: key, Label: label, Path: modelsPath + "?span=24h#g-" + key, Bad: key == "errors"}
	sum, top := int64(0), max(1, slices.Max(values))
	points := make([]string, len(values))
	for i, v := range values {
		sum += v
		points[i] = px(float64(i)*sparkWide/float64(len(values)-1)) + "," + px(sparkHigh-1-float64(v)/float64(top)*(sparkHigh-3))
	}
	s.Total = word(sum)
	if sum > 0 {
		s.Points = strings.Join(points, " ")
	}
	return s
}

// Activity returns what was done last, for the overview; none without the log.
func (p *Pages) Activity(ctx context.Context) page.Part[[]page.Happening] {
	if p.audit.log == nil {
		return page.Part[[]page.Happening]{}
	}
	return page.Load(ctx, p.audit.frame, "The log", func(ctx context.Context) (list []page.Happening, err error) {
		events, _, err := p.audit.log(ctx, store.AuditFilter{Limit: 4 * activities})
		names := p.audit.eventNames(ctx)
		var rows []auditRow
		for _, e := range events {
			if e.Action != "socket.request" && e.Action != "mcp.call" { // programs that poll would be all of it
				rows = fold(rows, auditRow{AuditEvent: e})
			}
		}
		for _, r := range page.Head(rows, activities) {
			list = append(list, page.Happening{At: r.At, Parts: names.sentence(r.AuditEvent)})
		}
		return list, err
	})
}
