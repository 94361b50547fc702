// What stands above and below the story of a session: its title, what it costs,
// its plan, the prompts that wait, and what may be done.
import {el} from "./nodes.js";
import {count, exact, line, money, prose} from "./text.js";

const MODES = {
	loading: "Loading…",
	watching: "You are watching: another client works in this session.",
	taken: "Another client has taken this session over. You are watching.",
	looking: "You are watching; this token may do nothing else.",
	busy: "Another client works in this session, and the gateway does not let it be watched.",
	away: "Not connected.",
};

const $ = (id) => document.getElementById(id);

/** titleOf is what a session is called; row is its row of the list. */
export function titleOf(o, row) {
	return o.session.title || o.meta.title || row?.title || row?._meta?.berth?.label || (o.session.items.length || o.mode !== "owner" ? "Untitled session" : "New session");
}

/**
 * drawHead draws all of it for an open session. looksOnly says that the token
 * may only observe, asking that a question waits.
 */
export function drawHead(o, {row, looksOnly, asking}) {
	const s = o.session;
	$("title").textContent = line(titleOf(o, row), 160);
	const where = [o.cwd, row?.cwd, o.meta.workspaceDir].find((d) => d && d !== ".");
	const facts = [o.meta.agent || row?._meta?.berth?.agent, o.meta.modelTitle || o.meta.model, s.mode && `mode ${s.mode}`, where];
	$("sub").textContent = facts.filter(Boolean).map((t) => exact(String(t))).join(" · ");
	$("sub").title = $("sub").textContent;
	drawUsage(s.usage);
	drawState(o, looksOnly, facts[0], where);
	$("working").hidden = !o.running;
	$("working").textContent = asking ? "Waits for your answer" : "Working";
	drawPlan(s.plan, o.running);
	$("queue").hidden = !o.queue.length;
	$("queue").replaceChildren(...o.queue.map((q) => {
		const files = q.blocks.length - (q.text ? 1 : 0);
		return el("li", {}, el("span", {class: "tag", text: "queued"}), el("span", {dir: "auto", text: line(q.text || "files", 120)}), files > 0 ? el("span", {class: "dim", text: `+${files}`}) : null);
	}));
}

function drawState(o, looksOnly, agent, where) {
	const foreign = o.mode === "watching" || o.mode === "busy";
	const failed = o.mode === "failed";
	const lost = failed && !o.session.items.length; // nothing else to show
	$("trouble").hidden = !lost;
	$("trouble-text").textContent = lost ? prose(o.error) : "";
	$("feed").hidden = $("dock").hidden = lost;
	$("menu").hidden = lost;
	const mode = failed ? o.error : MODES[foreign && looksOnly ? "looking" : foreign && o.taken ? "taken" : o.mode] ?? "";
	$("mode").hidden = !mode;
	$("mode").firstElementChild.textContent = prose(mode);
	$("mode").classList.toggle("error", failed);
	$("mode").classList.toggle("calm", o.mode === "loading" || o.mode === "away");
	$("takeover").hidden = !foreign || looksOnly;
	// While the connection comes back a prompt may be written already.
	$("composer").hidden = $("composer-text").disabled = foreign || failed;
	$("composer-help").querySelector(".keys").hidden = foreign || failed;
	$("send").disabled = o.mode !== "owner";
	$("cancel").hidden = !(o.running && o.mode === "owner");
	const fresh = o.mode === "owner" && !o.session.items.length;
	$("hello").hidden = !fresh;
	$("hello").textContent = fresh ? `What shall ${agent ? line(agent, 60) : "the agent"} do${where ? ` in ${exact(where)}` : ""}?` : "";
}

function drawUsage(u) {
	const known = u?.size > 0;
	$("usage").hidden = !known;
	if (!known) return;
	const part = Math.min(1, u.used / u.size);
	const meter = el("meter", {min: 0, max: 1, high: 0.8, optimum: 0.2, "aria-label": "Context used"});
	meter.value = part;
	const percent = `${Math.round(part * 100)} %`;
	$("usage").replaceChildren(meter, el("span", {class: "total", text: `${count(u.used)} / ${count(u.size)}`}), el("span", {class: "short", text: percent}), u.cost ? el("span", {class: "cost", text: money(u.cost.amount, u.cost.currency)}) : "");
	$("usage").title = `${u.used} of ${u.size} tokens of context${u.cost ? `, ${money(u.cost.amount, u.cost.currency)}` : ""}`;
}

const STEPS = {completed: "done", in_progress: "in progress", pending: "to do"};

function drawPlan(entries, running) {
	const done = entries.filter((e) => e?.status === "completed").length;
	$("plan").hidden = done === entries.length && !(running && done);
	if ($("plan").hidden) return;
	const now = entries.find((e) => e?.status === "in_progress") ?? entries.find((e) => e?.status === "pending");
	const glance = now ? line(now.content, 120) : done === entries.length ? "done" : "";
	$("plan").querySelector("summary").replaceChildren(el("strong", {text: `Plan ${done}/${entries.length}`}), el("span", {class: "glance", dir: "auto", text: glance}));
	$("plan").querySelector("ol").replaceChildren(...entries.map((e) =>
		el("li", {class: STEPS[e?.status] ? e.status : "pending"}, el("span", {class: "mark", role: "img", "aria-label": STEPS[e?.status] ?? "to do"}), el("span", {dir: "auto", text: prose(String(e?.content ?? ""))}))));
}
