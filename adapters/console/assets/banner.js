// The line at the top that says when the gateway cannot be reached.

/** Banner shows the state of a connection; retry is called to try at once. */
export class Banner {
	#node;
	#again = false; // it was there once

	constructor(node, retry) {
		this.#node = node;
		node.querySelector("button").addEventListener("click", retry);
	}

	/** show takes what a Connection tells of its state. */
	show(state, detail) {
		if (state === "ready") this.#again = true;
		if (state === "closed") this.#again = false;
		const text = {
			connecting: this.#again ? "Connecting again…" : "Connecting…",
			waiting: `The connection is lost; next try in ${Math.max(1, Math.round(detail / 1000))} s. What runs goes on.`,
		}[state];
		this.#node.hidden = !text;
		this.#node.firstElementChild.textContent = text ?? "";
		this.#node.querySelector("button").hidden = state !== "waiting";
	}
}
