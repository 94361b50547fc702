package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// uploads is the directory below the working directory that blobs go to.
const uploads = "uploads"

// Blobs keeps the blobs of prompts below <cwd>/uploads.
type Blobs struct{ disk *Disk }

var _ ports.Blobs = (*Blobs)(nil)

// NewBlobs makes the Blobs of a disk.
func NewBlobs(d *Disk) *Blobs { return &Blobs{d} }

// Store checks all blobs, then writes them, each under the hash of its
// content. A file that has the name is compared, not trusted.
func (b *Blobs) Store(ctx context.Context, s domain.Session, blobs []domain.Resource) ([]domain.Attachment, error) {
	if err := b.check(blobs); err != nil || len(blobs) == 0 {
		return nil, err
	}
	sp, err := b.disk.spaceFor(s)
	if err != nil {
		return nil, err
	}
	defer sp.drop()
	d, path, err := sp.openUploads()
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.close() }()
	out := make([]domain.Attachment, 0, len(blobs))
	for _, r := range blobs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		data := bytesOf(r)
		sum := sha256.Sum256(data)
		a := domain.Attachment{SHA256: hex.EncodeToString(sum[:]), MIME: r.MIME, URI: r.URI, Size: int64(len(data))}
		if pic, ok := pictureOf(data); ok && strings.HasPrefix(r.MIME, "image/") {
			a.MIME = pic.mime // providers refuse a picture of another type than it is said to be
		}
		name := a.SHA256 + suffixOf(a.MIME)
		a.Path, a.Name = join(path, name), displayName(r.URI, name)
		if err := storeAs(d, name, data); err != nil {
			return nil, systemError(a.Path, err)
		}
		out = append(out, a)
	}
	return out, d.sync()
}

// bytesOf is what is stored of a resource.
func bytesOf(r domain.Resource) []byte {
	if r.Binary {
		return r.Blob
	}
	return []byte(r.Text)
}

// check refuses the whole prompt before anything is written.
func (b *Blobs) check(blobs []domain.Resource) error {
	var all int64
	for i, r := range blobs {
		size := len(r.Text)
		if r.Binary {
			size = len(r.Blob)
		}
		if size > domain.MaxBlobBytes {
			return domain.Errorf(domain.TooLarge, "Attachment %d of the prompt is %d bytes long; at most %d are allowed", i+1, size, domain.MaxBlobBytes)
		}
		all += int64(size)
	}
	if most := b.disk.conf.MaxPromptBlobs; all > most {
		return domain.Errorf(domain.TooLarge, "The attachments of the prompt are %d bytes long together; at most %d are allowed", all, most)
	}
	return nil
}

// openUploads opens the uploads directory, in the directory we hold open and
// through no link, and makes it if it is missing. path is its
// canonical one: two sessions that spell the directory differently must mean
// the same files.
func (sp *space) openUploads() (d *dir, path string, err error) {
	cwd := &sp.roots[0]
	path = join(cwd.path, uploads)
	show := join(cwd.given, uploads)
	switch {
	case cwd.h == nil:
		return nil, path, systemError(cwd.given, cwd.err)
	case cwd.ban != "":
		return nil, path, domain.Errorf(domain.Denied, "%s", forbiddenWords(cwd.given, cwd.ban))
	}
	if ban := sp.guard.named(path); ban != "" {
		return nil, path, domain.Errorf(domain.Denied, "%s", forbiddenWords(show, ban))
	}
	d, err = cwd.h.dir.sub(uploads)
	if errors.Is(err, iofs.ErrNotExist) {
		if err = cwd.h.dir.mkdir(uploads, 0o700); err == nil || errors.Is(err, iofs.ErrExist) {
			d, err = cwd.h.dir.sub(uploads)
		}
	}
	switch {
	case errors.Is(err, errIsLink):
		return nil, path, domain.WrapError(domain.Denied, err, show+" is a symbolic link; attachments are stored in a real directory only")
	case errors.Is(err, errNotDir):
		return nil, path, domain.WrapError(domain.Denied, err, show+" is not a directory, so attachments cannot be stored there")
	case err != nil:
		return nil, path, systemError(show, err)
	}
	if i, err := d.stat(); err == nil {
		if ban, _ := sp.guard.object(i.id); ban != "" {
			_ = d.close()
			return nil, path, domain.Errorf(domain.Denied, "%s", forbiddenWords(show, ban))
		}
	}
	return d, path, nil
}

