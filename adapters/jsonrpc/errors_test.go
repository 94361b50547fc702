package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func TestWireError_Table(t *testing.T) {
	for _, tt := range []struct {
		code          domain.Code
		acp, zeroclaw int
		reason        string
	}{
		{domain.Internal, -32603, -32603, "INTERNAL_ERROR"},
		{domain.InvalidArgument, -32602, -32602, "INVALID_PARAMS"},
		{domain.SessionNotFound, -32002, -32000, "SESSION_NOT_FOUND"},
		{domain.SessionLimit, -31001, -32001, "SESSION_LIMIT_REACHED"},
		{domain.SessionBusy, -31002, -32002, "SESSION_BUSY"},
		{domain.SessionActive, -31003, -32602, "SESSION_ACTIVE"},
		{domain.NotFound, -32002, -32602, "NOT_FOUND"},
		{domain.AuthRequired, -32000, -32000, "AUTH_REQUIRED"},
		{domain.Unsupported, -32601, -32601, "METHOD_NOT_FOUND"},
		{domain.Conflict, -32603, -32603, "CONFLICT"},
		{domain.Denied, -32602, -32602, "DENIED"},
		{domain.TooLarge, -32602, -32602, "TOO_LARGE"},
		{domain.Unavailable, -32603, -32603, "PROVIDER_ERROR"},
		{domain.RateLimited, -32603, -32603, "RATE_LIMITED"},
		{domain.QuotaExhausted, -32603, -32603, "QUOTA_EXHAUSTED"},
		{domain.CostLimit, -32603, -32603, "COST_LIMIT_REACHED"},
		{domain.ContextTooLong, -32603, -32603, "CONTEXT_TOO_LONG"},
		{domain.ProviderRejected, -32603, -32603, "PROVIDER_REJECTED"},
		{domain.StoreUnavailable, -32603, -32603, "STORE_ERROR"},
		{domain.StoreCorrupt, -32603, -32603, "STORE_CORRUPT"},
		{domain.Cancelled, -32800, -32800, "REQUEST_CANCELLED"},
		{domain.ShuttingDown, -32800, -32800, "SHUTTING_DOWN"},
	} {
		t.Run(tt.code.String(), func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", domain.Errorf(tt.code, "words"))
			for dialect, want := range map[Dialect]int{ACP: tt.acp, Zeroclaw: tt.zeroclaw} {
				e := dialect.WireError(err)
				if e.Code != want || e.Reason != tt.reason {
					t.Errorf("dialect %d: got %d %s, want %d %s", dialect, e.Code, e.Reason, want, tt.reason)
				}
				if e.Message == "" || (e.Message == "words") == (tt.code == domain.Internal) {
					t.Errorf("message %q", e.Message)
				}
			}
		})
	}
}

func TestWireError_EveryCodeHasItsReason(t *testing.T) {
	seen := map[string]domain.Code{}
	for _, c := range domain.Codes() {
		e := ACP.WireError(&domain.Error{Code: c})
		if other, ok := seen[e.Reason]; ok {
			t.Errorf("%v and %v share the reason %s", c, other, e.Reason)
		}
		seen[e.Reason] = c
		if e.Message == "" {
			t.Errorf("%v without words has no message", c)
		}
		if e.Code == CodeAuthRequired && c != domain.AuthRequired {
			t.Errorf("%v has the code that means authentication", c)
		}
	}
}

func TestWireError_JSON(t *testing.T) {
	secret := errors.New("token=abc")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"uncoded", secret, `{"code":-32603,"message":"Internal error","data":{"reason":"INTERNAL_ERROR"}}`},
		{"hidden cause", domain.WrapError(domain.StoreUnavailable, secret, "The store is busy"),
			`{"code":-32603,"message":"The store is busy","data":{"reason":"STORE_ERROR"}}`},
		{"details", domain.NoSession("s\"1").With("n", int64(1)<<60).With("b", true).With("reason", "other").With("n", 2),
			`{"code":-32002,"message":"Resource not found: session s\"1","data":{"reason":"SESSION_NOT_FOUND","sessionId":"s\"1","n":1152921504606846976,"b":true}}`},
		{"retry", &domain.Error{Code: domain.RateLimited, Msg: "Slow down", RetryAfter: 1500 * time.Millisecond},
			`{"code":-32603,"message":"Slow down","data":{"reason":"RATE_LIMITED","retryAfterMs":1500}}`},
		{"lines", domain.Errorf(domain.Denied, " a\r\n\tb\x00c  d\n"), `{"code":-32602,"message":"a b c d","data":{"reason":"DENIED"}}`},
		{"ready made", fmt.Errorf("x: %w", &Error{Code: -32022, Reason: "VERSION", Message: "no"}),
			`{"code":-32022,"message":"no","data":{"reason":"VERSION"}}`},
		{"a value that is no JSON", (&domain.Error{Code: domain.Denied, Msg: "no"}).With("f", func() {}),
			`{"code":-32602,"message":"no","data":{"reason":"DENIED","f":null}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := string(ACP.WireError(tt.err).AppendJSON(nil))
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if !Valid([]byte(got)) {
				t.Error("it is not JSON")
			}
		})
	}
}

func TestWireError_LongMessage(t *testing.T) {
	for _, word := range []string{"x", "ä", "日", "😀", " y"} {
		e := ACP.WireError(domain.Errorf(domain.Denied, "%s", strings.Repeat(word, 2000)))
		if len(e.Message) > maxMessage+len("…") || !strings.HasSuffix(e.Message, "…") || strings.ContainsRune(e.Message, '\uFFFD') {
			t.Errorf("%q: %d bytes, ends %q", word, len(e.Message), e.Message[len(e.Message)-8:])
		}
	}
}

func TestWireError_LeavesTheErrorAlone(t *testing.T) {
	details := make([]domain.Detail, 1, 4)
	details[0] = domain.Detail{Key: "a", Value: 1}
	err := &domain.Error{Code: domain.RateLimited, Msg: "x", RetryAfter: time.Second, Details: details}
	ACP.WireError(err)
	if full := details[:2]; full[1].Key != "" {
		t.Errorf("it wrote %v behind the error's details", full[1])
	}
}

func TestAbandoned(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	coded := domain.Errorf(domain.Denied, "no")
	other := errors.New("other")
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		err    error
		reason string
	}{
		{"still running", t.Context(), context.Canceled, "INTERNAL_ERROR"},
		{"request cancelled", ended(domain.RequestCancelled), context.Canceled, "REQUEST_CANCELLED"},
		{"its cause", ended(domain.RequestCancelled), fmt.Errorf("x: %w", domain.RequestCancelled), "REQUEST_CANCELLED"},
		{"deadline below", ended(domain.Disconnected), context.DeadlineExceeded, "REQUEST_CANCELLED"},
		{"shutdown", ended(domain.ProcessEnding), context.Canceled, "SHUTTING_DOWN"},
		{"coded", ended(domain.RequestCancelled), coded, "DENIED"},
		{"unrelated", ended(domain.RequestCancelled), other, "INTERNAL_ERROR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e := ACP.WireError(abandoned(tt.ctx, tt.err)); e.Reason != tt.reason {
				t.Errorf("got %s, want %s", e.Reason, tt.reason)
			}
		})
	}
}

func TestRemoteError_Is(t *testing.T) {
	err := fmt.Errorf("call: %w", &RemoteError{Code: CodeNotFound, Message: "gone"})
	if !errors.Is(err, &RemoteError{Code: CodeNotFound}) || errors.Is(err, &RemoteError{Code: CodeInternal}) {
		t.Error("a code is not told from another")
	}
}
