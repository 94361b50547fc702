package turns_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// sees makes the model of a world one that takes pictures and sounds.
func sees(w *world, images, audio bool) {
	w.model.info = &domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}, Images: images, Audio: audio}
}

// What the user attaches is stored, journalled by name, and sent as itself to
// a model that can take it; another one reads where it is.
func TestMedia_OfPrompts(t *testing.T) {
	png, wav, old := []byte("\x89PNG"), []byte("RIFF wave"), []byte("BM bitmap...")
	prompt := []domain.Block{
		domain.Text{Text: "Look:"}, domain.Image{MIME: "image/png", Data: png, URI: "file:///a.png"},
		domain.Text{Text: "and hear:"}, domain.Audio{MIME: "audio/wav", Data: wav},
		domain.Image{MIME: "image/bmp", Data: old}, domain.Text{Text: "Well?"},
	}
	text := func(s string) domain.Block { return domain.Text{Text: s} }
	for name, c := range map[string]struct {
		images, audio bool
		gone          bool
		want          []domain.Block
	}{
		"sees and hears": {images: true, audio: true, want: []domain.Block{
			text("Look:"), domain.Image{MIME: "image/png", Data: png, URI: "file:///a.png"}, text("and hear:"),
			domain.Audio{MIME: "audio/wav", Data: wav}, text("[IMAGE: /project/uploads/12.bin]\n\nWell?"),
		}},
		"sees": {images: true, want: []domain.Block{
			text("Look:"), domain.Image{MIME: "image/png", Data: png, URI: "file:///a.png"},
			text("and hear:\n\n[Document: blob] /project/uploads/9.bin\n\n[IMAGE: /project/uploads/12.bin]\n\nWell?"),
		}},
		"neither": {want: []domain.Block{
			text("Look:\n\n[IMAGE: /project/uploads/4.bin]\n\nand hear:\n\n[Document: blob] /project/uploads/9.bin\n\n[IMAGE: /project/uploads/12.bin]\n\nWell?"),
		}},
		"the files are gone": {images: true, audio: true, gone: true, want: []domain.Block{
			text("Look:\n\n[IMAGE: /project/uploads/4.bin]\n\nand hear:\n\n[Document: blob] /project/uploads/9.bin\n\n[IMAGE: /project/uploads/12.bin]\n\nWell?"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				sees(w, c.images, c.audio)
				if !c.gone {
					w.blobs.files = map[string][]byte{"/project/uploads/4.bin": png, "/project/uploads/9.bin": wav, "/project/uploads/12.bin": old}
				}
				w.beginBlocks(prompt).want(domain.StopEndTurn)
				sent := w.model.seen()
				in, _ := sent[len(sent)-1].Messages[0].(domain.UserInput)
				if diff := cmp.Diff(c.want, in.Blocks); diff != "" {
					t.Errorf("the model was sent (-want +got):\n%s", diff)
				}
				for _, rec := range w.records() {
					said, ok := rec.(domain.UserSaid)
					if !ok {
						continue
					}
					for i, b := range said.Blocks {
						_, isText := b.(domain.Text)
						if a, stored := b.(domain.Attachment); !isText && (!stored || !a.Inline) {
							t.Errorf("block %d was journalled as %#v", i, b)
						}
					}
				}
				w.check()
			})
		})
	}
}

// A picture that a tool read is shown to a model that sees, in this turn and
// in later ones.
func TestMedia_OfTools(t *testing.T) {
	file := domain.Attachment{Path: "/project/a.png", SHA256: "x", MIME: "image/png", Name: "a.png", Size: 4}
	for name, c := range map[string]struct {
		images bool
		want   []domain.Block
	}{
		"sees": {true, []domain.Block{domain.Image{MIME: "image/png", Data: []byte("\x89PNG")}}},
		"not":  {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			look := reader("look")
			look.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
				return domain.ToolResult{Text: "a 1x1 PNG", Content: []domain.CallContent{domain.FileContent{File: file, Data: []byte("\x89PNG")}}}, nil
			}
			bubble(t, []ports.Tool{look}, func(w *world) {
				sees(w, c.images, false)
				w.blobs.files = map[string][]byte{file.Path: []byte("\x89PNG")}
				w.model.play(wants("", "look"), says("a dot"), says("still a dot"))
				w.begin("look at it").want(domain.StopEndTurn)
				w.begin("and now?").want(domain.StopEndTurn)
				for i, req := range w.model.seen()[1:] {
					out, ok := req.Messages[2].(domain.ToolOutput)
					if !ok {
						t.Fatalf("request %d has a %T behind the call", i+2, req.Messages[2])
					}
					if diff := cmp.Diff(c.want, out.Media); diff != "" {
						t.Errorf("request %d shows (-want +got):\n%s", i+2, diff)
					}
				}
				w.check()
			})
		})
	}
}

// One request carries the newest media up to a limit, and names the rest.
func TestMedia_Limit(t *testing.T) {
	bubble(t, nil, func(w *world) {
		sees(w, true, false)
		big := []byte(strings.Repeat("x", 7<<20))
		w.blobs.files = map[string][]byte{"/project/uploads/7340032.bin": big}
		w.blobs.size = int64(len(big))
		var blocks []domain.Block
		for range 4 {
			blocks = append(blocks, domain.Image{MIME: "image/png", Data: big})
		}
		w.beginBlocks(blocks).want(domain.StopEndTurn)
		sent := w.model.seen()
		in, _ := sent[len(sent)-1].Messages[0].(domain.UserInput)
		images := 0
		for _, b := range in.Blocks {
			if _, ok := b.(domain.Image); ok {
				images++
			}
		}
		if _, first := in.Blocks[0].(domain.Text); images != 2 || !first {
			t.Errorf("%d images were sent, the first block is a %T; want the newest 2", images, in.Blocks[0])
		}
	})
}