// storeAs makes sure that name is a file with that content.
func storeAs(d *dir, name string, data []byte) error {
	if i, err := d.lstat(name); err == nil && i.mode.IsRegular() && holds(d, name, stampOf(data), int64(len(data))) {
		return nil
	} else if err == nil && i.mode.IsDir() {
		return domain.Errorf(domain.Denied, "a directory has the name of the attachment")
	}
	f, tmp, err := d.scratch(0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.rename(tmp, name) // a link or a forgery of that name is replaced
	}
	if err != nil {
		_ = d.remove(tmp)
	}
	return err
}

// holds reports whether name is a regular file with that content.
func holds(d *dir, name string, want stamp, size int64) bool {
	f, i, err := d.open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	if !i.mode.IsRegular() || i.size != size || size > maxWhole {
		return false
	}
	raw, err := readWhole(f, i.size)
	return err == nil && stampOf(raw) == want
}

// Remove deletes attachments of a deleted session, as far as they still are
// what was stored: the right name, in an uploads directory, with the content
// the name promises. The directory goes too when nothing else is in it.
func (b *Blobs) Remove(ctx context.Context, _ domain.Session, gone []domain.Attachment) error {
	var errs []error
	for _, a := range gone {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := remove(a); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			errs = append(errs, systemError(a.Path, err))
		}
	}
	return errors.Join(errs...)
}

func remove(a domain.Attachment) error {
	at, name := filepath.Split(a.Path)
	at = filepath.Clean(at)
	stem, _, _ := strings.Cut(name, ".")
	if !filepath.IsAbs(at) || filepath.Base(at) != uploads || stem != a.SHA256 {
		return nil // nothing we would have stored
	}
	want, err := hex.DecodeString(a.SHA256)
	if err != nil || len(want) != sha256.Size {
		return nil //nolint:nilerr // nothing we would have stored
	}
	cwd, err := openPath(canonical(filepath.Dir(at)))
	if err != nil {
		return err
	}
	defer func() { _ = cwd.close() }()
	d, err := cwd.sub(uploads)
	if errors.Is(err, errIsLink) || errors.Is(err, errNotDir) {
		return nil // not the directory we stored into
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }()
	if !holds(d, name, stamp(want), a.Size) {
		return nil
	}
	if err := d.remove(name); err != nil {
		return err
	}
	_ = cwd.rmdir(uploads) // fails while anything is in it
	return nil
}

// suffixOf is the file name suffix for a MIME type. The table is short and
// closed: a name made from what a client says could be a program's.
func suffixOf(mime string) string {
	kind, _, _ := strings.Cut(mime, ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "image/png":
		return ".png"
	case "image/jpeg", "image/jpg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/bmp":
		return ".bmp"
	case "image/svg+xml":
		return ".svg"
	case "application/pdf":
		return ".pdf"
	case "application/json":
		return ".json"
	case "application/zip":
		return ".zip"
	case "application/gzip":
		return ".gz"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	case "audio/mpeg", "audio/mp3":
		return ".mp3"
	case "audio/ogg":
		return ".ogg"
	case "audio/flac":
		return ".flac"
	case "video/mp4":
		return ".mp4"
	case "text/plain":
		return ".txt"
	case "text/markdown":
		return ".md"
	case "text/csv":
		return ".csv"
	case "text/html":
		return ".html"
	case "text/xml", "application/xml":
		return ".xml"
	}
	return ".bin"
}

// displayName is what people see: the last name of the uri, on one line and
// short, or else the name of the stored file.
func displayName(uri, stored string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return stored
	}
	p := u.Path
	if p == "" {
		p = u.Opaque
	}
	name := path.Base(strings.ReplaceAll(p, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7F || ignorable(r) || strings.ContainsRune("[]", r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.TrimSpace(name)
	if name == "" || name == "." || name == ".." || name == "/" || len(name) > 200 || u.Scheme == "data" {
		return stored
	}
	return name
}
