package embed

import "time"

// SetTimeout limits requests.
func (c *Client) SetTimeout(d time.Duration) { c.http.Timeout = d }
