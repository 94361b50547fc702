package tokens_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/tokens"
)

// FuzzFile reads a file that holds anything: it is refused, or what it holds
// can be used, and a change keeps all of it.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"version":1}`, `{"version":2,"tokens":[]}`, `{"version":1,"tokens":[{"name":"a","sha256":"00"}]}`,
		`{"version":1,"tokens":[{"name":"a","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","roots":["/x"],"level":"full"}]}`,
		`{"version":1,"tokens":[{"name":"a","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b856","agents":[],"roots":[]}]}`,
		`{"version":1,"tokens":[{"name":"../a","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "tokens.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file := tokens.OpenFile(path, time.Now)
		before, err := file.List()
		set, serr := tokens.NewSet(file)
		if (err == nil) != (serr == nil) {
			t.Fatalf("List: %v, NewSet: %v", err, serr)
		}
		if err != nil {
			if _, err := file.Create(tokens.Token{Name: "new"}); err == nil {
				t.Fatal("a damaged file was written over")
			}
			return
		}
		for _, token := range before {
			if tokens.CheckName(token.Name) != nil {
				t.Errorf("it holds the name %q", token.Name)
			}
		}
		if _, ok := set.Lookup("", true); ok {
			t.Error("nothing is a token")
		}
		if _, err := file.Create(tokens.Token{Name: "new"}); err != nil {
			return // there is one of that name
		}
		after, err := file.List()
		if err != nil || len(after) != len(before)+1 {
			t.Fatalf("there were %d, and are %d: %v", len(before), len(after), err)
		}
		for i, was := range before {
			if is := after[i]; is.Name != was.Name || is.Hash != was.Hash || is.Level != was.Level || (is.Agents == nil) != (was.Agents == nil) || (is.Roots == nil) != (was.Roots == nil) {
				t.Errorf("%+v became %+v", was, is)
			}
		}
	})
}
