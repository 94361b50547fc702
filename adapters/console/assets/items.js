// The items of a story as nodes: messages, thoughts, notices, ends. Calls are in call.js.
import {blockNode, copyButton, el, grown, Levels, mediaNode} from "./nodes.js";
import {CallNode} from "./call.js";
import {Reader} from "./markdown.js";
import {count, line, prose} from "./text.js";
import {stopped, words} from "./state.js";

/**
 * drawer makes what draws an item: its node, and show, which draws it as it is
 * now. Paths are told from base; asking says whether a call waits for an answer.
 */
export function drawer(item, base, asking) {
	switch (item.type) {
		case "user":
			return new Message("user", "You");
		case "agent":
			return new Message("agent", "Agent");
		case "thought":
			return new Thought();
		case "call": {
			const call = new CallNode(base);
			return {node: call.node, show: (i) => call.show(i, asking(i.id))};
		}
		case "compaction":
			return new Compaction();
		case "end":
			return new End();
	}
	return new Notice();
}

/** Growing is Markdown that grows: blocks that are finished keep their nodes. */
class Growing {
	#reader = new Reader();

	constructor() {
		this.node = el("div", {class: "md"});
	}

	show(text) {
		const kept = this.#reader.push(text);
		const {blocks} = this.#reader;
		// Code that comes in grows in place: it may be long, or being selected.
		const first = blocks[kept];
		const from = first?.type === "code" && this.node.children.length > kept && grown(this.node.children[kept], first.text, first.lang) ? kept + 1 : kept;
		const levels = new Levels();
		for (const b of blocks.slice(0, from)) if (b.type === "heading") levels.of(b.level);
		while (this.node.children.length > from) this.node.lastChild.remove();
		this.node.append(...blocks.slice(from).map((b) => blockNode(b, levels)));
	}
}

class Message {
	#parts = [];
	#type;

	constructor(type, who) {
		this.#type = type;
		this.node = el("article", {class: `message ${type}`}, el("h2", {class: "unseen", text: who}));
		if (type === "agent") this.node.append(copyButton(() => words(this.#item.blocks), "Copy the answer"));
	}

	#item = null;

	show(item) {
		this.#item = item;
		item.blocks.forEach((b, i) => {
			if (!this.#parts[i]) {
				this.#parts[i] = b.type !== "text" ? {node: mediaNode(b)} : this.#type === "user" ? plain() : new Growing();
				const copy = this.#type === "agent" ? this.node.lastChild : null;
				this.node.insertBefore(this.#parts[i].node, copy);
			}
			if (b.type === "text") this.#parts[i].show(b.text);
		});
	}
}

/** plain is what a person typed, as it was typed. */
function plain() {
	const node = el("div", {class: "typed", dir: "auto"});
	return {
		node,
		show(text) {
			node.textContent = prose(text);
		},
	};
}

class Thought {
	#text = new Growing();
	#item = null;

	constructor() {
		this.head = el("summary", {});
		this.node = el("details", {class: "thought"}, this.head, this.#text.node);
		this.node.addEventListener("toggle", () => this.#fill());
	}

	show(item, last) {
		this.#item = item;
		const text = item.blocks.map((b) => b.text ?? "").join("");
		this.head.textContent = "";
		this.head.append(el("span", {class: last ? "busy" : "", text: "Thought"}), el("span", {class: "glance", dir: "auto", text: line(text.replace(/[*#`_]/g, ""), 110)}));
		this.#fill();
	}

	#fill() {
		if (this.node.open && this.#item) this.#text.show(this.#item.blocks.map((b) => b.text ?? "").join(""));
	}
}

class Notice {
	constructor() {
		this.node = el("div", {class: "notice", role: "note"});
	}

	show(item) {
		this.node.className = `notice ${["warning", "error"].includes(item.severity) ? item.severity : "info"}`;
		this.node.replaceChildren(el("strong", {text: prose(item.title), dir: "auto"}), item.detail ? el("div", {text: prose(item.detail), dir: "auto"}) : "");
	}
}

class Compaction {
	#text = new Growing();

	constructor() {
		this.head = el("summary", {});
		this.body = el("div", {}, this.#text.node);
		this.node = el("details", {class: "compaction"}, this.head, this.body);
	}

	show(item) {
		const words = {completed: "The conversation was shortened", failed: "Shortening the conversation failed", cancelled: "Shortening was cancelled"};
		this.head.textContent = words[item.status] ?? "Shortening the conversation…";
		this.#text.show(item.error || item.summary || "…");
	}
}

class End {
	constructor() {
		this.node = el("div", {class: "end"});
	}

	show(item) {
		if (item.text) {
			this.node.className = "notice error";
			this.node.replaceChildren(el("strong", {text: prose(stopped(item.reason))}), el("div", {text: prose(item.text), dir: "auto"}));
			return;
		}
		const facts = [];
		const why = stopped(item.reason);
		if (why) facts.push(prose(why));
		if (item.usage) facts.push(`${count(item.usage.inputTokens)} in, ${count(item.usage.outputTokens)} out`);
		this.node.className = why ? "end why" : "end";
		this.node.textContent = facts.join(" · ");
	}
}
