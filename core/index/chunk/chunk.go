// Package chunk splits texts into the passages that a search finds.
package chunk

// A Chunk is a passage of a text.
type Chunk struct {
	Text string `db:"text"` // with the headings above it in front; valid UTF-8, not empty
	Line int    `db:"line"` // of the text, where the passage begins, from 1
}
