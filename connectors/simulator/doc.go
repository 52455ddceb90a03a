// Package simulator is what simulators of platforms have in common: an address
// on loopback that can go down and come back, a state that outlives a restart,
// faults on purpose, logs that can be waited for, watchers, and an interface
// for users played from another process. It knows no platform and none of
// their rules: those are with each simulator, which embeds what it needs.
package simulator
