// Package answer has what the endpoints of OpenAI's API share: how a route checks
// its caller and shows errors, how many answers a key may wait for, and a Call,
// which is one request on its way to the end of the run that answers it.
package answer
