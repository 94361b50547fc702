package fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// pictures are small images of each kind, 5 by 3.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 5, 3), color.Palette{color.Black, color.White})
	list := map[string][]byte{}
	for mime, encode := range map[string]func(*bytes.Buffer) error{
		"image/png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"image/jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"image/gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		list[mime] = b.Bytes()
	}
	// One of each kind of chunk that may come first; the sizes are in them.
	for name, text := range map[string]string{
		"image/webp":          "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x04\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"image/webp lossy":    "RIFF\x1a\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x05\x00\x03\x00",
		"image/webp extended": "RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x02\x00\x00",
	} {
		list[name] = []byte(text)
	}
	return list
}

func TestRead_Pictures(t *testing.T) {
	for kind, raw := range pictures(t) {
		t.Run(kind, func(t *testing.T) {
			mime, _, _ := strings.Cut(kind, " ")
			r := newRig(t)
			r.write("ws/shot.txt", string(raw)) // the name says nothing
			r.open()
			a := r.call("read_file", "path", "shot.txt", "offset", 2).want(t, "allow").holds(t, "shot.txt: image, 5x3 ", "shown to the user")
			if len(a.result.Content) != 1 {
				t.Fatalf("content %+v", a.result.Content)
			}
			f, ok := a.result.Content[0].(domain.FileContent)
			if !ok || f.Delivered || !bytes.Equal(f.Data, raw) || f.File.MIME != mime || f.File.Path != r.at("ws/shot.txt") ||
				f.File.Size != int64(len(raw)) || f.File.SHA256 != stampOf(raw).hex() || f.File.Name != "shot.txt" {
				t.Errorf("%+v", a.result.Content[0])
			}
			if strings.Contains(a.text, base64.StdEncoding.EncodeToString(raw)[:8]) {
				t.Error("the model gets the bytes")
			}
			// It is shown again from the file, as long as it is that.
			blobs := NewBlobs(r.disk)
			if again, err := blobs.Read(context.Background(), r.session, f.File); err != nil || !bytes.Equal(again, raw) {
				t.Errorf("again: %d bytes, %v", len(again), err)
			}
			r.write("ws/shot.txt", string(raw)+"x")
			if _, err := blobs.Read(context.Background(), r.session, f.File); !domain.HasCode(err, domain.Conflict) {
				t.Errorf("a changed picture: %v", err)
			}
		})
	}
}

func TestRead_NoPictures(t *testing.T) {
	shot := string(pictures(t)["image/png"])
	for name, c := range map[string]struct {
		content string
		verdict string
		holds   string
	}{
		"a text that begins like one": {"GIF89a is a format\n", "allow", "lines 1-1 of 1"},
		"half a header":               {shot[:12], "deny", "binary"},
		"another format":              {"BM\x00\x00\x00\x00\x00\x00", "deny", "binary"},
		"sound in the same wrapping":  {"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00", "deny", "binary"},
	} {
		r := newRig(t)
		r.write("ws/f.png", c.content)
		r.open()
		if a := r.call("read_file", "path", "f.png").want(t, c.verdict).holds(t, c.holds); t.Failed() {
			t.Fatalf("%s: %+v", name, a)
		}
	}
	// Larger ones than a message can show are linked to, and said to be.
	r := newRig(t)
	r.write("ws/big.png", shot+strings.Repeat("\x00", domain.MaxShownPicture))
	r.open()
	a := r.call("read_file", "path", "big.png").want(t, "allow").holds(t, "5x3 PNG", "too large to be shown", "got a link")
	if b, ok := a.result.Content[0].(domain.ContentBlock); !ok || b.Block.(domain.Attachment).Path != r.at("ws/big.png") {
		t.Errorf("%+v", a.result.Content)
	}
	// Writing text over a picture is refused as ever.
	r.call("write_file", "path", "big.png", "content", "x").want(t, "deny")
}

// TestPictures_OfForbiddenPlaces: what may not be read any more is not shown
// again either.
func TestPictures_OfForbiddenPlaces(t *testing.T) {
	raw := pictures(t)["image/png"]
	r := newRig(t)
	for _, p := range []string{"ws/s.png", "ws/private/s.png", "out/s.png"} {
		r.write(p, string(raw))
	}
	r.symlink("ws/l.png", r.at("out/s.png"))
	r.open()
	blobs := NewBlobs(r.disk)
	for path, want := range map[string]domain.Code{
		"ws/private/s.png": domain.Denied, "out/s.png": domain.Denied, "ws/l.png": domain.Denied, "ws/none.png": domain.NotFound,
	} {
		if _, err := blobs.Read(context.Background(), r.session, attachmentOf(r.at(path), "image/png", raw)); domain.CodeOf(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := blobs.Read(context.Background(), r.session, attachmentOf(r.at("ws/s.png"), "image/png", raw)); err != nil {
		t.Error(err)
	}
}

func FuzzPicture(f *testing.F) {
	for _, raw := range pictures(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if pic, ok := pictureOf(raw); ok && (pic.width < 0 || pic.height < 0 || pic.mime == "" || pic.words() == "") {
			t.Errorf("%+v", pic)
		}
	})
}
