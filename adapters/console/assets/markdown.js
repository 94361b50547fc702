// A part of Markdown, read to a tree. Pure functions; nothing here knows HTML,
// and what is not understood stays the text it is.

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$/;
const QUOTE = /^ {0,3}>[ \t]?(.*)$/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const DEPTH = 8;

/**
 * Reader reads a text that grows. Its blocks are those of the whole text so
 * far; all but the last stay as they are when more comes.
 */
export class Reader {
	blocks = [];
	#text = "";
	#open = 0; // where the last block begins

	/** push takes the whole text, which may have grown, and returns how many blocks are unchanged. */
	push(text) {
		if (!text.startsWith(this.#text)) {
			this.blocks = [];
			this.#open = 0;
		} else if (text.length === this.#text.length && this.blocks.length) {
			return this.blocks.length;
		}
		this.#text = text;
		const kept = Math.max(0, this.blocks.length - 1);
		this.blocks.length = kept;
		const base = this.#open;
		for (const b of blocksOf(text.slice(base))) {
			this.#open = base + b.at;
			this.blocks.push(b);
		}
		return kept;
	}
}

/** parse reads a text to blocks. */
export function parse(text) {
	return blocksOf(text);
}

function blocksOf(text, depth = 0) {
	const lines = [];
	for (let at = 0; at < text.length; ) {
		let end = text.indexOf("\n", at);
		if (end < 0) end = text.length;
		let s = text.slice(at, end);
		if (s.endsWith("\r")) s = s.slice(0, -1);
		lines.push({s: s.replace(/\t/g, "    "), raw: s, at});
		at = end + 1;
	}
	return readBlocks(lines, depth);
}

const again = (lines, depth) => readBlocks(lines.map((s) => ({s, raw: s, at: 0})), depth);

function readBlocks(lines, depth) {
	const out = [];
	for (let i = 0; i < lines.length; ) {
		const {s, at} = lines[i];
		let m;
		if (!s.trim()) {
			i++;
		} else if ((m = FENCE.exec(s))) {
			const close = new RegExp(`^ {0,3}${m[1][0]}{${m[1].length},}[ \\t]*$`);
			const indent = s.search(/\S/);
			const code = [];
			let ended = false;
			for (i++; i < lines.length; i++) {
				if (close.test(lines[i].raw)) {
					ended = true;
					i++;
					break;
				}
				code.push(indent ? lines[i].raw.replace(new RegExp(`^ {0,${indent}}`), "") : lines[i].raw);
			}
			out.push({type: "code", lang: m[2].split(/\s/)[0], text: code.join("\n"), open: !ended, at});
		} else if ((m = HEADING.exec(s))) {
			out.push({type: "heading", level: m[1].length, inline: inline(m[2]), at});
			i++;
		} else if (RULE.test(s)) {
			out.push({type: "rule", at});
			i++;
		} else if (depth < DEPTH && QUOTE.test(s)) {
			const inner = [];
			for (; i < lines.length && lines[i].s.trim(); i++) {
				m = QUOTE.exec(lines[i].s);
				if (!m && starts(lines[i].s)) break;
				inner.push(m ? m[1] : lines[i].s);
			}
			out.push({type: "quote", blocks: again(inner, depth + 1), at});
		} else if (depth < DEPTH && (m = ITEM.exec(s)) && m[1].length < 4) {
			const [block, next] = readList(lines, i, depth);
			out.push(block);
			i = next;
		} else if (s.includes("|") && lines[i + 1] && lines[i + 1].s.includes("-") && DELIMITERS.test(lines[i + 1].s) && cells(s).length === cells(lines[i + 1].s).length) {
			const align = cells(lines[i + 1].s).map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : ""));
			const block = {type: "table", head: cells(s).map(inline), align, rows: [], at};
			for (i += 2; i < lines.length && lines[i].s.trim() && lines[i].s.includes("|"); i++) {
				const row = cells(lines[i].s).slice(0, align.length);
				while (row.length < align.length) row.push("");
				block.rows.push(row.map(inline));
			}
			out.push(block);
		} else {
			const words = [s.trim()];
			for (i++; i < lines.length && lines[i].s.trim() && !starts(lines[i].s); i++) words.push(lines[i].s.trim());
			out.push({type: "paragraph", inline: inline(words.join("\n")), at});
		}
	}
	return out;
}

