// The connection: JSON-RPC over the WebSocket at /acp, and how it comes back
// after it was lost. No nodes of the page here.

/** RemoteError is an error that the gateway answered with. */
export class RemoteError extends Error {
	constructor({code, message, data} = {}) {
		super(message || "the gateway answered with an error");
		this.code = code;
		this.reason = data?.reason ?? "";
		this.data = data ?? {};
	}
}

/** Lost is the error of requests whose connection is gone. */
export class Lost extends Error {
	constructor() {
		super("the connection was lost");
	}
}

/** offers are the sub-protocols of a connection; a browser can send a token nowhere else. */
export function offers(token) {
	return token ? ["acp.v1", "bearer." + token] : ["acp.v1"];
}

/** usable says what is wrong with a token that no gateway gave out; "" for nothing. A gateway may ask for none. */
export function usable(token) {
	// What may stand in a sub-protocol's name, and so in a token.
	return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/.test(token) ? "" : "This is no token: it holds letters that no token has.";
}

/** wait is how long to wait before the attempt n (from 0), in ms; luck is from 0 to 1. */
export function wait(n, luck = Math.random()) {
	return Math.min(15_000, 400 * 2 ** n) * (0.7 + 0.6 * luck);
}

const SILENCE = 15_000; // ms without a word after which a sign of life is asked for
const PATIENCE = 8_000; // ms that it may take
const DIALLING = 20_000; // ms until a new connection has to be ready

/**
 * Connection keeps one connection up. Events, all optional functions of on:
 * state(name, detail) with connecting, ready, waiting (detail: ms until the next attempt),
 * refused (detail: text) and closed; ready(init) after each initialize, before
 * state("ready"); update(sessionId, update); ask(params, reply, token) for
 * requests of the agent, where token is withdrawn with withdraw(token).
 */
export class Connection {
	on;
	init = null;
	state = "closed";
	#token;
	#open;
	#probe;
	#timers;
	#socket = null;
	#next = 1;
	#calls = new Map();
	#asked = new Set();
	#attempt = 0;
	#timer = null;
	#limit = null; // when the gateway has to have said something
	#heard = 0; // when it last did, in ms
	#over = false;
	#now;

	constructor({token, on, open, probe, timers = globalThis, now = Date.now}) {
		this.#token = token;
		this.on = on;
		this.#open = open;
		this.#probe = probe;
		this.#timers = timers;
		this.#now = now;
	}

	/** start connects, and keeps trying after a first success. */
	start() {
		this.#over = false;
		this.#connect();
	}

	/** retry tries at once, when an attempt is waited for. */
	retry() {
		if (this.state !== "waiting") return;
		this.#attempt = 0;
		this.#connect();
	}

