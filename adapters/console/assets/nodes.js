// Nodes of the page, made one by one. Strings become text nodes and nothing else.
import {exact, href, line, output, prose, size} from "./text.js";
import {hunks, stat} from "./diff.js";

/** el makes an element. Props: class, text, data, on, else attributes; false and null leave one out. */
export function el(tag, props = {}, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(props)) {
		if (value === false || value === null || value === undefined) continue;
		if (name === "class") e.className = value;
		else if (name === "text") e.textContent = value;
		else if (name === "on") for (const [type, fn] of Object.entries(value)) e.addEventListener(type, fn);
		else e.setAttribute(name, value === true ? "" : String(value));
	}
	e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
	return e;
}

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
	read: "M4 5c3-1 6 0 8 1.5C14 5 17 4 20 5v13c-3-1-6 0-8 1.5C10 18 7 17 4 18zM12 6.5v13",
	edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
	delete: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
	move: "M4 12h15M13 6l6 6-6 6",
	search: "M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5L20 20",
	execute: "M5 7l5 5-5 5M12 18h7",
	think: "M9 18h6M10 21h4M12 3a6 6 0 0 1 4 10.5c-1 1-1 1.5-1 2.5H9c0-1 0-1.5-1-2.5A6 6 0 0 1 12 3z",
	fetch: "M12 21a9 9 0 1 1 0-18 9 9 0 0 1 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
	other: "M12 8v8M8 12h8M12 21a9 9 0 1 1 0-18 9 9 0 0 1 0 18z",
	back: "M15 5l-7 7 7 7",
	down: "M12 5v14M6 13l6 6 6-6",
	send: "M12 19V5M6 11l6-6 6 6",
	stop: "M7 7h10v10H7z",
	sun: "M12 16a4 4 0 1 1 0-8 4 4 0 0 1 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6l1.4 1.4M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4",
	plus: "M12 5v14M5 12h14",
	out: "M10 5H5v14h5M14 8l4 4-4 4M9 12h9",
	copy: "M9 9h10v11H9zM5 15V4h10",
	clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L12.6 4.6a3 3 0 0 1 4.3 4.3L9.5 16.3a1.5 1.5 0 0 1-2.1-2.1L14 7.5",
};

/** icon draws one of the few pictures of the page; it says nothing to readers. */
export function icon(name) {
	const s = document.createElementNS(SVG, "svg");
	s.setAttribute("viewBox", "0 0 24 24");
	s.setAttribute("class", "icon");
	s.setAttribute("aria-hidden", "true");
	const p = document.createElementNS(SVG, "path");
	p.setAttribute("d", PATHS[name] ?? PATHS.other);
	s.append(p);
	return s;
}

/** inlines makes the nodes of a paragraph. */
export function inlines(list) {
	return list.map((n) => {
		switch (n.type) {
			case "text":
				return document.createTextNode(prose(n.text));
			case "code":
				return el("code", {text: exact(n.text), dir: "ltr"});
			case "strong":
				return el("strong", {}, ...inlines(n.inline));
			case "emphasis":
				return el("em", {}, ...inlines(n.inline));
			case "strike":
				return el("s", {}, ...inlines(n.inline));
			case "break":
				return el("br");
			case "image":
				return anchor(n.href, [document.createTextNode(`image: ${prose(n.alt) || exact(n.href)}`)]);
			case "link":
				return anchor(n.href, inlines(n.inline));
		}
		return document.createTextNode("");
	});
}

/** anchor is a link to elsewhere, or its text where the address is none to follow. */
export function anchor(address, children) {
	const to = href(address);
	if (!to) return el("span", {class: "nolink", title: exact(address)}, ...children);
	return el("a", {href: to, rel: "noopener noreferrer nofollow", target: "_blank", title: exact(to)}, ...children);
}

/**
 * Levels gives headings of a text their places below the page's own: none is
 * left out, whatever levels the text begins with and jumps to.
 */
export class Levels {
	#open = [];

