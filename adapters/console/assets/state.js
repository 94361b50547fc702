// What a session shows, as a list of items that updates change. No nodes of
// the page here.

/** kinds of updates that carry pieces of messages. */
const SPEAKERS = {user_message_chunk: "user", agent_message_chunk: "agent", agent_thought_chunk: "thought"};
const FINAL = new Set(["completed", "failed", "cancelled"]);

/**
 * Session is one session as far as it was told. items is the story in order;
 * each item has a key that is unique in it and a rev that grows with each
 * change. changed collects the items that changed since it was last emptied,
 * and head is true when something besides the items did.
 */
export class Session {
	items = [];
	plan = [];
	usage = null;
	commands = [];
	queue = []; // prompts of ours that wait: {key, text, sent}
	mode = "";
	title = "";
	updatedAt = "";
	changed = new Set();
	head = true;
	#calls = new Map();
	#messages = new Map();
	#compactions = new Map();
	#ends = new Map(); // by the id of the turn
	#next = 1;

	constructor(id) {
		this.id = id;
	}

	#add(item) {
		item.key = `i${this.#next++}`;
		item.rev = 0;
		this.items.push(item);
		this.changed.add(item);
		return item;
	}

	#touch(item) {
		item.rev++;
		this.changed.add(item);
	}

	/** apply takes one update in; unknown kinds change nothing. */
	apply(u) {
		if (!u || typeof u !== "object") return null;
		switch (u.sessionUpdate) {
			case "user_message_chunk":
			case "agent_message_chunk":
			case "agent_thought_chunk":
				return this.#chunk(SPEAKERS[u.sessionUpdate], u.messageId, u.content);
			case "tool_call":
			case "tool_call_update":
				return this.#call(u);
			case "plan":
				this.plan = Array.isArray(u.entries) ? u.entries : [];
				this.head = true;
				return null;
			case "usage_update":
				this.usage = {...this.usage, used: amount(u.used), size: amount(u.size), ...(u.cost ? {cost: {amount: amount(u.cost.amount), currency: String(u.cost.currency ?? "")}} : {})};
				this.head = true;
				return null;
			case "current_mode_update":
				this.mode = String(u.currentModeId ?? "");
				this.head = true;
				return null;
			case "session_info_update":
				if (typeof u.title === "string") this.title = u.title;
				if (typeof u.updatedAt === "string") this.updatedAt = u.updatedAt;
				this.head = true;
				return this.#past(u._meta?.berth);
			case "available_commands_update":
				this.commands = Array.isArray(u.availableCommands) ? u.availableCommands : [];
				this.head = true;
				return null;
			case "compaction_update":
				return this.#compact(u);
			case "compaction_summary_chunk": {
				const item = this.#compaction(u.compactionId);
				item.summary += u.content?.text ?? "";
				this.#touch(item);
				return item;
			}
			case "notice":
				return this.note(u.severity, u.title, u.description);
		}
		return null;
	}

	/** note adds a line of our own, or a notice of the agent. */
	note(severity, title, detail = "") {
		return this.#add({type: "notice", severity: severity ?? "info", title: String(title ?? ""), detail: String(detail ?? "")});
	}

	/** said shows a prompt of ours, which the agent does not send back. */
	said(blocks) {
		return this.#add({type: "user", id: "", blocks: [...blocks], ours: true});
	}

	/**
	 * ended closes the newest turn with the reason it stopped for; text says more of
	 * an error. A turn whose id is known ends once, however often that is told.
	 */
	ended(reason, detail = {}) {
		const before = this.#ends.get(detail.turn);
		if (before) {
			before.usage ??= detail.usage ?? null;
			this.#touch(before);
			return before;
		}
		for (const c of this.#calls.values()) {
			if (!FINAL.has(c.status) && c.live) {
				c.status = "cancelled";
				this.#touch(c);
			}
		}
		const item = this.#add({type: "end", reason, usage: detail.usage ?? null, text: detail.text ?? ""});
		if (detail.turn) this.#ends.set(detail.turn, item);
		return item;
	}

	/** past takes the end of a turn that a history tells of. The words of an error are a message before it. */
	#past(end) {
		if (typeof end?.turnId !== "string" || !(end.stopReason || end.error)) return null;
		return this.ended(end.error ? "error" : String(end.stopReason), {turn: end.turnId});
	}

	/** last is the newest item, or null. */
	get last() {
		return this.items[this.items.length - 1] ?? null;
	}

	/** call finds a tool call by its id. */
	call(id) {
		return this.#calls.get(id) ?? null;
	}

	#chunk(type, id, block) {
		if (!block || typeof block !== "object") return null;
		const name = id ? `${type} ${id}` : "";
		let item = name ? this.#messages.get(name) : null;
		if (!item && !id && this.last?.type === type && !this.last.id && !this.last.ours) item = this.last;
		if (!item) {
			item = this.#add({type, id: id ?? "", blocks: []});
			if (name) this.#messages.set(name, item);
		} else this.#touch(item);
		const end = item.blocks[item.blocks.length - 1];
		const text = String(block.text ?? "");
		if (block.type === "text" && end?.type === "text" && (type !== "user" || !id)) end.text += text;
		else item.blocks.push(block.type === "text" ? {type: "text", text} : block);
		return item;
	}

	#call(u) {
		let item = this.#calls.get(u.toolCallId);
		if (!item) {
			item = this.#add({
				type: "call", id: u.toolCallId, title: "", name: "", kind: "other", status: "pending", content: [], locations: [], live: true,
			});
			this.#calls.set(u.toolCallId, item);
		} else this.#touch(item);
		for (const name of ["title", "name", "kind", "status", "rawInput", "rawOutput"]) {
			if (u[name] !== undefined && u[name] !== null) item[name] = u[name];
		}
		if (Array.isArray(u.content)) item.content = u.content;
		if (Array.isArray(u.locations)) item.locations = u.locations;
		return item;
	}

	#compaction(id) {
		let item = this.#compactions.get(id);
		if (!item) {
			item = this.#add({type: "compaction", id, status: "in_progress", summary: "", error: ""});
			this.#compactions.set(id, item);
		}
		return item;
	}

	#compact(u) {
		const item = this.#compaction(u.compactionId);
		item.status = u.status ?? item.status;
		if (Array.isArray(u.summary)) item.summary = u.summary.map((b) => b?.text ?? "").join("");
		if (u.error) item.error = String(u.error.message ?? u.error);
		this.#touch(item);
		return item;
	}
}

