// Before anything is drawn: the colours that the person chose. The only thing
// the page keeps beyond its tab.
(() => {
	let chosen = "";
	try {
		chosen = localStorage.getItem("berth.theme") ?? "";
	} catch {
		// No storage, no choice.
	}
	if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
