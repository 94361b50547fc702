// A tool call as the story shows it.
import {blockNode, diffNode, el, icon, longText, mediaNode} from "./nodes.js";
import {hunks, stat} from "./diff.js";
import {parse} from "./markdown.js";
import {line, shortPath} from "./text.js";

const STATUS = {
	pending: "waiting", in_progress: "running", completed: "done", failed: "failed", cancelled: "cancelled",
};

/** CallNode draws one call. Its inside is made when it is opened first. */
export class CallNode {
	#item = null;
	#drawn = -1;
	#chosen = false; // the person opened or closed it
	#asking = false;
	#base;

	constructor(base) {
		this.#base = base;
		this.icon = el("span", {class: "kind"});
		this.title = el("span", {class: "title", dir: "auto"});
		this.facts = el("span", {class: "facts"});
		this.status = el("span", {class: "status"});
		this.body = el("div", {class: "inside"});
		this.summary = el("summary", {}, this.icon, this.title, this.facts, this.status);
		this.node = el("details", {class: "call"}, this.summary, this.body);
		this.summary.addEventListener("click", () => (this.#chosen = true));
		this.node.addEventListener("toggle", () => this.#fill());
	}

	/** show draws the call as it is now. */
	show(item, asking = false) {
		this.#item = item;
		this.#asking = asking;
		const diffs = item.content.filter((c) => c?.type === "diff");
		const state = asking ? "asking" : item.status;
		this.node.className = `call ${state}`;
		this.icon.replaceChildren(icon(item.kind));
		this.title.textContent = line(item.title || item.name || item.kind, 300);
		this.status.textContent = asking ? "asks" : STATUS[item.status] ?? line(item.status, 20);
		this.facts.replaceChildren(...this.#factsOf(item, diffs));
		if (!this.#chosen) this.node.open = diffs.length > 0 || item.status === "failed";
		this.#fill();
	}

	#factsOf(item, diffs) {
		if (!diffs.length) return [];
		let added = 0;
		let removed = 0;
		for (const d of diffs) {
			const s = this.#stat(d);
			added += s.added;
			removed += s.removed;
		}
		return [el("span", {class: "plus", text: `+${added}`}), " ", el("span", {class: "minus", text: `−${removed}`})];
	}

	#stats = new WeakMap();

	#stat(d) {
		if (!this.#stats.has(d)) this.#stats.set(d, stat(hunks(d.oldText, d.newText)));
		return this.#stats.get(d);
	}

	#fill() {
		const item = this.#item;
		if (!this.node.open || !item || this.#drawn === item.rev) return;
		this.#drawn = item.rev;
		const places = item.locations.slice(0, 20).map((l) => el("li", {text: shortPath(l.path, this.#base) + (l.line ? `:${l.line}` : "")}));
		this.body.replaceChildren(
			...(places.length && !item.content.some((c) => c?.type === "diff") ? [el("ul", {class: "places", "aria-label": "Files"}, ...places)] : []),
			...contents(item.content, this.#base),
			...this.#raw("Input", item.rawInput),
			...(item.content.length ? [] : this.#raw("Output", item.rawOutput)),
		);
		if (!this.body.children.length) this.body.append(el("p", {class: "dim", text: "Nothing to show yet."}));
	}

	#raw(name, value) {
		if (value === undefined || value === null) return [];
		const box = el("details", {class: "raw"}, el("summary", {text: name}));
		box.addEventListener("toggle", () => {
			if (box.open && box.children.length === 1) box.append(longText(typeof value === "string" ? value : JSON.stringify(value, null, 2)));
		});
		return [box];
	}
}

/** contents makes the nodes of what a call shows; paths are told from base. */
export function contents(list, base = "") {
	return list.flatMap((c) => {
		if (c?.type === "diff") return [diffNode(c, shortPath(c.path, base))];
		if (c?.type === "content" && c.content?.type === "text") return written(String(c.content.text ?? ""));
		if (c?.type === "content" && c.content) return [mediaNode(c.content)];
		if (c?.type === "terminal") return [el("p", {class: "dim", text: "Its output is in a terminal of another client."})];
		return [el("p", {class: "dim", text: `[${line(c?.type, 40)}: this page cannot show it]`})];
	});
}

/** written is output of a tool: Markdown where it has fences, else as it is. */
function written(text) {
	if (!/^(```|~~~)/m.test(text)) return [longText(text)];
	return parse(text).map((b) => (b.type === "code" ? longText(b.text) : el("div", {class: "md"}, blockNode(b))));
}