/** amount is a number that can be counted with, or 0. */
function amount(n) {
	return Number.isFinite(n) && n > 0 ? n : 0;
}

/** words is the text of a list of blocks. */
export function words(blocks) {
	return blocks.filter((b) => b.type === "text").map((b) => b.text).join("\n\n");
}

/** stopped says in words why a turn ended; "" for the ordinary end. */
export function stopped(reason) {
	return {
		end_turn: "",
		error: "The turn failed",
		cancelled: "Cancelled",
		max_tokens: "Stopped: the answer reached its length limit",
		max_turn_requests: "Stopped: the turn reached its limit of requests",
		refusal: "The model refused to go on",
	}[reason] ?? `Stopped: ${reason}`;
}

/** found keeps the rows of a session list that hold all words of a query. */
export function found(rows, query) {
	const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
	if (!terms.length) return rows;
	return rows.filter((r) => {
		const text = [r.title, r.cwd, r.sessionId, r._meta?.berth?.agent, r._meta?.berth?.label, r._meta?.berth?.key].join("\n").toLowerCase();
		return terms.every((t) => text.includes(t));
	});
}

/** merged puts rows of a page into a list, newest first, each session once. */
export function merged(rows, page) {
	const byId = new Map(rows.map((r) => [r.sessionId, r]));
	for (const r of page) byId.set(r.sessionId, r);
	return [...byId.values()].sort((a, b) => String(b.updatedAt ?? "").localeCompare(String(a.updatedAt ?? "")) || a.sessionId.localeCompare(b.sessionId));
}

/**
 * keys gives each option of a permission request its keys: its number, and a
 * letter where its kind has one of its own.
 */
export function keys(options) {
	const letters = {allow_once: "y", allow_always: "a", reject_once: "n", reject_always: "r"};
	const used = new Set();
	return options.map((o, i) => {
		const list = i < 9 ? [String(i + 1)] : [];
		const letter = letters[o.kind];
		if (letter && !used.has(letter)) {
			used.add(letter);
			list.push(letter);
		}
		return list;
	});
}

/** commandsFor are the slash commands that a line being typed may mean. */
export function commandsFor(text, commands) {
	const m = /^\/(\S*)$/.exec(text);
	if (!m) return [];
	const start = m[1].toLowerCase();
	return commands.filter((c) => String(c.name).toLowerCase().startsWith(start));
}
