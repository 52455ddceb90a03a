package report

import "time"

// A Result is the raw data of a run; parts that were not measured are nil.
type Result struct {
	Machine   Machine     `json:"machine"`
	Commit    string      `json:"commit"`
	At        time.Time   `json:"at"`
	Took      string      `json:"took"`
	Chats     int         `json:"chats"`
	Each      int         `json:"each"`
	Discord   float64     `json:"share_on_discord"`
	Busy      []float64   `json:"busy_before_each_part"` // share of the processors that others used
	Fsync     Percentiles `json:"bare_fsync"`
	Datasync  Percentiles `json:"bare_fdatasync"`
	Build     float64     `json:"cold_build_s,omitempty"`
	Start     *Start      `json:"start,omitempty"`
	Memory    *Memory     `json:"memory,omitempty"`
	Latency   *Latency    `json:"latency,omitempty"`
	Rate      *Latency    `json:"rate,omitempty"`
	Burst     *Burst      `json:"burst,omitempty"`
	Thinking  *Burst      `json:"burst_with_a_model_of_200_ms,omitempty"`
	Syncs     *Syncs      `json:"fsync,omitempty"`
	Tools     *Tools      `json:"tools,omitempty"`
	Waiting   *Waiting    `json:"waiting,omitempty"`
	Streaming *Streaming  `json:"streaming,omitempty"`
	Streams   *Streams    `json:"streams,omitempty"`
	Councils  []Council   `json:"councils,omitempty"`
	Scale     *Scale      `json:"scale,omitempty"`
	Index     *Index      `json:"index,omitempty"`
	Verdict   Verdict     `json:"verdict"`
	Judged    Judgement   `json:"verdict_by_platform"`
}

// Start is how long the program takes to start.
type Start struct {
	Fresh []float64 `json:"fresh_ms"`   // an empty vault: the database is made
	Again []float64 `json:"again_ms"`   // the same vault
	Bare  []float64 `json:"bare_ms"`    // the bare bot
	RSS   []float64 `json:"rss_mib"`    // 2 s after
	Base  float64   `json:"binary_mib"` // the program's file
}

// Memory is what it takes before, during and after a burst.
type Memory struct {
	Idle            float64 `json:"idle_mib"`
	Peak            float64 `json:"peak_under_burst_mib"`
	After           float64 `json:"after_mib"`
	IdleOwn         float64 `json:"idle_own_mib"`  // of Idle, what is no page of a file
	AfterOwn        float64 `json:"after_own_mib"` // of After
	Settle          string  `json:"settle"`
	GoroutinesIdle  float64 `json:"goroutines_idle"`
	GoroutinesAfter float64 `json:"goroutines_after"`
	HeapAfter       float64 `json:"heap_in_use_after_mib"`
	BarePeak        float64 `json:"bare_peak_mib"`
}

// Latency is how long answers take.
type Latency struct {
	Gateway Percentiles `json:"gateway"`
	Bare    Percentiles `json:"bare"`
	// By platform: the same times, of its messages alone.
	Platforms map[string]TwoSides `json:"by_platform"`

	CPU     float64          `json:"gateway_cpu_ms_per_message"`
	BareCPU float64          `json:"bare_cpu_ms_per_message"`
	Commits float64          `json:"commits_per_message"`
	Group   float64          `json:"writes_per_commit"`
	Stages  map[string]Stage `json:"stages"`
	Verdict Verdict          `json:"verdict"`
}

// TwoSides is a figure of the gateway and of the bare bot.
type TwoSides struct {
	Gateway Percentiles `json:"gateway"`
	Bare    Percentiles `json:"bare"`
}

// Burst is many messages at once.
type Burst struct {
	First   Round            `json:"first"` // on chats that no one knows yet
	Rounds  []Round          `json:"rounds"`
	Commits float64          `json:"commits_per_message"`
	Group   float64          `json:"writes_per_commit"`
	Calls   map[string]int   `json:"platform_calls"`
	Stages  map[string]Stage `json:"stages"`
	Verdict Verdict          `json:"verdict"`
}

