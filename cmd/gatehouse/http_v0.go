package main

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"

	"gatehouse/web/api"
	v0 "gatehouse/web/api/v0"
)

// first returns the routes of the first generation, which call those of today.
func (a *app) first(today *api.API) *v0.API {
	return v0.New(v0.Options{Today: today, Sessions: a.views().Reader(), Editor: a.conversations, Clock: a.clock,
		Agents: func() (list []v0.Agent) {
			for _, x := range a.views().Agents().Agents() {
				list = append(list, v0.Agent(x))
			}
			return list
		},
		Memory: func() (int64, int) { return residentBytes(), a.sessions.Evict() },
	})
}

// residentBytes returns what the process takes of the machine's memory, where the
// system reports it; otherwise what the runtime has allocated.
func residentBytes() int64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(b); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
