// The form that begins a session: which agent, and where.
import {el} from "./nodes.js";
import {exact, prose} from "./text.js";

/** Begin drives the form. begun is called with the answer and the directory. */
export class Begin {
	#form;
	#agent;
	#cwd;
	#error;

	constructor({form, call, begun}) {
		const part = (id) => form.querySelector(`#${id}`);
		this.#form = form;
		[this.#agent, this.#cwd, this.#error] = [part("agent"), part("cwd"), part("new-error")];
		this.#agent.addEventListener("change", () => this.#help());
		form.addEventListener("submit", async (e) => {
			e.preventDefault();
			const cwd = this.#cwd.value.trim() || ".";
			const agent = this.#agent.value;
			const button = part("new-error").nextElementSibling;
			button.disabled = true;
			this.#say("");
			try {
				begun(await call("session/new", {cwd, mcpServers: [], ...(agent ? {_meta: {berth: {agent}}} : {})}), cwd);
			} catch (err) {
				this.#say(err.message);
				this.#cwd.focus();
			} finally {
				button.disabled = false;
			}
		});
	}

	#say(problem) {
		this.#error.textContent = prose(problem);
		this.#cwd.setAttribute("aria-invalid", String(!!problem));
	}

	#agents = [];

	/** agents fills the list of agents of the gateway. */
	agents({agents = [], defaultAgent = ""}) {
		const chosen = this.#agent.value;
		this.#agents = agents;
		this.#form.querySelector("#agent-field").hidden = agents.length < 2;
		this.#agent.replaceChildren(...agents.map((a) => el("option", {value: a.alias, text: exact(a.title || a.alias)})));
		// A new connection keeps what was chosen.
		this.#agent.value = agents.some((a) => a.alias === chosen) ? chosen : defaultAgent || agents[0]?.alias || "";
		this.#help();
	}

	#help() {
		const a = this.#agents.find((x) => x.alias === this.#agent.value);
		this.#form.querySelector("#agent-help").textContent = prose([a?.description, a?.model].filter(Boolean).join(" · "));
	}

	/** open makes it ready, with directories to choose from. */
	open(directories) {
		this.#say("");
		this.#form.querySelector("#cwds").replaceChildren(...[...new Set(directories)].slice(0, 30).map((cwd) => el("option", {value: cwd})));
		this.#cwd.focus();
	}
}
