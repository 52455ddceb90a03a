package report

// A Verdict counts what must not happen.
type Verdict struct {
	Messages int `json:"messages"` // sent by users
	Answers  int `json:"answers"`  // visible in their chats
	Lost     int `json:"lost"`
	Doubled  int `json:"doubled"`
	Disorder int `json:"out_of_order"`
}

// Bad reports whether anything happened that must not.
func (v Verdict) Bad() bool { return v.Lost+v.Doubled+v.Disorder > 0 }

// Add adds o to v.
func (v *Verdict) Add(o Verdict) {
	v.Messages += o.Messages
	v.Answers += o.Answers
	v.Lost += o.Lost
	v.Doubled += o.Doubled
	v.Disorder += o.Disorder
}

// A Judgement is the verdict of each platform.
type Judgement map[string]Verdict

// Add adds v to the platform's verdict.
func (j Judgement) Add(platform string, v Verdict) {
	sum := j[platform]
	sum.Add(v)
	j[platform] = sum
}

// All returns the sum.
func (j Judgement) All() (sum Verdict) {
	for _, v := range j {
		sum.Add(v)
	}
	return sum
}
