package core

// Media is a picture or a document on its way to a model.
type Media struct {
	Type string `json:"type"`           // "image/png", "image/jpeg", "image/gif", "image/webp" or "application/pdf"
	Name string `json:"name,omitempty"` // file name, cleaned; hostile text
	Data []byte `json:"data"`
}