/** starts reports whether a line ends the paragraph before it. */
function starts(s) {
	const item = ITEM.exec(s);
	return FENCE.test(s) || HEADING.test(s) || RULE.test(s) || QUOTE.test(s) || !!(item && item[1].length < 4 && item[3] && !/^\d{2,}/.test(item[2]));
}

function readList(lines, i, depth) {
	const ordered = (marker) => /\d/.test(marker);
	const first = ITEM.exec(lines[i].s);
	const same = (m) => m && m[1].length < first[1].length + 4 && m[1].length <= first[1].length + 1 && ordered(m[2]) === ordered(first[2]);
	const block = {type: "list", ordered: ordered(first[2]), start: parseInt(first[2], 10) || 1, items: [], at: lines[i].at};
	while (i < lines.length && same(ITEM.exec(lines[i].s)) && !RULE.test(lines[i].s)) {
		const m = ITEM.exec(lines[i].s);
		const indent = m[1].length + m[2].length + 1;
		const inner = [m[3] ?? ""];
		let fence = null;
		for (i++; i < lines.length; i++) {
			const s = lines[i].s;
			const lead = s.search(/\S/);
			if (lead < 0) {
				// A blank line ends the item unless what follows still belongs to it.
				let j = i;
				while (j < lines.length && !lines[j].s.trim()) j++;
				if (j === lines.length || (lines[j].s.search(/\S/) < Math.min(indent, m[1].length + 2) && !fence)) break;
				inner.push("");
			} else if (lead >= Math.min(indent, m[1].length + 2)) {
				const piece = s.slice(Math.min(lead, indent));
				const f = FENCE.exec(piece);
				if (f) fence = fence ? null : f[1];
				inner.push(piece);
			} else if (!starts(s) && inner[inner.length - 1] !== "") {
				inner.push(s.trim());
			} else break;
		}
		const item = {blocks: again(inner, depth + 1)};
		const box = /^\[([ xX])\] +/.exec(inner[0]);
		if (box && item.blocks[0]?.type === "paragraph") {
			item.checked = box[1] !== " ";
			inner[0] = inner[0].slice(box[0].length);
			item.blocks = again(inner, depth + 1);
		}
		block.items.push(item);
		let j = i;
		while (j < lines.length && !lines[j].s.trim()) j++;
		if (j > i && j < lines.length && same(ITEM.exec(lines[j].s))) i = j;
	}
	return [block, i];
}

function cells(s) {
	const row = s.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
	return row.split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, "|"));
}

const PLAIN = /[^\\`*_~![\]<h\n]+/y;
const BARE = /https?:\/\/[^\s<>"'`|]+/y;
const WORD = /[\p{L}\p{N}]/u;

const LONG = 32_000; // letters of a paragraph beyond which it is no Markdown, but something long

