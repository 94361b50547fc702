package tokens

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// maxFile bounds the file.
const maxFile = 4 << 20

// version is that of the file's form.
const version = 1

// File is where tokens are kept. Several processes may use one.
type File struct {
	path string
	now  func() time.Time
}

// OpenFile names the file, which need not exist. Nothing is read yet.
func OpenFile(path string, now func() time.Time) *File { return &File{path, now} }

// Path is where the file is.
func (f *File) Path() string { return f.path }

// stored is the file.
type stored struct {
	Version int           `json:"version"`
	Tokens  []storedToken `json:"tokens"`
}

type storedToken struct {
	Name        string    `json:"name"`
	SHA256      string    `json:"sha256"`
	Created     time.Time `json:"created"`
	Agents      []string  `json:"agents,omitzero"` // none is not the same as not said
	Level       string    `json:"level,omitempty"`
	Roots       []string  `json:"roots,omitzero"`
	Observe     bool      `json:"observe,omitempty"`
	MCPCommands bool      `json:"mcp_commands,omitempty"`
}

// List returns the tokens in the order in which they were made.
func (f *File) List() ([]Token, error) {
	list, err := f.read()
	if err != nil {
		return nil, err
	}
	used := f.readUsed()
	for i := range list {
		list[i].LastUsed = used[hex.EncodeToString(list[i].Hash[:])]
	}
	return list, nil
}

// Create stores a new token and returns it. It is nowhere else.
func (f *File) Create(t Token) (secret string, err error) {
	if err := CheckName(t.Name); err != nil {
		return "", err
	}
	secret = New()
	t.Hash, t.Created = Hash(secret), f.now().UTC().Truncate(time.Second)
	err = f.change(func(list []Token) ([]Token, error) {
		if slices.ContainsFunc(list, func(o Token) bool { return o.Name == t.Name }) {
			return nil, domain.Errorf(domain.InvalidArgument, "there is a token %s already; revoke it first, or choose another --name", t.Name)
		}
		return append(list, t), nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Revoke removes a token. A gateway that runs ends its connections within
// seconds. The error is fs.ErrNotExist when there is none of that name.
func (f *File) Revoke(name string) error {
	return f.change(func(list []Token) ([]Token, error) {
		rest := slices.DeleteFunc(slices.Clone(list), func(t Token) bool { return t.Name == name })
		if len(rest) == len(list) {
			return nil, fmt.Errorf("there is no token %q: %w", name, fs.ErrNotExist)
		}
		return rest, nil
	})
}

// change rewrites the file, one process at a time.
func (f *File) change(edit func([]Token) ([]Token, error)) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	unlock, err := lock(f.path + ".lock")
	if err != nil {
		return fmt.Errorf("lock the tokens: %w", err)
	}
	defer unlock()
	list, err := f.read()
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	out := stored{Version: version, Tokens: []storedToken{}}
	for _, t := range list {
		out.Tokens = append(out.Tokens, storedToken{
			t.Name, hex.EncodeToString(t.Hash[:]), t.Created, t.Agents, string(t.Level), t.Roots, t.Observe, t.MCPCommands,
		})
	}
	return writeJSON(f.path, out)
}

// read reads the file; one that is not there holds nothing.
func (f *File) read() ([]Token, error) {
	data, err := readBounded(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("tokens: %s is damaged: %w", f.path, err)
	}
	if in.Version != version {
		return nil, fmt.Errorf("tokens: %s has the form %d of another version; this one knows %d", f.path, in.Version, version)
	}
	// A limit that is not understood would be no limit.
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&stored{}); err != nil {
		return nil, fmt.Errorf("tokens: %s is damaged: %w", f.path, err)
	}
	list := make([]Token, 0, len(in.Tokens))
	for _, s := range in.Tokens {
		t := Token{
			Name: s.Name, Created: s.Created, Agents: s.Agents, Level: domain.Level(s.Level), Roots: s.Roots, Observe: s.Observe, MCPCommands: s.MCPCommands,
		}
		sum, err := hex.DecodeString(s.SHA256)
		if err != nil || len(sum) != len(t.Hash) || CheckName(s.Name) != nil {
			return nil, fmt.Errorf("tokens: %s is damaged: the token %q has no right name and sha256", f.path, s.Name)
		}
		copy(t.Hash[:], sum)
		list = append(list, t)
	}
	return list, nil
}

// usedPath is where a gateway notes when tokens were used. It is another file,
// so that commands and a gateway never write the same one.
func (f *File) usedPath() string {
	return strings.TrimSuffix(f.path, ".json") + "-used.json"
}

// readUsed returns when tokens were last used, by their hashes. What cannot be
// read is not known.
func (f *File) readUsed() map[string]time.Time {
	used := map[string]time.Time{}
	if data, err := readBounded(f.usedPath()); err == nil {
		_ = json.Unmarshal(data, &used)
	}
	return used
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, err
}

// writeJSON replaces a file for its owner alone, whole or not at all.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile replaces a file with data, mode 0600, whole or not at all.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
