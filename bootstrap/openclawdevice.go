package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/tokens"
)

// deviceIdentity reads the key of this device, or makes it. The file is the
// user's alone. link is os.Link.
func deviceIdentity(file string, link func(from, to string) error) (*openclaw.Identity, error) {
	i, err := readDevice(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDevice(file, link); err == nil {
			i, err = readDevice(file)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the device's key: %w", err)
	}
	return i, nil
}

func readDevice(file string) (*openclaw.Identity, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	i, err := openclaw.ParseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() == 0o600 {
		return i, err
	}
	return i, os.Chmod(file, 0o600)
}

// makeDevice makes a key, unless another bridge does so at the same time.
func makeDevice(file string, link func(from, to string) error) error {
	i, err := openclaw.NewIdentity()
	if err != nil {
		return err
	}
	data, err := i.Marshal()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	fresh := file + "." + uuid.NewString()
	if err := tokens.WriteFile(fresh, data); err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh) }()
	// Of two bridges that start at once one makes the key.
	err = link(fresh, file)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(fresh, file) // there are file systems without links
}

// keepDevice writes down what a gateway has given this device. Bridges to
// other gateways write the same file: what they wrote stays. A key that is
// another one by now stays, too.
func keepDevice(file, gateway string, i *openclaw.Identity) error {
	there, err := readDevice(file)
	if err != nil {
		return err
	}
	if there.ID() != i.ID() {
		return fmt.Errorf("%s holds another key by now: start the bridge anew", file)
	}
	i.Adopt(there, gateway)
	data, err := i.Marshal()
	if err != nil {
		return err
	}
	return tokens.WriteFile(file, data)
}
