package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// How long the gateway may take to answer initialize itself: less when it is
// known what it will say.
const (
	patienceKnown   = time.Second
	patienceUnknown = 4 * time.Second
)

// answerEarly answers initialize when the gateway takes too long to start.
func (b *Bridge) answerEarly(ctx context.Context) {
	select {
	case <-b.book.begun:
	case <-ctx.Done():
		return
	}
	patience := patienceUnknown
	if r, _ := b.book.hello(); r != nil && b.cfg.Memory != nil {
		if _, ok := b.cfg.Memory.Recall(r.params); ok {
			patience = patienceKnown
		}
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-t.C:
		b.answerEarlyNow()
	case <-ctx.Done():
	}
}

// answerEarlyNow answers initialize unless the gateway has, or is about to.
func (b *Bridge) answerEarlyNow() {
	b.telling.Lock() // what the gateway says comes after
	defer b.telling.Unlock()
	r, agreed := b.book.hello()
	if agreed || r == nil || r.sent.Load() && b.out.current() != nil {
		return
	}
	result, ok := b.earlyResult(r.params)
	if !ok || !b.book.answerEarly(r, result) {
		return
	}
	b.cfg.Log("initialize is answered in the gateway's place, which is not there yet")
	frame, err := jsonrpc.AppendResult(nil, r.id, json.RawMessage(result))
	if err == nil {
		_ = b.editor.Write(frame) // the next one tells that the editor has gone
	}
}

// answerEarly notes that the editor has its answer. It reports false when it
// had it already.
func (k *book) answerEarly(r *request, result []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.answered || k.requests[r.id.Key()] != r {
		return false
	}
	r.answered, k.early = true, result
	return true
}

// earlyResult is what is known of the gateway: its own last answer to the same
// question, else nothing, which is a promise that any gateway keeps. ok is
// false when the request is not one that can be answered so.
func (b *Bridge) earlyResult(params []byte) (result []byte, ok bool) {
	if n, err := strconv.Atoi(string(at(params, "protocolVersion"))); err != nil || n < 1 {
		return nil, false
	}
	if b.cfg.Memory != nil {
		if known, ok := b.cfg.Memory.Recall(params); ok && at(known, "protocolVersion") != nil {
			return inBerth(known, "early", []byte("true")), true
		}
	}
	var info, out object
	info.text("name", b.cfg.Info.Name)
	info.text("title", b.cfg.Info.Title)
	info.text("version", b.cfg.Info.Version)
	out.set("protocolVersion", []byte("1"))
	out.set("agentCapabilities", []byte(`{}`))
	out.set("authMethods", []byte(`[]`))
	out.set("agentInfo", info.done())
	return inBerth(out.done(), "early", []byte("true")), true
}

// opened deals with the gateway's answer to the editor's initialize.
func (b *Bridge) opened(r *request, frame []byte, m jsonrpc.Message) error {
	if m.Error == nil {
		b.book.agree(r)
		b.book.offers(m.Result)
		if b.cfg.Memory != nil {
			b.cfg.Memory.Keep(r.params, m.Result)
		}
	}
	if !r.answered {
		return b.tell(frame)
	}
	if m.Error != nil {
		return &Refused{errors.New("the gateway refuses initialize, which was answered in its place: " + m.Error.Message)}
	}
	return b.reconcile(m.Result)
}

// reconcile compares what the editor was told with what the gateway says. What
// is missing the gateway refuses itself when it is asked for; a protocol that
// is another one cannot be mended.
func (b *Bridge) reconcile(result []byte) error {
	told := b.book.told()
	if have, want := at(result, "protocolVersion"), at(told, "protocolVersion"); !bytes.Equal(have, want) {
		return &Refused{errors.New("the gateway speaks version " + string(have) + " of the protocol; the editor was told " + string(want))}
	}
	var missing []string
	lacks(at(told, "agentCapabilities"), at(result, "agentCapabilities"), "", &missing)
	if len(missing) > 0 {
		b.cfg.Log("the gateway does not offer what it did when it was last asked: %s", strings.Join(missing, ", "))
	}
	return nil
}

// lacks collects the capabilities that were promised and are not there.
func lacks(promised, have json.RawMessage, path string, missing *[]string) {
	for name, p := range jsonrpc.Members(promised) {
		h := at(have, name)
		switch {
		case !given(p):
		case !given(h):
			*missing = append(*missing, path+name)
		default:
			lacks(p, h, path+name+".", missing)
		}
	}
}

func (k *book) told() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.early
}

// agree notes which initialize the gateway agreed to.
func (k *book) agree(r *request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.agreed = r
}

// offers notes what the gateway can do that the bridge makes use of.
func (k *book) offers(result []byte) {
	caps := at(result, "agentCapabilities")
	o := offer{load: isTrue(at(caps, "loadSession")), resume: given(at(caps, "sessionCapabilities", "resume"))}
	for e := range jsonrpc.Elements(at(result, "_meta", "berth", "methods")) {
		o.await = o.await || text(e) == methodAwait
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.offer = o
}
