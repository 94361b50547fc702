package shellpolicy

// searchTool returns the grammar of the tools that look for text and files.
func searchTool(name string) (t tool, ok bool) {
	switch name {
	case "grep", "egrep", "fgrep":
		t = tool{text: 1, digits: true, short: "EFGPe%:f%<ivwxycLlm:oqshHnbTuUzZaIr@R~A:B:C:d~:D~:V",
			long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp%: file%< ignore-case no-ignore-case invert-match word-regexp " +
				"line-regexp count color? colour? files-without-match files-with-matches max-count: only-matching quiet silent no-messages " +
				"byte-offset with-filename no-filename label: line-number initial-tab unix-byte-offsets null null-data after-context: " +
				"before-context: context: text binary-files: binary devices~: directories~: exclude: exclude-from< exclude-dir: include: " +
				"recursive@ dereference-recursive~ line-buffered help version"}
	case "rg":
		t = tool{text: 1, strict: true, walk: true, dot: true,
			short: "A:B:C:cd:E:e%:Ff%<g:HhiIj:L~lM:m:NnoPpqr:sSt:T:uUVvwxz!0a.b",
			long: "after-context: auto-hybrid-regex before-context: binary block-buffered byte-offset case-sensitive color: colors: column context: " +
				"context-separator: count count-matches crlf debug dfa-size-limit: encoding: engine: field-context-separator: " +
				"field-match-separator: file%< files% files-with-matches files-without-match fixed-strings follow~ glob: " +
				"glob-case-insensitive heading help hidden hostname-bin!: hyperlink-format: iglob: ignore-case ignore-file< " +
				"ignore-file-case-insensitive include-zero invert-match json line-buffered line-number line-regexp max-columns: " +
				"max-columns-preview max-count: max-depth: maxdepth: max-filesize: mmap multiline multiline-dotall null null-data one-file-system " +
				"only-matching path-separator: passthru passthrough pcre2 pcre2-version pre!: pre-glob: pretty quiet regexp%: regex-size-limit: " +
				"replace: search-zip! smart-case sort: sort-files sortr: stats stop-on-nonmatch text threads: trace trim type: type-add: " +
				"type-clear: type-list% type-not: unrestricted version vimgrep with-filename word-regexp no-*"}
	case "fd", "fdfind":
		t = tool{text: 1, strict: true, walk: true, dot: true, short: "HIusigFapl!L~t:e:S:d:E:c:j:01qo:Vhx!X!",
			long: "hidden no-ignore unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path list-details! follow~ full-path " +
				"print0 max-depth: min-depth: exact-depth: exclude: prune type: extension: size: changed-within: changed-before: owner: color: " +
				"threads: max-results: quiet show-errors strip-cwd-prefix? path-separator: one-file-system and: exec! exec-batch! batch-size: " +
				"search-path~: base-directory~: ignore-file< help version no-*"}
	default:
		return tool{}, false
	}
	return t, true
}
