package openclaw

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// Refused is why there is no use in trying again.
type Refused struct{ Err error }

// Error says why.
func (e *Refused) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Refused) Unwrap() error { return e.Err }

// judge says whether dialling again is of any use, and how long to wait at
// least.
func judge(err error) (again bool, wait time.Duration) {
	var refused *Refused
	var e *RPCError
	switch {
	case errors.As(err, &refused):
		return false, 0
	case !errors.As(err, &e):
		return true, 0
	case e.Details.Code == "AUTH_RATE_LIMITED":
		return true, max(e.after(), time.Second)
	case isPairing(err):
		return true, 2 * time.Second
	case strings.HasPrefix(e.Details.Code, "AUTH_"), strings.HasPrefix(e.Details.Code, "DEVICE_"),
		e.Code == "INVALID_REQUEST" && !e.Retryable, e.Code == "FORBIDDEN":
		return false, 0
	}
	return true, e.after()
}

// isPairing reports whether a person has to approve this device first.
func isPairing(err error) bool {
	var e *RPCError
	return errors.As(err, &e) && (e.Details.Code == "PAIRING_REQUIRED" || e.Code == "NOT_PAIRED")
}

// refusal words why the Gateway does not let us in. It holds no secret: the
// Gateway's own words do not.
func refusal(e *RPCError) *domain.Error {
	switch code := e.Details.Code; {
	case isPairing(e):
		how := "openclaw devices list, then openclaw devices approve"
		if e.Details.RequestID != "" {
			how = "openclaw devices approve " + brief(e.Details.RequestID)
		}
		return domain.Errorf(domain.AuthRequired, "the gateway does not know this device yet: approve it there with: %s", how)
	case strings.HasSuffix(code, "_MISSING"), code == "AUTH_REQUIRED":
		return domain.Errorf(domain.AuthRequired, "the gateway wants a token: give it with --token-file, bridge.token or BERTH_GATEWAY_TOKEN")
	case strings.HasPrefix(code, "AUTH_"):
		return domain.Errorf(domain.AuthRequired, "the gateway refuses the token (%s): %s", brief(code), brief(e.Message))
	}
	return domain.Errorf(domain.Unavailable, "the gateway refuses the connection: %s", brief(e.Message))
}

// fromGateway words an error of a request for the editor.
func fromGateway(ctx context.Context, what string, err error) error {
	var (
		rpc  *RPCError
		own  *domain.Error
		wire *jsonrpc.Error
		long *tooLongError
		no   *Refused
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &own), errors.As(err, &wire):
		return err
	case errors.As(err, &long):
		return domain.Errorf(domain.TooLarge, "%s: the message has %d bytes and the gateway takes %d; send links in place of files", what, long.size, long.limit)
	case errors.As(err, &rpc):
		return fromRPC(what, rpc)
	case errors.As(err, &no):
		return domain.Errorf(domain.Unavailable, "%s: %s", what, no.Error())
	case errors.Is(err, errSilent):
		return domain.Errorf(domain.Unavailable, "%s: %v", what, errSilent)
	case errors.Is(err, errLost):
		return domain.Errorf(domain.Unavailable, "%s: the connection to the gateway was lost before it answered", what)
	}
	return domain.Errorf(domain.Unavailable, "%s: the gateway cannot be reached: %v", what, err)
}

// fromRPC words the Gateway's refusal of a request.
func fromRPC(what string, e *RPCError) error {
	said := brief(e.Message)
	switch {
	case strings.HasPrefix(e.Details.Code, "AUTH_"), strings.HasPrefix(e.Details.Code, "DEVICE_"), isPairing(e):
		return refusal(e)
	case e.Details.MissingScope != "":
		return domain.Errorf(domain.Denied, "%s: the gateway does not let this device do that: it lacks %s", what, brief(e.Details.MissingScope))
	case e.Code == "NOT_FOUND", e.Code == "INVALID_REQUEST" && missesSession(said):
		return domain.Errorf(domain.SessionNotFound, "%s: %s", what, said)
	case e.Code == "INVALID_REQUEST":
		return domain.Errorf(domain.InvalidArgument, "%s: %s", what, said)
	case e.Code == "FORBIDDEN":
		return domain.Errorf(domain.Denied, "%s: %s", what, said)
	case e.RetryAfterMs > 0:
		err := domain.Errorf(domain.RateLimited, "%s: %s", what, said)
		err.RetryAfter = e.after()
		return err
	}
	return domain.Errorf(domain.Unavailable, "%s: %s", what, said)
}

// missesSession reports whether the words of a refusal say that there is no
// such session, and not that something else is missing, such as a model.
func missesSession(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "session") && (strings.Contains(said, "not found") || strings.Contains(said, "no session found"))
}

// Line is the one line that a bridge ends with.
func Line(err error) error {
	var rpc *RPCError
	if errors.As(err, &rpc) {
		return fmt.Errorf("%s", refusal(rpc).Msg)
	}
	return err
}

// mostWords bounds what is repeated of the Gateway's words, in bytes.
const mostWords = 2000

// brief is a text that may be told, and shown on a terminal: on one line,
// without control characters, and not too long.
func brief(s string) string {
	if len(s) > 4*mostWords {
		s = strings.ToValidUTF8(s[:4*mostWords], "")
	}
	s = oneLine(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
	if len(s) > mostWords {
		s = strings.ToValidUTF8(s[:mostWords], "") + "…"
	}
	return s
}

func trimmed(s string) string { return strings.TrimSpace(s) }
