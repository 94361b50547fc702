package llm

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Count is a number of tokens as servers write it: a number, whole or not, or
// a text that is one. What is none, or can be none because it is negative or
// beyond maxCount, is 0, as if it had not been counted: a reply is not worth
// less for it.
type Count int64

// maxCount is more than any model takes or says.
const maxCount = 1 << 30

// UnmarshalJSON reads any JSON value and never fails.
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = 0
	n, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	if err == nil && n > 0 && n <= maxCount {
		*c = Count(n)
	}
	return nil
}

// Counts decodes the counts of an answer into a struct of them. What has not
// that form says nothing: to is left as it was.
func Counts[T any](data []byte, to *T) {
	var counts T
	if json.Unmarshal(data, &counts) == nil {
		*to = counts
	}
}
