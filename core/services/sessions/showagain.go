package sessions

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// showAgain puts the bytes back into the files that updates show, which journals
// only name. A file that is gone or holds something else by now is said to be,
// in words; a client is never shown anything but what it was shown first.
func (l *Live) showAgain(ctx context.Context, row domain.Session, ups []domain.Update) []domain.Update {
	for i, u := range ups {
		if said, ok := u.(domain.UserMessage); ok {
			said.Block = l.showMediaAgain(ctx, row, said.Block)
			ups[i] = said
			continue
		}
		changed, ok := u.(domain.CallChanged)
		if !ok || !slices.ContainsFunc(changed.Content, isFile) {
			continue
		}
		changed.Content = slices.Clone(changed.Content)
		for k, c := range changed.Content {
			if f, ok := c.(domain.FileContent); ok {
				changed.Content[k] = l.showFileAgain(ctx, row, f)
			}
		}
		ups[i] = changed
	}
	return ups
}

// showMediaAgain turns a picture or sound of a prompt back into what the client
// sent. One that is gone or has changed stays a link to where it was.
func (l *Live) showMediaAgain(ctx context.Context, row domain.Session, b domain.Block) domain.Block {
	a, ok := b.(domain.Attachment)
	if !ok || !a.Inline || a.Size > domain.MaxShownPicture {
		return b
	}
	data, err := l.svc.p.Blobs.Read(ctx, row, a)
	if err != nil {
		return b
	}
	if m, ok := a.Media(data); ok {
		return m
	}
	return b
}

func isFile(c domain.CallContent) bool {
	_, ok := c.(domain.FileContent)
	return ok
}

func (l *Live) showFileAgain(ctx context.Context, row domain.Session, f domain.FileContent) domain.CallContent {
	data, err := l.svc.p.Blobs.Read(ctx, row, f.File)
	if err == nil {
		f.Data = data
		return f
	}
	why := "it cannot be read now"
	switch domain.CodeOf(err) {
	case domain.NotFound:
		why = "it is gone"
	case domain.Conflict:
		why = "it has another content by now"
	case domain.Denied:
		why = "this session may not read it any more"
	default:
		l.svc.trouble(ctx, l.id, "sessions: read a shown file again", err)
	}
	name := f.Title
	if name == "" {
		name = f.File.Name
	}
	return domain.ContentBlock{Block: domain.Text{Text: fmt.Sprintf("[%s was shown here; %s.]", name, why)}}
}
