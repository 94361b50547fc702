package tether

import (
	"strconv"
	"strings"
)

// Header is the name of the header in which the ends agree, in the request
// and in its answer.
const Header = "Berth-Link"

const (
	fresh   = "new"
	resumed = "resumed"
)

// Ask is the header of a client: for a new link, or, with a connection, to
// take that one up after so many frames received.
func Ask(connection string, received uint64) string {
	if connection == "" {
		return fresh
	}
	return connection + " " + strconv.FormatUint(received, 10)
}

// Asked reads the header of a client. ok is false when it wants no link;
// connection is "" when it wants a new one.
func Asked(header string) (connection string, received uint64, ok bool) {
	if header == fresh {
		return "", 0, true
	}
	connection, count, found := strings.Cut(header, " ")
	n, err := strconv.ParseUint(count, 10, 64)
	if !found || connection == "" || err != nil {
		return "", 0, false
	}
	return connection, n, true
}

// Answer is the header of a server that begins a link.
func Answer() string { return fresh }

// AnswerResumed is the header of a server that takes a link up after so many
// frames received.
func AnswerResumed(received uint64) string {
	return resumed + " " + strconv.FormatUint(received, 10)
}

// Answered reads the header of a server: whether it has links at all, and
// whether it took up the one that was asked for.
func Answered(header string) (links, again bool, received uint64) {
	if header == fresh {
		return true, false, 0
	}
	word, count, _ := strings.Cut(header, " ")
	n, err := strconv.ParseUint(count, 10, 64)
	if word != resumed || err != nil {
		return false, false, 0
	}
	return true, true, n
}
