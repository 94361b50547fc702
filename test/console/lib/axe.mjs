// Rules of accessibility, checked by axe on a page.
import {createRequire} from "node:module";

/**
 * complaints are what axe finds wrong with the page as it is: "rule: where". Of
 * contrast it is asked when colours is true, of all else when rest is.
 */
export async function complaints(page, {colours = true, rest = true} = {}) {
  const {source} = createRequire(import.meta.url)("axe-core");
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  return page.evaluate(async (colours, rest) => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const found = await window.axe.run(document, {
      runOnly: rest ? tags : {type: "rule", values: ["color-contrast"]}, rules: {"color-contrast": {enabled: colours}}, resultTypes: ["violations"],
    });
    return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")} ${n.failureSummary?.split("\n")[1]?.trim() ?? ""}`));
  }, colours, rest);
}
