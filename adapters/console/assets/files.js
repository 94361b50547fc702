// Files as blocks of a prompt, and a session as a file. No nodes of the page here.
import {hunks} from "./diff.js";
import {stopped, words} from "./state.js";
import {output, size} from "./text.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const WRITTEN = 128 << 10; // bytes of text that go to the model as they are; what is longer is stored for it
const BLOB = 10 << 20; // where the gateway names no limit

/** base64 writes bytes in the alphabet that JSON carries. */
export function base64(bytes) {
	let s = "";
	// In pieces: a call takes only so many arguments.
	for (let i = 0; i < bytes.length; i += 0x8000) s += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
	return btoa(s);
}

/**
 * blockOf makes the block of a prompt that carries a file: a picture where the
 * agent takes pictures, text as text, all else as bytes.
 */
export function blockOf({name, type, bytes}, can = {}) {
	if (can.image && PICTURES.has(type)) return {type: "image", mimeType: type, data: base64(bytes)};
	const uri = `attachment:///${encodeURIComponent(name)}`;
	const text = bytes.length <= WRITTEN ? textOf(bytes) : null;
	if (text !== null) return {type: "resource", resource: {uri, mimeType: type || "text/plain", text}};
	return {type: "resource", resource: {uri, mimeType: type || "application/octet-stream", blob: base64(bytes)}};
}

/** textOf reads bytes as UTF-8; null when they are no text. */
function textOf(bytes) {
	if (bytes.includes(0)) return null;
	try {
		return new TextDecoder("utf-8", {fatal: true}).decode(bytes);
	} catch {
		return null;
	}
}

/** tooLarge says why a file cannot go with the others, whose bytes are given; "" when it can. */
export function tooLarge(name, bytes, others, limits = {}) {
	const one = limits.maxBlobBytes || BLOB;
	const all = limits.maxPromptBlobBytes || one;
	if (bytes > one) return `${name} is too large: ${size(bytes)} of at most ${size(one)}.`;
	if (bytes + others > all) return `${name} is too much: a prompt carries ${size(all)} at most.`;
	return "";
}

const fence = (text, lang = "") => {
	const ticks = "`".repeat(Math.max(3, ...[...text.matchAll(/`{3,}/g)].map((m) => m[0].length + 1)));
	return `${ticks}${lang}\n${text.replace(/\n$/, "")}\n${ticks}`;
};

/** transcript writes a session as Markdown. */
export function transcript(session, title, facts = []) {
	const parts = [`# ${title}`, facts.filter(Boolean).join(" · ")];
	for (const item of session.items) {
		switch (item.type) {
			case "user":
				parts.push("## Prompt", words(item.blocks), ...others(item.blocks));
				break;
			case "agent":
				parts.push("## Answer", words(item.blocks), ...others(item.blocks));
				break;
			case "thought":
				parts.push(words(item.blocks).replace(/^/gm, "> "));
				break;
			case "call":
				parts.push(`### ${output(item.title || item.name).replace(/\s+/g, " ")} (${item.status})`, ...item.content.map(shown));
				break;
			case "compaction":
				parts.push("### The conversation was shortened", item.summary);
				break;
			case "notice":
				parts.push(`*${item.title}* ${item.detail}`);
				break;
			case "end":
				parts.push([stopped(item.reason), item.text].filter(Boolean).join(": "));
		}
	}
	return parts.filter((p) => p && p.trim()).join("\n\n") + "\n";
}

function others(blocks) {
	return blocks.filter((b) => b.type !== "text").map((b) => `[${b.type}${b.name ? `: ${b.name}` : ""}]`);
}

/** shown is one content of a call. */
function shown(c) {
	if (c?.type === "diff") {
		const lines = hunks(c.oldText, c.newText).flatMap((h) => [`@@ -${h.old} +${h.new} @@`, ...h.lines.map((l) => l.op + l.text)]);
		return fence([`--- ${c.oldText == null ? "/dev/null" : c.path}`, `+++ ${c.path}`, ...lines].join("\n"), "diff");
	}
	const text = c?.content?.text;
	return typeof text === "string" ? fence(output(text)) : `[${c?.content?.type ?? c?.type}]`;
}