// A Round is one burst on each side.
type Round struct {
	Gateway float64 `json:"gateway_messages_per_s"`
	Bare    float64 `json:"bare_messages_per_s"`
	CPU     float64 `json:"gateway_cpu_ms_per_message"`
	BareCPU float64 `json:"bare_cpu_ms_per_message"`
	Ratio   float64 `json:"ratio"`
	Peak    float64 `json:"peak_rss_mib"`
	// By platform: messages a second of it while the others were busy too, of
	// the gateway and of the bare loop.
	Platforms map[string][2]float64 `json:"messages_per_s_by_platform"`
}

// Syncs are calls of fsync and fdatasync.
type Syncs struct {
	Idle  int     `json:"at_start_and_stop"`
	Alone float64 `json:"per_message_one_in_flight"`
	Burst float64 `json:"per_message_in_burst"`
	Note  string  `json:"note,omitempty"`
}

// Tools is what the loop needs for one tool call: from the end of the model's answer to
// the request with the result.
type Tools struct {
	Process   Percentiles `json:"in_process"`      // Read, of a note of five bytes
	Bare      Percentiles `json:"bare"`            // a client without any loop
	Shell     Percentiles `json:"shell"`           // Bash, echo in a fresh bubblewrap
	BareShell Percentiles `json:"bare_bubblewrap"` // bwrap alone
	CPU       float64     `json:"in_process_cpu_ms_per_call"`
	Commits   float64     `json:"in_process_commits_per_call"`
	Note      string      `json:"note,omitempty"`
}

// Waiting is runs that wait for slow models.
type Waiting struct {
	Runs       int     `json:"runs"`
	Idle       float64 `json:"idle_mib"`
	Now        float64 `json:"waiting_mib"`
	Peak       float64 `json:"peak_mib"` // since before the first message
	Goroutines float64 `json:"goroutines_per_run"`
	Heap       float64 `json:"heap_kib_per_run"` // in use, garbage included
	Stack      float64 `json:"stack_kib_per_run"`
	CPU        float64 `json:"cores_used_while_waiting"`
	Verdict    Verdict `json:"verdict"`
}

// Streaming is chats whose answers stream, all at once.
type Streaming struct {
	Chats    int              `json:"chats"`
	Final    Percentiles      `json:"final"`          // from the model's last token until the final is visible
	Closest  float64          `json:"closest_ms"`     // two previews of one chat
	Previews float64          `json:"previews_per_s"` // in all chats
	Stages   map[string]Stage `json:"stages"`
	CPU      float64          `json:"cores_used"`
	Peak     float64          `json:"peak_mib"`
	Verdict  Verdict          `json:"verdict"`
}

// Streams are event streams: those that wait, and those whose model talks, all at once.
type Streams struct {
	Idle       int         `json:"idle"`
	Active     int         `json:"active"`
	Before     float64     `json:"before_mib"`
	IdleNow    float64     `json:"with_idle_mib"`
	Now        float64     `json:"with_all_mib"`
	Peak       float64     `json:"peak_mib"`
	First      Percentiles `json:"first_event"`       // no other stream is open
	FirstAmong Percentiles `json:"first_event_among"` // among the idle ones
	Opened     float64     `json:"opened_per_s"`
	Events     float64     `json:"events_per_s"`
	CPU        float64     `json:"cores_used"`
	Goroutines float64     `json:"goroutines_per_stream"`
	Note       string      `json:"note,omitempty"`
}

// Scale is the same on a large database.
type Scale struct {
	Rows    int          `json:"rows"`
	Lanes   int          `json:"lanes"`
	History int          `json:"audit_and_usage_rows_each"`
	Bytes   int64        `json:"database_bytes"`
	Fill    string       `json:"fill_took"`
	Small   Percentiles  `json:"latency_small"`
	Large   Percentiles  `json:"latency_large"`
	P50     float64      `json:"ratio_p50"`
	P99     float64      `json:"ratio_p99"`
	Rounds  [][2]float64 `json:"burst_messages_per_s"` // small, large
	Ratio   float64      `json:"ratio_burst"`          // small by large
	CPU     [2]float64   `json:"cpu_ms_per_message"`
	Verdict Verdict      `json:"verdict"`
}
