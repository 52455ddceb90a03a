package provider

import "testing"

// The texts are those that the providers were seen to send.
func TestARefusalNamesTheWindowOfTheModel(t *testing.T) {
	for said, want := range map[string]int{
		"prompt is too long: 208310 tokens > 200000 maximum":                                                                                                                                              200000,
		"input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000, decrease input length or `max_tokens` and try again":                                                                200000,
		"This model's maximum context length is 8192 tokens. However, you requested 16100 tokens (100 in the messages, 16000 in the completion). Please reduce the length of the messages or completion.": 8192,
		"'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (16000 > 4096 - 100).":                     4096,
		"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 295000 tokens. Please reduce the length of the messages.":                                                   272000,
		"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it":                                                                                                       4096,
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length":                                                                                          32768,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":                                                                                                         1048576,
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.":                                                                                                            131072,
		"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40213. The input or output tokens must be reduced in order to run successfully.":              30000,
		"the request exceeds the available context size, try increasing it":                                                                                                                               0,
	} {
		if got := windowIn(said); got != want {
			t.Errorf("%d of %q, want %d", got, said, want)
		}
	}
}
