// The button that changes between dark and light. theme.js sets what was chosen
// before anything is drawn.
import {icon} from "./nodes.js";

const KEY = "berth.theme";

/** colours drives the button. */
export function colours(button) {
	const dark = matchMedia("(prefers-color-scheme: dark)");
	const root = document.documentElement;
	const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
	const draw = () => {
		button.title = isDark() ? "Light colours" : "Dark colours";
		button.setAttribute("aria-label", button.title);
	};
	button.replaceChildren(icon("sun"));
	button.addEventListener("click", () => {
		const theme = isDark() ? "light" : "dark";
		// The choice of the system needs no remembering.
		const same = theme === (dark.matches ? "dark" : "light");
		if (same) delete root.dataset.theme;
		else root.dataset.theme = theme;
		try {
			if (same) localStorage.removeItem(KEY);
			else localStorage.setItem(KEY, theme);
		} catch {
			// Then it holds for this page.
		}
		draw();
	});
	dark.addEventListener("change", draw);
	draw();
}
