// Package wire encodes the binary frames of Amazon's event streams, right ones
// and wrong ones, for the tests that read them.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// Header is one header of a frame.
type Header struct {
	Name  string
	Type  byte   // 7 is a string
	Value []byte // as on the wire, without the length of strings and bytes
}

// Text returns a header that is a string.
func Text(name, value string) Header { return Value(name, 7, value) }

// Value returns a header of any type.
func Value(name string, kind byte, value string) Header { return Header{name, kind, []byte(value)} }

// Frame encodes a message of application/vnd.amazon.eventstream.
func Frame(payload string, headers ...Header) string {
	var h []byte
	for _, at := range headers {
		h = append(h, byte(len(at.Name)))
		h = append(h, at.Name...)
		h = append(h, at.Type)
		if at.Type == 6 || at.Type == 7 {
			h = binary.BigEndian.AppendUint16(h, uint16(len(at.Value)))
		}
		h = append(h, at.Value...)
	}
	return Raw(uint32(16+len(h)+len(payload)), uint32(len(h)), string(h)+payload)
}

// Raw encodes a frame whose lengths are those given, true or not; both
// checksums are right.
func Raw(total, headers uint32, rest string) string {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, rest...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// Event encodes an event of a reply.
func Event(name, payload string) string {
	return Frame(payload, Text(":event-type", name), Text(":content-type", "application/json"), Text(":message-type", "event"))
}

// Exception encodes an exception inside an answer.
func Exception(class, message string) string {
	return Frame(`{"message":`+JS(message)+`}`,
		Text(":exception-type", class), Text(":content-type", "application/json"), Text(":message-type", "exception"))
}

// JS encodes a value as JSON.
func JS(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
