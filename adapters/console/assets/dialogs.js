// Questions to the person: permission requests and confirmations.
import {contents} from "./call.js";
import {el, icon, longText} from "./nodes.js";
import {keys} from "./state.js";
import {exact, line, prose} from "./text.js";

const QUIET = 500; // ms without typing before a key can answer

/**
 * Permissions shows requests one after the other. Escape and "Decide later"
 * put the dialog aside and answer nothing; the banner brings it back.
 */
export class Permissions {
	#dialog;
	#banner;
	#waiting = []; // {params, reply, token, where}
	#aside = false;
	#shown = null;
	#letters = [];
	#opened = 0; // when the dialog showed what it shows
	#before = 0; // the key before the newest, of the whole page
	#newest = 0;
	#changed;

	constructor(dialog, banner, changed) {
		this.#dialog = dialog;
		this.#banner = banner;
		this.#changed = changed;
		dialog.addEventListener("cancel", (e) => {
			e.preventDefault();
			this.#setAside();
		});
		dialog.addEventListener("close", () => {
			if (this.#shown && !this.#aside) this.#setAside();
		});
		dialog.addEventListener("keydown", (e) => this.#key(e));
		// Whoever is typing has not read the question yet.
		document.addEventListener("keydown", (e) => {
			this.#before = this.#newest;
			this.#newest = e.timeStamp;
		}, true);
		banner.querySelector("button").addEventListener("click", () => {
			this.#aside = false;
			this.#draw();
		});
	}

	/** add queues a request. */
	add(ask) {
		this.#waiting.push(ask);
		this.#draw();
	}

	/** withdraw forgets a request that needs no answer any more. */
	withdraw(token) {
		this.#drop((w) => w.token === token);
	}

	/** cancelled answers all requests of a session as the protocol wants it when the turn is cancelled. */
	cancelled(session) {
		for (const w of this.#waiting) if (w.params.sessionId === session) w.reply({outcome: "cancelled"});
		this.#drop((w) => w.params.sessionId === session);
	}

	/** forget drops the requests of a session without an answer. */
	forget(session) {
		this.#drop((w) => w.params.sessionId === session);
	}

	/** calls are the ids of calls of a session that wait for an answer. */
	calls(session) {
		return new Set(this.#waiting.filter((w) => w.params.sessionId === session).map((w) => w.params.toolCall?.toolCallId));
	}

	/** sessions that wait for an answer. */
	sessions() {
		return new Set(this.#waiting.map((w) => w.params.sessionId));
	}

	#drop(gone) {
		this.#waiting = this.#waiting.filter((w) => !gone(w));
		this.#draw();
	}

	#setAside() {
		this.#aside = true;
		this.#shown = null;
		if (this.#dialog.open) this.#dialog.close();
		this.#draw();
		this.#banner.querySelector("button").focus();
	}

	#draw() {
		this.#changed();
		const first = this.#waiting[0];
		const n = this.#waiting.length;
		if (!first) this.#aside = false;
		this.#banner.hidden = !(first && this.#aside);
		this.#banner.firstElementChild.textContent = n > 1 ? `${n} questions wait for your answer.` : "A question waits for your answer.";
		if (!first || this.#aside) {
			this.#shown = null;
			if (this.#dialog.open) this.#dialog.close();
			return;
		}
		if (this.#shown !== first) this.#ask(first);
		this.#dialog.querySelector(".nth").textContent = n > 1 ? `1 of ${n}` : "";
	}

	#ask(w) {
		this.#shown = w;
		const call = w.params.toolCall ?? {};
		const options = w.params.options ?? [];
		const letters = keys(options);
		const title = el("h2", {id: "ask-title", tabindex: "-1", text: "Permission needed"});
		const content = (call.content ?? []).slice();
		const parts = [el("p", {class: "what", dir: "auto"}, icon(call.kind), el("span", {text: exact(call.title || call.name || "A tool call")}))];
		// The reason stands in front of what the call shows.
		if (content[0]?.type === "content" && content[0].content?.type === "text") {
			parts.push(el("p", {class: "why", dir: "auto", text: prose(content.shift().content.text ?? "")}));
		}
		const places = (call.locations ?? []).map((l) => exact(l.path) + (l.line ? `:${l.line}` : ""));
		if (places.length && !content.some((c) => c?.type === "diff")) parts.push(el("ul", {class: "places"}, ...places.slice(0, 20).map((p) => el("li", {text: p}))));
		parts.push(...contents(content));
		if (call.rawInput !== undefined && call.rawInput !== null) {
			const raw = el("details", {class: "raw"}, el("summary", {text: "Input"}));
			raw.append(longText(JSON.stringify(call.rawInput, null, 2)));
			parts.push(raw);
		}
		const buttons = options.map((o, i) =>
			el("button", {
				type: "button", class: `answer ${/^allow/.test(o.kind) ? "allow" : /^reject/.test(o.kind) ? "reject" : ""}`,
				"aria-keyshortcuts": letters[i].map((k) => k.toUpperCase()).join(" "), on: {click: () => this.#answer(w, o)},
			}, el("span", {dir: "auto", text: exact(String(o.name))}), ...letters[i].map((k) => el("kbd", {"aria-hidden": "true", text: k.toUpperCase()}))));
		const later = el("button", {type: "button", class: "quiet", on: {click: () => this.#setAside()}}, el("span", {text: "Decide later"}), el("kbd", {"aria-hidden": "true", text: "Esc"}));
		this.#dialog.replaceChildren(
			el("header", {}, title, el("span", {class: "nth"}), el("span", {class: "where", text: line(w.where, 80)})),
			el("div", {class: "matter", tabindex: "0", role: "region", "aria-label": "What is asked"}, ...parts),
			el("div", {class: "answers", role: "group", "aria-label": "Answers"}, ...buttons, later));
		if (!this.#dialog.open) this.#dialog.showModal();
		// The title has the focus, so that Enter answers nothing by accident.
		title.focus();
		this.#opened = performance.now();
		this.#letters = letters;
	}

	#key(e) {
		if (e.key === "Escape") {
			e.preventDefault();
			this.#setAside();
			return;
		}
		if (e.ctrlKey || e.metaKey || e.altKey || e.repeat || !this.#shown) return;
		const w = this.#shown;
		const i = this.#letters.findIndex((list) => list.includes(e.key.toLowerCase()));
		if (i < 0) return;
		e.preventDefault();
		if (e.timeStamp - Math.max(this.#before, this.#opened) >= QUIET) this.#answer(w, w.params.options[i]);
	}

	#answer(w, option) {
		w.reply({outcome: "selected", optionId: option.optionId});
		this.#drop((x) => x === w);
	}
}

/** confirm asks a question with one way forward; it resolves to whether that was taken. */
export function confirm(dialog, {title, text, yes, danger = false}) {
	return new Promise((done) => {
		const end = (answer) => {
			if (dialog.open) dialog.close();
			dialog.onclose = null;
			done(answer);
		};
		const no = el("button", {type: "button", class: "quiet", text: "Keep it as it is", on: {click: () => end(false)}});
		dialog.replaceChildren(
			el("h2", {id: "confirm-title", text: title}), el("p", {text}),
			el("div", {class: "answers row"}, no, el("button", {type: "button", class: danger ? "danger" : "primary", text: yes, on: {click: () => end(true)}})));
		dialog.onclose = () => end(false);
		dialog.showModal();
		no.focus();
	});
}
