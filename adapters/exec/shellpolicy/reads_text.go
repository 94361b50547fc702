package shellpolicy

// textTool returns the grammar of the tools that print text from files.
func textTool(name string) (t tool, ok bool) {
	switch name {
	case "cat":
		t = tool{short: "AbeEnstTuv", long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"}
	case "head":
		t = tool{short: "c:n:qvz", digits: true, long: "bytes: lines: quiet silent verbose zero-terminated help version"}
	case "tail":
		t = tool{short: "c:n:qvzf~F~s:", digits: true, strict: true,
			long: "bytes: lines: follow~? retry~ pid~: sleep-interval: max-unchanged-stats: quiet silent verbose zero-terminated help version"}
	case "wc":
		t = tool{short: "clmwL", long: "bytes chars lines words max-line-length total: files0-from~: help version"}
	case "nl":
		t = tool{short: "b:d:f:h:i:l:n:ps:v:w:", long: "body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: " +
			"join-blank-lines: number-format: no-renumber number-separator: starting-line-number: number-width: help version"}
	case "tac":
		t = tool{short: "brs:", long: "before regex separator: help version"}
	case "rev":
		t = tool{short: "0hV", long: "zero help version"}
	case "cut":
		t = tool{short: "b:c:d:f:nsz", long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated help version"}
	case "tr":
		t = tool{short: "cCdst", text: -1, long: "complement delete squeeze-repeats truncate-set1 help version"}
	case "sort":
		t = tool{short: "bdfgiMhnRrVcCk:mo>S~:st:T~:uz", strict: true,
			long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort " +
				"numeric-sort random-sort random-source< reverse sort: version-sort batch-size~: check? compress-program!: debug files0-from~: " +
				"key: merge output> stable buffer-size~: field-separator: temporary-directory~: parallel: unique zero-terminated help version"}
	case "uniq":
		t = tool{short: "cdDf:ius:w:z", most: 1, strict: true,
			long: "count repeated all-repeated? skip-fields: group? ignore-case skip-chars: unique zero-terminated check-chars: help version"}
	case "comm":
		t = tool{short: "123z", long: "check-order nocheck-order output-delimiter: total zero-terminated help version"}
	case "join":
		t = tool{short: "a:e:ij:1:2:o:t:v:z", long: "ignore-case header check-order nocheck-order zero-terminated help version"}
	case "paste":
		t = tool{short: "d:sz", long: "delimiters: serial zero-terminated help version"}
	case "fold":
		t = tool{short: "bsw:", digits: true, long: "bytes spaces width: help version"}
	case "fmt":
		t = tool{short: "cg:p:stuw:", digits: true, long: "crown-margin goal: prefix: split-only tagged-paragraph uniform-spacing width: help version"}
	case "expand", "unexpand":
		t = tool{short: "ait:", digits: true, long: "all first-only initial tabs: help version"}
	case "column":
		t = tool{short: "tns:o:c:N:R:H:exlJd", long: "table separator: output-separator: output-width: table-columns: table-right: table-hide: json fillrows help version"}
	case "base64", "base32":
		t = tool{short: "diw:", most: 1, long: "decode ignore-garbage wrap: help version"}
	case "od":
		t = tool{short: "A:S:t:vj:N:w?abcdfhilosxBDHILOX",
			long: "address-radix: endian: skip-bytes: read-bytes: strings? format: output-duplicates width? traditional help version"}
	case "hexdump", "hd":
		t = tool{short: "bcCdovxn:s:e:f<", long: "one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex format: format-file< length: skip: no-squeezing help version"}
	case "xxd":
		t = tool{short: "abEeuidc:g:l:o:s:n:pr~R:vh", most: 1, strict: true}
	case "strings":
		t = tool{short: "afdwn:t:e:oU:s:", digits: true, strict: true,
			long: "all data print-file-name bytes: radix: encoding: unicode: output-separator: include-all-whitespace help version"}
	default:
		return sumTool(name)
	}
	return t, true
}

// sumTool returns the grammar of the tools that compute check sums.
func sumTool(name string) (t tool, ok bool) {
	switch name {
	case "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum":
		return tool{short: "bc~l:twz", long: "binary check~ length: tag text zero ignore-missing quiet status strict warn help version"}, true
	case "cksum":
		return tool{short: "a:c~l:wz", long: "algorithm: base64 check~ length: tag untagged raw zero debug ignore-missing quiet status strict warn help version"}, true
	case "cmp":
		return tool{short: "bi:ln:s", long: "print-bytes ignore-initial: verbose bytes: quiet silent help version"}, true
	case "diff":
		return tool{strict: true, short: "qsr~NabBiwEZtTydeunpcW:U:C:x:X<L:I:F:l~S:HD:", digits: true,
			long: "normal brief report-identical-files context? unified? ed rcs side-by-side width: left-column suppress-common-lines " +
				"show-c-function show-function-line: label: expand-tabs initial-tab tabsize: suppress-blank-empty paginate~ recursive~ " +
				"no-dereference new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case exclude: exclude-from< " +
				"starting-file: from-file< to-file~: ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change " +
				"ignore-all-space ignore-blank-lines ignore-matching-lines: strip-trailing-cr text speed-large-files minimal color? " +
				"palette: horizon-lines: ifdef: line-format: help version"}, true
	}
	return tool{}, false
}