	/** of is the level, from 3 to 6, for a heading of the text. */
	of(level) {
		while (this.#open.length && this.#open[this.#open.length - 1] >= level) this.#open.pop();
		this.#open.push(level);
		return Math.min(6, 2 + this.#open.length);
	}
}

/** blockNode makes the node of one block of Markdown; without levels headings are no part of the page's outline. */
export function blockNode(b, levels = null) {
	switch (b.type) {
		case "paragraph":
			return el("p", {dir: "auto"}, ...inlines(b.inline));
		case "heading":
			return el(levels ? `h${levels.of(b.level)}` : "p", {class: `heading l${b.level}`, dir: "auto"}, ...inlines(b.inline));
		case "code":
			return codeNode(b.text, b.lang);
		case "rule":
			return el("hr");
		case "quote":
			return el("blockquote", {dir: "auto"}, ...b.blocks.map((x) => blockNode(x)));
		case "list":
			return el(b.ordered ? "ol" : "ul", {start: b.ordered && b.start !== 1 ? b.start : null, dir: "auto"}, ...b.items.map(itemNode));
		case "table":
			return el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Table"},
				el("table", {},
					el("thead", {}, el("tr", {}, ...b.head.map((c, i) => el("th", {class: b.align[i] || null, scope: "col"}, ...inlines(c))))),
					el("tbody", {}, ...b.rows.map((r) => el("tr", {}, ...r.map((c, i) => el("td", {class: b.align[i] || null}, ...inlines(c))))))));
	}
	return el("p");
}

function itemNode(item) {
	// A list whose items are single paragraphs is set close.
	const nodes = item.blocks.flatMap((b) => (b.type === "paragraph" ? inlines(b.inline) : [blockNode(b)]));
	if (item.checked === undefined) return el("li", {}, ...nodes);
	return el("li", {class: "task"}, el("span", {class: item.checked ? "box checked" : "box", role: "img", "aria-label": item.checked ? "done" : "to do"}), ...nodes);
}

const sources = new WeakMap(); // node of code -> {text, lang, code}

/** codeNode is a block of code with a button that copies it as it was written. */
export function codeNode(text, lang = "") {
	const source = {text, lang, code: el("code", {text: exact(text)})};
	const node = el("div", {class: "code"},
		el("div", {class: "bar"}, el("span", {text: exact(lang).slice(0, 40)}), copyButton(() => source.text)),
		el("pre", {tabindex: "0", dir: "ltr"}, source.code));
	sources.set(node, source);
	return node;
}

/** grown adds to a node of code what its text has more; false when that is not all that changed. */
export function grown(node, text, lang) {
	const source = sources.get(node);
	if (!source || source.lang !== lang || !text.startsWith(source.text)) return false;
	const more = exact(text.slice(source.text.length));
	if (source.code.lastChild) source.code.lastChild.appendData(more);
	else source.code.append(more);
	source.text = text;
	return true;
}

/** copyButton copies what read returns. */
export function copyButton(read, label = "Copy") {
	const b = el("button", {type: "button", class: "quiet small copy", "aria-label": label, title: label}, icon("copy"), el("span", {text: "Copy"}));
	b.addEventListener("click", async () => {
		const said = b.lastChild;
		try {
			await navigator.clipboard.writeText(read());
			said.textContent = "Copied";
			b.setAttribute("aria-label", "Copied");
		} catch {
			said.textContent = "Not allowed";
		}
		setTimeout(() => {
			said.textContent = "Copy";
			b.setAttribute("aria-label", label);
		}, 1500);
	});
	return b;
}

const MANY = 400; // lines of a diff, or of output, that are shown at once

/** longText is output of a program; what is long can be opened. */
export function longText(text) {
	const clean = output(String(text));
	const lines = clean.split("\n");
	const pre = el("pre", {class: "output", tabindex: "0", dir: "ltr"});
	if (lines.length <= MANY && clean.length <= 60_000) {
		pre.textContent = clean;
		return pre;
	}
	const head = lines.slice(0, 60).join("\n").slice(0, 10_000);
	const tail = lines.slice(60).slice(-MANY + 60).join("\n").slice(-40_000);
	const more = el("button", {type: "button", class: "more", text: `Show all of it (${size(clean.length)})`});
	more.addEventListener("click", () => (pre.textContent = clean));
	pre.append(head, "\n", more, "\n", tail);
	return pre;
}

/** diffNode is a diff in one column. */
export function diffNode(d, path = exact(d.path ?? "")) {
	const list = hunks(d.oldText, d.newText);
	const {added, removed} = stat(list);
	const body = el("div", {class: "rows", tabindex: "0", role: "region", "aria-label": `Changes of ${path}`, dir: "ltr"});
	const box = el("figure", {class: "diff"},
		el("figcaption", {}, el("span", {class: "path", text: path}),
			el("span", {class: "stat"},
				d.oldText == null ? el("span", {class: "tag", text: "new"}) : null,
				el("span", {class: "plus", text: `+${added}`}), " ", el("span", {class: "minus", text: `−${removed}`}))),
		body);
	const rows = [];
	list.forEach((h, i) => {
		if (i || h.old > 1 || h.new > 1) rows.push({op: "@", text: `@@ line ${h.new || h.old} @@`});
		rows.push(...h.lines);
	});
	const draw = (from, to) => body.append(...rows.slice(from, to).map(rowNode));
	if (!rows.length) body.append(el("div", {class: "row same", text: d.oldText == null ? "an empty file" : "no line differs"}));
	draw(0, MANY);
	if (rows.length > MANY) {
		const more = el("button", {type: "button", class: "more", text: `Show ${rows.length - MANY} more lines`});
		more.addEventListener("click", () => {
			more.remove();
			draw(MANY, rows.length);
		});
		body.append(more);
	}
	return box;
}

const OPS = {"+": ["row add", "+"], "-": ["row del", "−"], " ": ["row", " "], "@": ["row hunk", ""]};

function rowNode(r) {
	const [name, sign] = OPS[r.op];
	if (r.op === "@") return el("div", {class: name, text: r.text});
	return el("div", {class: name},
		el("span", {class: "no", "aria-hidden": "true", text: String(r.new ?? r.old ?? "")}),
		el("span", {class: "sign", text: sign}),
		el("span", {class: "text", text: exact(r.text) || " "}));
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const SOUNDS = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm", "audio/aac", "audio/flac", "audio/mp4"]);

/** mediaNode shows a block that is no text: a picture, a sound, a file, a link. */
export function mediaNode(b, alt = "Picture") {
	const data = typeof b.data === "string" ? `data:${b.mimeType};base64,${b.data}` : "";
	if (b.type === "image" && PICTURES.has(b.mimeType) && data) return el("img", {alt, loading: "lazy", src: data});
	if (b.type === "audio" && SOUNDS.has(b.mimeType) && data) return el("audio", {controls: true, preload: "metadata", src: data, "aria-label": "Sound"});
	if (b.type === "resource" && b.resource) {
		const r = b.resource;
		const name = exact(fileName(r.uri));
		if (typeof r.text === "string") return el("details", {class: "raw"}, el("summary", {text: `${name}${r.mimeType ? ` (${exact(r.mimeType)})` : ""}`}), longText(r.text));
		return saveButton(name, r.blob ?? "");
	}
	if (b.type === "resource_link") {
		const said = [b.size > 0 ? size(b.size) : "", line(b.description, 200)].filter(Boolean).join(" · ");
		return el("span", {class: "file"}, icon("read"), anchor(b.uri ?? "", [document.createTextNode(exact(String(b.title || b.name || b.uri || "")))]), said ? el("span", {class: "dim", text: ` ${said}`}) : "");
	}
	if (typeof b.data === "string") return saveButton(`${b.type} ${exact(b.mimeType ?? "")}`, b.data);
	return el("span", {class: "file dim", text: `[${line(b.type, 40)}: this page cannot show it]`});
}

/** fileName is the name at the end of an address, as people write it. */
function fileName(uri) {
	const last = String(uri ?? "").split("/").pop() || "file";
	try {
		return decodeURIComponent(last);
	} catch {
		return last;
	}
}

/** saveButton offers a file that came as base64. */
function saveButton(name, base64) {
	const b = el("button", {type: "button", class: "file"}, icon("down"), el("span", {text: `Save ${name}`}));
	b.addEventListener("click", () => {
		try {
			saved(name, Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
		} catch {
			b.lastChild.textContent = `${name} is damaged`;
		}
	});
	return b;
}

/** saved hands bytes to the person as a file, never to the browser to open. */
export function saved(name, bytes) {
	const url = URL.createObjectURL(new Blob([bytes], {type: "application/octet-stream"}));
	el("a", {href: url, download: name.replace(/[^\p{L}\p{N}_.-]+/gu, "_").replace(/^\.+/, "_")}).click();
	setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
