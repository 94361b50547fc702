package config

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLoad measures what every start pays. The goals are 300 µs without
// a file and 1 ms with a typical one.
func BenchmarkLoad(b *testing.B) {
	env := append(os.Environ(), "BERTH_ACP__MAX_SESSIONS=20")
	for _, bm := range []struct{ name, doc string }{
		{"no file", ""},
		{"typical", "[acp]\nmax_sessions = 2000\n\n[providers.fake]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"x\"\n\n[agents.default]\nmodel = \"fake/fake-instant\"\n"},
		{"everything", everything},
	} {
		b.Run(bm.name, func(b *testing.B) {
			dir := b.TempDir()
			if bm.doc != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(bm.doc), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			o := Options{ConfigDir: dir, Home: dir, Env: append(env, "DSN=x")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
