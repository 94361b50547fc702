// The page: signs in, keeps the connection, and puts the parts together.
import {Composer} from "./composer.js";
import {confirm, Permissions} from "./dialogs.js";
import {el, icon} from "./nodes.js";
import {Opened} from "./opened.js";
import {Sidebar} from "./sidebar.js";
import {words} from "./state.js";
import {count, exact, line, money, prose} from "./text.js";
import {Feed} from "./view.js";
import {Connection, refusal, usable} from "./wire.js";

const $ = (id) => document.getElementById(id);
const TOKEN = "berth.token"; // in the tab's own storage, and nowhere else
const opened = new Map(); // sessions that are open, by id
let link = null;
let current = null; // what the page shows
let shownSession = null;
let restored = false;

// -- Signing in

const open = (protocols) => new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/acp`, protocols);

/** probe asks whether a token is right; it says what is wrong, or "". */
async function probe(token) {
	try {
		const r = await fetch("/acp", {headers: token ? {Authorization: `Bearer ${token}`} : {}, cache: "no-store", credentials: "omit"});
		r.body?.cancel();
		return refusal(r.status, Number(r.headers.get("Retry-After")));
	} catch {
		return ""; // not reached at all: that is no refusal
	}
}

function askForToken(problem = "") {
	$("app").hidden = true;
	$("signin").hidden = false;
	$("token-error").textContent = problem;
	$("token").setAttribute("aria-invalid", String(!!problem));
	document.title = "Berth: sign in";
	$("token").focus();
}

$("signin-form").addEventListener("submit", async (e) => {
	e.preventDefault();
	const token = $("token").value.trim();
	const wrong = usable(token);
	if (wrong) return askForToken(wrong);
	const button = e.target.querySelector("button");
	button.disabled = true;
	const problem = await probe(token);
	button.disabled = false;
	if (problem) return askForToken(token ? problem : "This gateway asks for a token.");
	$("token").value = "";
	sessionStorage.setItem(TOKEN, token);
	connect(token);
});

function signOut(problem = "") {
	link?.leave();
	link = null;
	sessionStorage.removeItem(TOKEN);
	for (const id of opened.keys()) permissions.forget(id);
	opened.clear();
	current = null;
	restored = everReady = false;
	sidebar.rows = [];
	askForToken(problem);
}

// -- The connection

const call = (method, params) => (link ? link.call(method, params) : Promise.reject(new Error("not connected")));

function connect(token) {
	link = new Connection({
		token, open, probe,
		on: {
			state: linkState,
			ready: begin,
			update: (id, update) => {
				const o = opened.get(id);
				if (!o) return;
				o.apply(update);
				if (update?.sessionUpdate === "session_info_update") sidebarSoon();
			},
			ask: (params, reply, token) => {
				const o = opened.get(params.sessionId);
				permissions.add({params, reply, token, where: o?.session.title || o?.meta.title || ""});
				say("Permission needed");
			},
			withdraw: (token) => permissions.withdraw(token),
			notified: (method, params) => {
				if (method === "_berth/session/queue") opened.get(params?.sessionId)?.admitted(params);
			},
		},
	});
	link.start();
}

let everReady = false;
let looksOnly = false; // the token may observe and do nothing else

function linkState(state, detail) {
	const banner = $("link");
	const text = {
		connecting: everReady ? "Connecting again…" : "Connecting…",
		waiting: `The connection is lost; trying again in ${Math.max(1, Math.round(detail / 1000))} s. What runs goes on.`,
	}[state];
	banner.hidden = !text;
	banner.firstElementChild.textContent = text ?? "";
	banner.querySelector("button").hidden = state !== "waiting";
	if (state === "waiting") for (const o of opened.values()) o.lost();
	if (state === "refused") {
		banner.hidden = true;
		signOut(detail);
	}
}

$("link").querySelector("button").addEventListener("click", () => link?.retry());
addEventListener("online", () => link?.retry());

/** begin is called with each new connection. */
async function begin(init) {
	everReady = true;
	$("signin").hidden = true;
	$("app").hidden = false;
	const info = init.agentInfo ?? {};
	$("about").textContent = `${line(info.title || info.name || "Agent", 40)} ${line(info.version ?? "", 60)}`;
	const berth = init._meta?.berth ?? {};
	fillAgents(berth);
	looksOnly = !!berth.observeOnly;
	$("new").hidden = $("delete").hidden = looksOnly;
	queueMicrotask(async () => {
		for (const o of opened.values()) load(o);
		try {
			await sidebar.refresh();
		} catch (err) {
			$("sessions-status").textContent = err.message;
		}
		if (!restored) {
			restored = true;
			route();
		}
	});
}

// -- The list

const sidebar = new Sidebar({
	list: $("sessions"), more: $("sessions-more"), status: $("sessions-status"), query: $("search"), call,
	marks: () => ({
		current: current?.id,
		running: new Set([...opened.values()].filter((o) => o.running).map((o) => o.id)),
		asking: permissions.sessions(),
		titles: new Map([...opened.values()].map((o) => [o.id, o.session.title])),
	}),
});

let soon = null;

function sidebarSoon() {
	soon ??= setTimeout(() => {
		soon = null;
		if (link?.state === "ready") sidebar.refresh().catch(() => {});
	}, 400);
}

setInterval(() => {
	if (!document.hidden && link?.state === "ready") sidebarSoon();
}, 20_000);
document.addEventListener("visibilitychange", () => !document.hidden && sidebarSoon());

// -- What is shown

const permissions = new Permissions($("ask"), $("ask-banner"), () => {
	if (current) {
		feed.asking(permissions.calls(current.id));
		changed(current);
	}
	sidebar.draw();
});
const feed = new Feed($("feed"), $("latest"));

function route() {
	if (!link || link.state === "closed") return;
	const m = /^#\/s\/([\w-]+)$/.exec(location.hash);
	const wanted = m ? m[1] : "";
	if (current && current.id !== wanted) leave(current);
	$("app").dataset.page = m ? "session" : location.hash === "#/new" ? "new" : "list";
	$("empty").hidden = !!m || location.hash === "#/new";
	$("newform").hidden = location.hash !== "#/new";
	$("story").hidden = !m;
	if (location.hash === "#/new") {
		$("new-error").textContent = "";
		$("cwds").replaceChildren(...[...new Set(sidebar.rows.map((r) => r.cwd))].slice(0, 30).map((cwd) => el("option", {value: cwd})));
		$("cwd").focus();
	}
	if (m) show(wanted);
	else {
		current = null;
		document.title = "Berth";
	}
	sidebar.draw();
}

addEventListener("hashchange", route);

function openedFor(id, cwd, additional) {
	const o = new Opened({id, cwd, additional, call, tell: (method, params) => link?.tell(method, params), changed});
	opened.set(id, o);
	return o;
}

/** load loads a session, once it is known where it works. */
async function load(o) {
	if (!o.cwd) {
		const row = await sidebar.find(o.id).catch(() => null);
		if (opened.get(o.id) !== o) return;
		if (!row) return o.watch(); // the list need not have all, and this says what is wrong
		o.cwd = row.cwd;
		o.additional = row.additionalDirectories ?? [];
	}
	return o.load();
}

function show(id) {
	let o = opened.get(id);
	if (!o) {
		o = openedFor(id);
		load(o);
	} else if (o.mode === "failed" || o.mode === "busy") load(o);
	current = o;
	shownSession = null;
	composer.of(id);
	changed(o);
	feed.asking(permissions.calls(id));
	// Where there are keys the prompt is next; else no keyboard should come up.
	if (matchMedia("(pointer: fine)").matches) composer.focus();
	else $("session").focus();
}

/** leave gives a session back that nothing runs in. */
function leave(o) {
	if ((o.running && o.mode === "owner") || permissions.sessions().has(o.id)) return;
	o.release().catch(() => {});
	opened.delete(o.id);
}

let headFrame = false;
const wasRunning = new WeakMap();

/** changed is called for everything that changes in an open session. */
function changed(o) {
	const before = wasRunning.get(o) ?? 0;
	wasRunning.set(o, o.running);
	if (!!before !== !!o.running) {
		sidebarSoon();
		sidebar.draw();
		if (o === current) say(o.running ? "The agent works" : spoken(o));
	}
	if (o !== current) {
		// It stayed open for its turn, which has ended.
		if (before && !o.running && o.mode === "owner") leave(o);
		return;
	}
	if (shownSession !== o.session) {
		shownSession = o.session;
		feed.show(o.session, o.meta.workspaceDir || o.cwd);
	} else feed.changed();
	if (headFrame) return;
	headFrame = true;
	requestAnimationFrame(() => {
		headFrame = false;
		if (current) drawHead(current);
	});
}

const MODES = {
	loading: "Loading…",
	watching: "Watching: another client works in this session.",
	busy: "Another client works in this session, and the gateway does not let it be watched.",
	away: "Not connected.",
};

function drawHead(o) {
	const s = o.session;
	const row = sidebar.rows.find((r) => r.sessionId === o.id);
	const title = s.title || o.meta.title || row?.title || (s.items.length ? "Untitled session" : "New session");
	$("title").textContent = line(title, 160);
	document.title = `${permissions.sessions().size ? "● " : ""}${line(title, 60)} · Berth`;
	$("sub").textContent = [o.meta.agent || row?._meta?.berth?.agent, o.meta.modelTitle || o.meta.model, o.cwd || row?.cwd || o.meta.workspaceDir].filter(Boolean).map((t) => exact(t)).join(" · ");
	drawUsage(s.usage);
	const foreign = o.mode === "watching" || o.mode === "busy";
	$("takeover").hidden = !foreign || looksOnly;
	$("takeover2").hidden = foreign || o.mode === "owner" || looksOnly;
	const mode = o.mode === "failed" ? o.error : looksOnly && foreign ? "Watching: this token may do nothing else." : MODES[o.mode] ?? "";
	$("mode").hidden = !mode;
	$("mode").textContent = prose(mode);
	$("mode").classList.toggle("error", o.mode === "failed");
	// While the connection comes back a prompt may be written already.
	$("composer-text").disabled = foreign || o.mode === "failed";
	$("send").disabled = o.mode !== "owner";
	$("cancel").hidden = !(o.running && o.mode === "owner");
	$("working").hidden = !o.running;
	$("working").textContent = permissions.calls(o.id).size ? "Waits for your answer" : "Working";
	composer.commands(s.commands);
	drawPlan(s.plan, o.running);
	$("queue").hidden = !o.queue.length;
	$("queue").replaceChildren(...o.queue.map((q) => el("li", {}, el("span", {class: "tag", text: "queued"}), el("span", {dir: "auto", text: line(q.text, 120)}))));
}

function drawUsage(u) {
	$("usage").hidden = !u?.size;
	if (!u?.size) return;
	const part = Math.min(1, u.used / u.size);
	const meter = el("meter", {min: 0, max: 1, high: 0.8, optimum: 0.2, "aria-label": "Context used"});
	meter.value = part;
	$("usage").replaceChildren(meter, el("span", {text: count(u.used)}, el("span", {class: "total", text: ` / ${count(u.size)}`})), u.cost ? el("span", {class: "cost", text: money(u.cost.amount, u.cost.currency)}) : "");
	$("usage").title = `${u.used} of ${u.size} tokens of context`;
}

function drawPlan(entries, running) {
	const done = entries.filter((e) => e.status === "completed").length;
	$("plan").hidden = done === entries.length && !(running && done);
	if ($("plan").hidden) return;
	const now = entries.find((e) => e.status === "in_progress") ?? entries.find((e) => e.status === "pending");
	$("plan").querySelector("summary").replaceChildren(el("strong", {text: `Plan ${done}/${entries.length}`}), el("span", {class: "glance", dir: "auto", text: now ? line(now.content, 120) : "done"}));
	const words = {completed: "done", in_progress: "in progress", pending: "to do"};
	$("plan").querySelector("ol").replaceChildren(...entries.map((e) =>
		el("li", {class: words[e.status] ? e.status : "pending"}, el("span", {class: "mark", role: "img", "aria-label": words[e.status] ?? "to do"}), el("span", {dir: "auto", text: prose(String(e.content ?? ""))}))));
}

// -- What is heard

/** say tells readers of the screen one thing; what streams is not read out as it comes. */
function say(text) {
	$("say").textContent = text;
}

/** spoken is what is read out when a turn ends: the beginning of the answer. */
function spoken(o) {
	const answer = o.session.items.findLast((i) => i.type === "agent");
	return answer ? `The agent answered: ${line(words(answer.blocks).replace(/[*#`_|>]/g, ""), 400)}` : "The turn has ended";
}

// -- What the person does

const composer = new Composer($("composer"), $("composer-text"), $("commands"), (text) => {
	if (current?.mode !== "owner") return false;
	current.prompt(text);
	feed.toEnd();
});

$("cancel").addEventListener("click", () => cancel());

function cancel() {
	if (!current?.running) return;
	permissions.cancelled(current.id);
	current.cancel();
	say("Cancelling");
	composer.focus();
}

document.addEventListener("keydown", (e) => {
	if (e.key === "Escape" && !e.defaultPrevented && $("menu").open) {
		$("menu").open = false;
		$("menu").querySelector("summary").focus();
	} else if (e.key === "." && (e.ctrlKey || e.metaKey) && current?.running) {
		e.preventDefault();
		cancel();
	} else if (e.key === "k" && (e.ctrlKey || e.metaKey) && !$("app").hidden) {
		e.preventDefault();
		location.hash = innerWidth < 760 ? "#/" : location.hash;
		$("search").focus();
	}
});
document.addEventListener("click", (e) => {
	if ($("menu").open && !$("menu").contains(e.target)) $("menu").open = false;
});

async function takeOver() {
	$("menu").open = false;
	const o = current;
	if (!o) return;
	const sure = await confirm($("confirm"), {
		title: "Take this session over?", yes: "Take over",
		text: "Another client works in it. It loses the session; what runs goes on, and you answer for it from now on.",
	});
	if (sure) o.load({takeover: true});
}

$("takeover").addEventListener("click", takeOver);
$("takeover2").addEventListener("click", takeOver);

$("copyid").addEventListener("click", async () => {
	$("menu").open = false;
	try {
		await navigator.clipboard.writeText(current?.id ?? "");
		say("Copied");
	} catch {
		say("The browser does not allow copying here");
	}
});

$("delete").addEventListener("click", async () => {
	$("menu").open = false;
	const o = current;
	if (!o) return;
	const sure = await confirm($("confirm"), {
		title: "Delete this session?", yes: "Delete for good", danger: true,
		text: `“${line($("title").textContent, 80)}” and all that was said in it will be removed from the gateway. Files in its directory stay.`,
	});
	if (!sure) return;
	try {
		await call("session/delete", {sessionId: o.id});
		opened.delete(o.id);
		permissions.forget(o.id);
		sidebar.forget(o.id);
		if (current === o) current = null;
		location.hash = "#/";
		$("search").focus();
		say("Deleted");
	} catch (err) {
		o.session.note("error", "The session could not be deleted", err.message);
		changed(o);
	}
});

function fillAgents({agents = [], defaultAgent = ""}) {
	$("agent-field").hidden = agents.length < 2;
	$("agent").replaceChildren(...agents.map((a) => el("option", {value: a.alias, text: exact(a.title || a.alias)})));
	$("agent").value = defaultAgent || agents[0]?.alias || "";
	const help = () => {
		const a = agents.find((x) => x.alias === $("agent").value);
		$("agent-help").textContent = prose([a?.description, a?.model].filter(Boolean).join(" · "));
	};
	$("agent").onchange = help;
	help();
}

$("new-form").addEventListener("submit", async (e) => {
	e.preventDefault();
	const cwd = $("cwd").value.trim() || ".";
	const agent = $("agent").value;
	const button = e.target.querySelector("button[type=submit]");
	button.disabled = true;
	$("new-error").textContent = "";
	try {
		const result = await call("session/new", {cwd, mcpServers: [], ...(agent ? {_meta: {berth: {agent}}} : {})});
		const meta = result._meta?.berth ?? {};
		const o = openedFor(result.sessionId, cwd === "." ? meta.workspaceDir ?? "." : cwd);
		o.created(meta);
		location.hash = `#/s/${result.sessionId}`;
		sidebarSoon();
	} catch (err) {
		$("new-error").textContent = err.message;
		$("cwd").focus();
	} finally {
		button.disabled = false;
	}
});

// -- Colours

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function drawTheme() {
	$("theme").replaceChildren(icon("sun"));
	$("theme").title = isDark() ? "Light colours" : "Dark colours";
	$("theme").setAttribute("aria-label", $("theme").title);
}

$("theme").addEventListener("click", () => {
	const theme = isDark() ? "light" : "dark";
	// The choice of the system needs no remembering.
	const same = theme === (dark.matches ? "dark" : "light");
	if (same) delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = theme;
	try {
		if (same) localStorage.removeItem("berth.theme");
		else localStorage.setItem("berth.theme", theme);
	} catch {
		// Then it holds for this page.
	}
	drawTheme();
});
dark.addEventListener("change", drawTheme);

// -- Start

$("signout").append(icon("out"));
$("signout").addEventListener("click", () => signOut());
$("send").append(icon("send"));
$("cancel").append(icon("stop"));
$("latest").append(icon("down"));
$("new").prepend(icon("plus"));
for (const a of document.querySelectorAll("a.back")) a.append(icon("back"));
document.querySelector(".skip").addEventListener("click", (e) => {
	e.preventDefault();
	($("story").hidden ? $("session") : $("composer-text")).focus();
});
drawTheme();

const kept = sessionStorage.getItem(TOKEN);
if (kept === null) askForToken();
else connect(kept);
