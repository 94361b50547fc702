package scripted

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Opener opens models of provider type "scripted". The provider's base URL
// names the script: "file:/path/to/script"; bootstrap makes it of the setting
// "script". When that is a directory, each
// model plays the file of its own name in it, with ".script" added; otherwise
// every model of the provider plays the one script, each from its start. The
// file is read when a model is first opened.
func Opener() llm.Opener {
	return llm.Opener{Open: open, Complete: complete}
}

func open(p llm.Provider, info domain.ModelInfo) (ports.Model, error) {
	path, ok := strings.CutPrefix(p.BaseURL, "file:")
	if !ok || path == "" {
		return nil, domain.Errorf(domain.InvalidArgument,
			"providers.%s.script must name the file to play", p.Name)
	}
	if rest, ok := strings.CutPrefix(path, "//"); ok { // file:///path
		path = rest
	}
	if at, err := os.Stat(path); err == nil && at.IsDir() {
		name := info.Ref.Model
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return nil, domain.Errorf(domain.InvalidArgument, "model %q is not the name of a script", name)
		}
		path = filepath.Join(path, name+".script")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, "the script of provider %q cannot be read: %w", p.Name, err)
	}
	script, err := Parse(string(text))
	if err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, "%s: %w", path, err)
	}
	return New(info, script), nil
}