	/**
	 * check finds out whether the gateway is still there, if it said nothing for a
	 * while: after a sleep a socket may be dead and never say so.
	 */
	check() {
		if (this.state !== "ready" || this.#limit !== null || this.#now() - this.#heard < SILENCE) return;
		this.#expect(PATIENCE);
		this.call("session/list", {_meta: {berth: {limit: 1}}}).catch(() => {});
	}

	/** expect gives the socket up that says nothing for so long. */
	#expect(ms) {
		const socket = this.#socket;
		this.#timers.clearTimeout(this.#limit);
		this.#limit = this.#timers.setTimeout(() => {
			this.#limit = null;
			if (socket !== this.#socket) return;
			this.#gone({code: 1006});
			socket.close(4000, "no answer");
		}, ms);
	}

	/** leave ends the connection so that what runs goes on without it. */
	leave() {
		this.#over = true;
		this.#timers.clearTimeout(this.#timer);
		const s = this.#socket;
		this.#drop();
		s?.close(4000, "signed out");
		this.#to("closed");
	}

	/** call sends a request and resolves with its result. */
	call(method, params) {
		if (!this.#socket || this.#socket.readyState !== 1) return Promise.reject(new Lost());
		const id = this.#next++;
		return new Promise((yes, no) => {
			this.#calls.set(id, {yes, no});
			this.#send({jsonrpc: "2.0", id, method, params});
		});
	}

	/** tell sends a notification. */
	tell(method, params) {
		if (this.#socket?.readyState === 1) this.#send({jsonrpc: "2.0", method, params});
	}

	#send(message) {
		this.#socket.send(JSON.stringify(message));
	}

	#to(state, detail) {
		this.state = state;
		this.on.state?.(state, detail);
	}

	#connect() {
		this.#timers.clearTimeout(this.#timer);
		this.#to("connecting");
		let socket;
		try {
			socket = this.#open(offers(this.#token));
		} catch (err) {
			this.#over = true;
			this.#to("refused", err.message);
			return;
		}
		this.#socket = socket;
		socket.onopen = () => this.#hello(socket);
		socket.onmessage = (e) => socket === this.#socket && this.#read(e.data);
		socket.onclose = (e) => socket === this.#socket && this.#gone(e);
		socket.onerror = () => {};
		this.#expect(DIALLING);
	}

	async #hello(socket) {
		try {
			const init = await this.call("initialize", {
				protocolVersion: 1,
				clientInfo: {name: "berth-console", title: "Berth console", version: "1"},
				clientCapabilities: {
					fs: {readTextFile: false, writeTextFile: false},
					terminal: false,
					session: {notices: {}, compaction: {}},
				},
			});
			if (socket !== this.#socket) return;
			this.init = init;
			this.#attempt = 0;
			this.on.ready?.(init);
			this.#to("ready");
		} catch (err) {
			if (err instanceof Lost || socket !== this.#socket) return;
			this.#over = true;
			this.#drop();
			socket.close(4001, "initialize failed");
			this.#to("refused", err.message);
		}
	}

	#drop() {
		this.#socket = null;
		this.#timers.clearTimeout(this.#limit);
		this.#limit = null;
		const calls = [...this.#calls.values()];
		this.#calls.clear();
		const asked = [...this.#asked];
		this.#asked.clear();
		for (const c of calls) c.no(new Lost());
		for (const token of asked) this.on.withdraw?.(token);
	}

	async #gone(event) {
		this.#drop();
		if (this.#over) return;
		if (event.code === 1008) {
			this.#over = true;
			this.#to("refused", event.reason ? `The gateway ended the connection: ${event.reason}.` : "The gateway ended the connection.");
			return;
		}
		const n = this.#attempt++;
		const ms = wait(n);
		this.#to("waiting", ms);
		this.#timer = this.#timers.setTimeout(() => this.#connect(), ms);
		// A browser does not say why an upgrade was refused; a plain request is told.
		if (n === 0 || n % 4 === 3) {
			const why = await this.#probe?.(this.#token);
			if (why && this.state !== "ready" && !this.#over) {
				this.#over = true;
				this.#timers.clearTimeout(this.#timer);
				const s = this.#socket;
				this.#drop();
				s?.close(4000, "");
				this.#to("refused", why);
			}
		}
	}

	#read(data) {
		this.#heard = this.#now();
		this.#timers.clearTimeout(this.#limit);
		this.#limit = null;
		let m;
		try {
			m = JSON.parse(data);
		} catch {
			return;
		}
		if (m.method === undefined) {
			const call = this.#calls.get(m.id);
			this.#calls.delete(m.id);
			if (m.error) call?.no(new RemoteError(m.error));
			else call?.yes(m.result);
		} else if (m.id === undefined) {
			if (m.method === "session/update") this.on.update?.(m.params.sessionId, m.params.update, m.params._meta);
			else if (m.method === "$/cancel_request") this.#withdraw(m.params?.requestId ?? m.params?.id);
			else this.on.notified?.(m.method, m.params);
		} else this.#serve(m);
	}

	#serve({id, method, params}) {
		if (method !== "session/request_permission" || !this.on.ask) {
			this.#send({jsonrpc: "2.0", id, error: {code: -32601, message: `${method} is not available here`}});
			return;
		}
		const socket = this.#socket;
		const token = id;
		this.#asked.add(token);
		const reply = (outcome) => {
			if (!this.#asked.delete(token) || socket !== this.#socket) return false;
			this.#send({jsonrpc: "2.0", id, result: {outcome}});
			return true;
		};
		this.on.ask(params, reply, token);
	}

	#withdraw(id) {
		if (!this.#asked.delete(id)) return;
		this.#send({jsonrpc: "2.0", id, error: {code: -32800, message: "withdrawn"}});
		this.on.withdraw?.(id);
	}
}

/** refusal reads what a plain request to /acp was answered; "" when the token is right. */
export function refusal(status, retryAfter) {
	switch (status) {
		case 401:
			return "The gateway does not know this token. It may be mistyped, revoked, or another gateway's.";
		case 403:
			return "The gateway refuses this page's address. Its operator can allow it with gateway.allowed_hosts and gateway.allowed_origins.";
		case 429:
			return `Too many wrong tokens were tried from here. Try again ${retryAfter > 0 ? `in ${retryAfter} s` : "later"}.`;
	}
	return "";
}
