package anthropic

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/berth-dev/berth/core/domain"
)

// prefix is a running digest of a request: tools, system prompt, messages. A
// reply is kept with the digest of what it was said to, and its thoughts go
// back only behind the very same. Places of the cache and settings of the
// reply are not part of it.
type prefix struct {
	sum hash.Hash
	w   *bufio.Writer // of sum, which never fails
}

func newPrefix(req domain.ModelRequest) *prefix {
	sum := sha256.New()
	p := &prefix{sum: sum, w: bufio.NewWriter(sum)}
	for _, t := range tools(req) {
		p.strings(t.Name, t.Description)
		p.bytes(t.Schema)
	}
	p.strings(req.System)
	return p
}

// String returns the digest of what was added so far.
func (p *prefix) String() string {
	_ = p.w.Flush()
	return hex.EncodeToString(p.sum.Sum(nil)[:12])
}

func (p *prefix) message(role string, content []*block) {
	p.strings("message", role)
	for _, b := range content {
		p.block(b)
	}
}

func (p *prefix) block(b *block) {
	p.strings(b.Type, b.Text, b.ID, b.Name, b.For, b.Data)
	p.bytes(b.Input)
	if b.Source != nil {
		p.strings(b.Source.Media)
		p.bytes(b.Source.Data)
	}
	if b.Thinking != nil {
		p.strings(*b.Thinking, *b.Signature)
	}
	if b.Failed {
		p.strings("failed")
	}
	switch content := b.Content.(type) {
	case string:
		p.strings(content)
	case []*block:
		p.message(b.Type, content)
	}
}

// strings and bytes write values with their lengths, so that no two lists of
// values are written alike.
func (p *prefix) strings(values ...string) {
	for _, s := range values {
		p.length(len(s))
		_, _ = p.w.WriteString(s)
	}
}

func (p *prefix) bytes(value []byte) {
	p.length(len(value))
	_, _ = p.w.Write(value)
}

func (p *prefix) length(n int) {
	_, _ = p.w.Write(binary.AppendUvarint(p.w.AvailableBuffer(), uint64(n)))
}
