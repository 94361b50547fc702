// Files that go along with a prompt: chosen, dropped or pasted.
import {blockOf, tooLarge} from "./files.js";
import {el, icon, mediaNode} from "./nodes.js";
import {exact, line, size} from "./text.js";

/** Attach keeps the files of the prompt that is being written, by session. */
export class Attach {
	#list;
	#error;
	#target;
	#bySession = new Map();
	#session = "";
	#can = {};
	#limits = {};
	#allowed = () => true;
	#say;
	#reading = Promise.resolve(); // files are read one after the other

	constructor({list, error, button, input, text, target, allowed, say}) {
		this.#list = list;
		this.#error = error;
		this.#target = target;
		this.#allowed = allowed;
		this.#say = say;
		button.append(icon("clip"));
		button.addEventListener("click", () => input.click());
		input.addEventListener("change", () => {
			this.#take(input.files);
			input.value = "";
			text.focus();
		});
		text.addEventListener("paste", (e) => {
			// Words that were copied along with a picture of them are what is meant.
			if (!e.clipboardData?.files.length || e.clipboardData.types.includes("text/plain")) return;
			e.preventDefault();
			this.#take(e.clipboardData.files);
		});
		target.addEventListener("dragover", (e) => this.#drag(e));
		target.addEventListener("dragleave", (e) => !target.contains(e.relatedTarget) && target.classList.remove("dropping"));
		target.addEventListener("drop", (e) => {
			if (!this.#drag(e)) return;
			target.classList.remove("dropping");
			this.#take(e.dataTransfer.files);
			text.focus();
		});
	}

	#drag(e) {
		if (!e.dataTransfer?.types.includes("Files")) return false;
		// Else the browser would open the file in place of the page.
		e.preventDefault();
		const open = this.#allowed();
		e.dataTransfer.dropEffect = open ? "copy" : "none";
		this.#target.classList.toggle("dropping", open);
		return open;
	}

	/** offers says what the agent takes, and how much. */
	offers(can = {}, limits = {}) {
		this.#can = can;
		this.#limits = limits;
	}

	/** of switches to a session; files of the one before stay with it. */
	of(session) {
		this.#session = session;
		this.#error.textContent = "";
		this.#draw();
	}

	get #files() {
		return this.#bySession.get(this.#session) ?? [];
	}

	/** any reports whether there are files. */
	get any() {
		return this.#files.length > 0;
	}

	/** taken hands the blocks over and forgets them. */
	taken() {
		const blocks = this.#files.map((f) => f.block);
		this.#bySession.delete(this.#session);
		this.#error.textContent = "";
		this.#draw();
		return blocks;
	}

	/** forget forgets all files. */
	forget() {
		this.#bySession.clear();
		this.#draw();
	}

	#take(files) {
		if (!this.#allowed()) return;
		const session = this.#session;
		const list = [...files]; // the browser empties its own
		this.#reading = this.#reading.then(() => this.#read(list, session));
	}

	async #read(files, session) {
		const problems = [];
		for (const f of files) {
			const list = this.#bySession.get(session) ?? [];
			const name = f.name || "pasted";
			const wrong = tooLarge(line(name, 60), f.size, list.reduce((n, x) => n + x.size, 0), this.#limits);
			if (wrong) {
				problems.push(wrong);
				continue;
			}
			try {
				const bytes = new Uint8Array(await f.arrayBuffer());
				this.#bySession.set(session, [...(this.#bySession.get(session) ?? []), {name, size: f.size, block: blockOf({name, type: f.type, bytes}, this.#can)}]);
			} catch {
				problems.push(`${line(name, 60)} cannot be read; a directory cannot go along.`);
			}
		}
		if (session !== this.#session) return;
		this.#error.textContent = problems.join(" ");
		this.#draw();
		if (this.any) this.#say(`${this.#files.length} files go along`);
	}

	#draw() {
		this.#list.hidden = !this.any;
		this.#list.replaceChildren(...this.#files.map((f, i) =>
			el("li", {}, f.block.type === "image" ? mediaNode(f.block, "") : icon("read"),
				el("span", {class: "file-name", dir: "auto", text: exact(f.name)}), el("span", {class: "dim", text: size(f.size)}),
				el("button", {type: "button", class: "quiet small", "aria-label": `Take ${exact(f.name)} away`, text: "×", on: {click: () => this.#drop(i)}}))));
	}

	#drop(i) {
		this.#bySession.set(this.#session, this.#files.filter((_, n) => n !== i));
		this.#draw();
		(this.#list.querySelectorAll("button")[i] ?? this.#list.querySelector("button:last-of-type") ?? document.getElementById("composer-text")).focus();
	}
}
