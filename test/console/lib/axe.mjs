// Rules of accessibility, checked by axe on a page.
import {createRequire} from "node:module";

const everything = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** of is what axe is asked about a page that was judged already in another look. */
export const of = {
  colours: {type: "rule", values: ["color-contrast"]},
  layout: {type: "rule", values: ["page-has-heading-one", "landmark-one-main", "region", "heading-order", "target-size", "scrollable-region-focusable"]},
};

/** complaints are what axe finds wrong with the page as it is: "rule: where". */
export async function complaints(page, runOnly = everything) {
  const {source} = createRequire(import.meta.url)("axe-core");
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  return page.evaluate(async (runOnly) => {
    const found = await window.axe.run(document, {runOnly, resultTypes: ["violations"]});
    return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")} ${n.failureSummary?.split("\n")[1]?.trim() ?? ""}`));
  }, runOnly);
}
