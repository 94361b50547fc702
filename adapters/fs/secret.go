package fs

import (
	"path"
	"slices"
	"strings"
)

// secretLike reports whether the canonical names of a file say that it holds
// keys or passwords. It is a hint for a question, not a lock: names are
// compared as a forgiving file system would.
func secretLike(names []string) bool {
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i] = plainName(n)
	}
	if len(plain) == 0 {
		return false
	}
	last := len(plain) - 1
	for _, dir := range plain[:last] {
		switch dir {
		case ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", "secrets", ".secrets":
			return true
		}
	}
	name := plain[last]
	stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	switch {
	case name == ".env" || strings.HasPrefix(name, ".env."):
		return !slices.Contains([]string{".example", ".sample", ".template", ".dist", ".defaults"}, ext)
	case strings.HasPrefix(name, "id_") && ext == "":
		return true
	case slices.Contains([]string{".env", ".pem", ".key", ".p12", ".pfx", ".p8", ".jks", ".keystore", ".kdbx", ".kdb", ".ppk", ".asc", ".gpg",
		".tfstate", ".tfvars", ".ovpn", ".htpasswd"}, ext):
		return true
	case strings.HasPrefix(name, ".git-credentials"), strings.HasPrefix(name, "service-account"), strings.HasPrefix(name, "service_account"):
		return true
	}
	for _, word := range []string{"credential", "credentials", "secret", "secrets", "password", "passwords", "passwd", "token", "tokens",
		".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".dockercfg", ".boto", "kubeconfig", "shadow", "private-key", "private_key"} {
		if name == word || stem == word && !sourceLike(ext) {
			return true
		}
	}
	return false
}

// sourceLike tells a program about secrets, such as token.go, from a file of
// them.
func sourceLike(ext string) bool {
	return slices.Contains([]string{".go", ".c", ".h", ".cc", ".cpp", ".rs", ".py", ".js", ".mjs", ".ts", ".tsx", ".jsx", ".java", ".kt", ".rb",
		".php", ".cs", ".swift", ".scala", ".ex", ".md", ".rst", ".html", ".css", ".svg", ".png", ".jpg"}, ext)
}