/** inline reads the text of a paragraph to a list of nodes. */
export function inline(s, depth = 0) {
	if (s.length > LONG) return s.split("\n").flatMap((text, i) => [...(i ? [{type: "break"}] : []), {type: "text", text}]);
	const out = [];
	let text = "";
	const flush = () => {
		if (text) out.push({type: "text", text});
		text = "";
	};
	const put = (node) => {
		flush();
		out.push(node);
	};
	for (let i = 0; i < s.length; ) {
		PLAIN.lastIndex = i;
		const plain = PLAIN.exec(s);
		if (plain) {
			text += plain[0];
			i += plain[0].length;
			continue;
		}
		const c = s[i];
		let m;
		if (c === "\\" && /[!-/:-@[-`{-~]/.test(s[i + 1] ?? "")) {
			text += s[i + 1];
			i += 2;
		} else if (c === "`" && (m = codeAt(s, i))) {
			put({type: "code", text: m.text});
			i = m.end;
		} else if ((c === "*" || c === "_" || c === "~") && depth < DEPTH && (m = spanAt(s, i))) {
			put({type: m.type, inline: inline(m.text, depth + 1)});
			i = m.end;
		} else if ((c === "[" || (c === "!" && s[i + 1] === "[")) && depth < DEPTH && (m = linkAt(s, i))) {
			put(m.image ? {type: "image", alt: m.text, href: m.href} : {type: "link", href: m.href, inline: inline(m.text, depth + 1)});
			i = m.end;
		} else if (c === "<" && (m = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(s.slice(i, i + 2048)))) {
			put({type: "link", href: m[1], inline: [{type: "text", text: m[1]}]});
			i += m[0].length;
		} else if (c === "h" && !WORD.test(s[i - 1] ?? "") && ((BARE.lastIndex = i), (m = BARE.exec(s)))) {
			let address = m[0].replace(/[.,;:!?*_~]+$/, "");
			while (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
			put({type: "link", href: address, inline: [{type: "text", text: address}]});
			i += address.length;
		} else if (c === "\n") {
			text = text.replace(/ +$/, "");
			put({type: "break"});
			i++;
		} else {
			// A run of one letter that means nothing here is passed over at once.
			let j = i + 1;
			if (c === "`" || c === "*" || c === "_" || c === "~") while (s[j] === c) j++;
			text += s.slice(i, j);
			i = j;
		}
	}
	flush();
	return out;
}

function codeAt(s, i) {
	let n = i;
	while (s[n] === "`") n++;
	const ticks = s.slice(i, n);
	for (let j = s.indexOf(ticks, n); j >= 0; j = s.indexOf(ticks, j)) {
		let end = j;
		while (s[end] === "`") end++;
		if (end - j === ticks.length) {
			let text = s.slice(n, j).replace(/\n/g, " ");
			if (text.startsWith(" ") && text.endsWith(" ") && text.trim()) text = text.slice(1, -1);
			return {text, end};
		}
		j = end;
	}
	return null;
}

const SPAN = 4000; // letters that emphasis is looked for in

function spanAt(s, i) {
	const c = s[i];
	const n = s[i + 1] === c ? 2 : 1;
	if (c === "~" && n === 1) return null;
	const mark = s.slice(i, i + n);
	if (/\s/.test(s[i + n] ?? " ") || (c === "_" && WORD.test(s[i - 1] ?? ""))) return null;
	const most = Math.min(s.length, i + SPAN);
	for (let j = s.indexOf(mark, i + n + 1); j >= 0 && j < most; j = s.indexOf(mark, j + 1)) {
		if (/[\s\\]/.test(s[j - 1])) continue;
		if (n === 1 && (s[j + 1] === c || s[j - 1] === c)) {
			// Part of a stronger mark inside.
			if (s[j + 1] === c) j++;
			continue;
		}
		if (n === 2 && s[j + 2] === c) j++;
		if (c === "_" && WORD.test(s[j + n] ?? "")) continue;
		const text = s.slice(i + n, j);
		if ((text.match(/`/g)?.length ?? 0) % 2) continue; // the mark is code
		return {type: c === "~" ? "strike" : n === 2 ? "strong" : "emphasis", text, end: j + n};
	}
	return null;
}

function linkAt(s, i) {
	const image = s[i] === "!";
	const from = i + (image ? 2 : 1);
	let depth = 1;
	let j = from;
	const most = Math.min(s.length, i + SPAN);
	for (; j < most; j++) {
		if (s[j] === "\\") j++;
		else if (s[j] === "[") depth++;
		else if (s[j] === "]" && --depth === 0) break;
	}
	if (depth || s[j + 1] !== "(") return null;
	const m = /^\(\s*(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/.exec(s.slice(j + 1, j + 1 + SPAN));
	if (!m) return null;
	return {image, text: s.slice(from, j), href: m[1] ?? m[2], end: j + 1 + m[0].length};
}
