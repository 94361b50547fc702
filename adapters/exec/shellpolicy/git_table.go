package shellpolicy

const (
	gitDiffShort = "puU:szabwWRM?C?B?DS:G:l:mrtcq"
	gitDiffLong  = "patch no-patch unified: raw patch-with-raw stat? numstat shortstat dirstat? summary compact-summary patch-with-stat name-only " +
		"name-status submodule? color? no-color color-moved? no-color-moved word-diff? word-diff-regex: color-words? no-renames check " +
		"ws-error-highlight: full-index binary abbrev? no-abbrev break-rewrites? find-renames? find-copies? find-copies-harder irreversible-delete " +
		"diff-filter: pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change " +
		"ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet no-ext-diff " +
		"no-textconv no-prefix src-prefix: dst-prefix: line-prefix: minimal patience histogram anchored: diff-algorithm: " +
		"indent-heuristic no-indent-heuristic cached staged merge-base output> output-indicator-new: output-indicator-old: " +
		"output-indicator-context: ext-diff! textconv! no-index~ ours theirs base ita-invisible-in-index"
	gitLogShort = gitDiffShort + "n:L:iEFPg"
	gitLogLong  = gitDiffLong + " oneline pretty? format: abbrev-commit no-abbrev-commit date: since: until: after: before: author: committer: " +
		"grep: all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp max-count: skip: merges " +
		"no-merges first-parent all branches? tags? remotes? glob: exclude: not graph no-graph decorate? no-decorate decorate-refs: " +
		"decorate-refs-exclude: source reverse topo-order date-order author-date-order follow full-history simplify-by-decoration " +
		"left-right cherry-pick cherry cherry-mark reflog walk-reflogs show-pulls no-notes notes? show-signature! encoding: expand-tabs? " +
		"no-expand-tabs parents children left-only right-only boundary min-parents: max-parents: no-walk? do-walk ancestry-path? dense sparse " +
		"simplify-merges no-mailmap mailmap relative-date log-size count"
)

// gitTool returns the grammar of the commands of git that only read.
func gitTool(name string) (t tool, ok bool) {
	switch name {
	case "status":
		t = tool{short: "sbvu?z", long: "short branch show-stash porcelain? long verbose untracked-files? ignore-submodules? ignored? column? " +
			"no-column ahead-behind no-ahead-behind renames no-renames find-renames?"}
	case "log", "show", "whatchanged", "rev-list":
		t = tool{short: gitLogShort, long: gitLogLong, digits: true}
	case "diff":
		t = tool{short: gitDiffShort, long: gitDiffLong, digits: true}
	case "shortlog":
		t = tool{short: "nsew?" + gitLogShort, long: gitLogLong + " numbered email group:"}
	case "blame", "annotate":
		t = tool{short: "cblL:tsefnpwM?C?", long: "root show-stats show-name show-number show-email porcelain line-porcelain incremental encoding: date: " +
			"abbrev: contents< reverse: first-parent color-lines color-by-age minimal ignore-rev: ignore-revs-file< since: progress no-progress"}
	case "rev-parse":
		t = tool{short: "q", long: "abbrev-ref? show-toplevel git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository short? " +
			"verify quiet symbolic symbolic-full-name show-prefix show-cdup absolute-git-dir all branches? tags? remotes? is-shallow-repository show-object-format?"}
	case "ls-files":
		t = tool{short: "cdmosiktuvfzx:X<", long: "cached deleted modified others ignored stage directory no-empty-directory unmerged killed exclude: " +
			"exclude-from< exclude-per-directory: exclude-standard error-unmatch with-tree: full-name recurse-submodules abbrev? debug eol " +
			"deduplicate format: resolve-undo"}
	case "ls-tree":
		t = tool{short: "drtlz", long: "long name-only name-status object-only full-name full-tree abbrev? format:"}
	case "cat-file":
		t = tool{short: "tsep", long: "allow-unknown-type textconv! filters!"}
	case "describe":
		t = tool{long: "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent dirty? broken? debug"}
	case "merge-base":
		t = tool{short: "a", long: "all octopus independent is-ancestor fork-point"}
	case "for-each-ref", "show-ref":
		t = tool{short: "qds", long: "count: sort: format: points-at: merged? no-merged? contains? no-contains? ignore-case head heads tags hash? verify quiet dereference abbrev?"}
	case "grep":
		t = tool{text: 1, digits: true, short: "aIiwvhHEGPFnlLcopqzO!?We%:f%<A:B:C:m:",
			long: "cached untracked no-index~ text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings " +
				"line-number column files-with-matches name-only files-without-match open-files-in-pager!? null only-matching count color? no-color break " +
				"heading show-function function-context context: after-context: before-context: max-depth: max-count: threads: and or not all-match quiet " +
				"exclude-standard no-exclude-standard recursive no-recursive recurse-submodules textconv! no-textconv"}
	case "check-ignore":
		t = tool{short: "qvnz", long: "quiet verbose non-matching no-index~"}
	case "version":
		t = tool{long: "build-options"}
	default:
		return tool{}, false
	}
	t.strict = true
	return t, true
}
