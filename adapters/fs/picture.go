package fs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/core/domain"
)

// picture is what the first bytes of an image say about it.
type picture struct {
	kind          string // PNG, JPEG, GIF, WebP
	mime          string
	width, height int // 0 when they are not told
}

// pictureOf tells by its content whether a file is an image that clients
// show. Its name plays no part, and what lies behind the header is not looked
// at.
func pictureOf(b []byte) (picture, bool) {
	switch {
	case len(b) >= 24 && bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) && string(b[12:16]) == "IHDR":
		return picture{"PNG", "image/png", int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))}, true
	case len(b) >= 10 && (bytes.HasPrefix(b, []byte("GIF87a")) || bytes.HasPrefix(b, []byte("GIF89a"))):
		return picture{"GIF", "image/gif", int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))}, true
	case len(b) >= 16 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		w, h := webpSize(b[12:])
		return picture{"WebP", "image/webp", w, h}, true
	case len(b) >= 4 && b[0] == 0xFF && b[1] == 0xD8 && b[2] == 0xFF:
		w, h := jpegSize(b[2:])
		return picture{"JPEG", "image/jpeg", w, h}, true
	}
	return picture{}, false
}

// webpSize reads the size from the first chunk of a WebP file.
func webpSize(b []byte) (w, h int) {
	u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	switch {
	case len(b) >= 18 && string(b[:4]) == "VP8 ":
		return int(binary.LittleEndian.Uint16(b[14:]) & 0x3FFF), int(binary.LittleEndian.Uint16(b[16:]) & 0x3FFF)
	case len(b) >= 13 && string(b[:4]) == "VP8L":
		bits := binary.LittleEndian.Uint32(b[9:])
		return int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1
	case len(b) >= 18 && string(b[:4]) == "VP8X":
		return u24(b[12:]) + 1, u24(b[15:]) + 1
	}
	return 0, 0
}

// jpegSize goes through the segments of a JPEG file to the one that tells the
// size.
func jpegSize(b []byte) (w, h int) {
	for len(b) >= 9 && b[0] == 0xFF {
		mark := b[1]
		switch {
		case mark == 0xFF: // filling
			b = b[1:]
			continue
		case mark >= 0xC0 && mark <= 0xCF && mark != 0xC4 && mark != 0xC8 && mark != 0xCC:
			return int(binary.BigEndian.Uint16(b[7:])), int(binary.BigEndian.Uint16(b[5:]))
		case mark == 0xD9, mark == 0xDA: // the picture itself begins
			return 0, 0
		case mark == 1, mark >= 0xD0 && mark <= 0xD8: // these have no length
			b = b[2:]
			continue
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			return 0, 0
		}
		b = b[n:]
	}
	return 0, 0
}

// words describe the picture, such as "640x480 PNG".
func (p picture) words() string {
	if p.width == 0 || p.height == 0 {
		return p.kind
	}
	return fmt.Sprintf("%dx%d %s", p.width, p.height, p.kind)
}

// shows is the result of reading a picture: the client gets the picture, the
// model a truthful word about it.
func (p *reading) shows(raw []byte, pic picture) domain.ToolResult {
	a := attachmentOf(p.target.path, pic.mime, raw)
	r := domain.ToolResult{
		RawOutput: fmt.Appendf(nil, `{"mimeType":%q,"width":%d,"height":%d,"bytes":%d}`, pic.mime, pic.width, pic.height, len(raw)),
	}
	how := "shown to the user"
	if len(raw) > domain.MaxShownPicture {
		how = "too large to be shown in the conversation; the user got a link to it"
		r.Content = []domain.CallContent{domain.ContentBlock{Block: a}}
	} else {
		r.Content = []domain.CallContent{domain.FileContent{File: a, Data: raw}}
	}
	r.Text = fmt.Sprintf("[%s: image, %s, %s; %s. You do not see it yourself: this tool gives you text only.]",
		printable(p.show), pic.words(), bytesWords(int64(len(raw))), how)
	return r
}

// attachmentOf names a file and its content.
func attachmentOf(path, mime string, raw []byte) domain.Attachment {
	sum := stampOf(raw)
	return domain.Attachment{Path: path, SHA256: sum.hex(), MIME: mime, Name: filepath.Base(path), Size: int64(len(raw))}
}
