// What is heard and seen of the page from elsewhere: by readers of the screen,
// and on the tab's title.
import {words} from "./state.js";
import {line} from "./text.js";

/** say tells readers of the screen one thing; what streams is not read out as it comes. */
export function say(text) {
	document.getElementById("say").textContent = text;
}

/** spoken is what is read out when a turn of an open session ends: the beginning of the answer. */
export function spoken(o) {
	if (o.mode === "away") return "The connection is lost";
	const end = o.session.items.findLast((i) => i.type === "agent" || i.type === "user" || (i.type === "end" && i.text));
	if (end?.type === "end") return `The turn failed: ${line(end.text, 200)}`;
	return end?.type === "agent" ? `The agent answered: ${line(words(end.blocks).replace(/[*#`_|>]/g, ""), 400)}` : "The turn has ended";
}

let ended = false; // a turn, while the page was not looked at

/** turnEnded marks the title of a page that is in the background. */
export function turnEnded() {
	ended = document.hidden;
}

/** entitle names the page after what it shows, and calls when so many questions wait. */
export function entitle(shown, asking) {
	if (!document.hidden) ended = false;
	const mark = asking ? `(${asking}) Permission needed: ` : ended ? "✓ " : "";
	document.title = `${mark}${shown ? `${line(shown, 60)} · ` : ""}Berth`;
}
