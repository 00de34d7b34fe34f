/** What can be done with the page, in a dialog. */

import { button, element } from "./dom";

const KEYS: readonly [keys: string, what: string][] = [
  ["click", "pin the cursor to a moment"],
  ["drag", "zoom to a stretch of time"],
  ["double click, 0", "the whole range"],
  ["← →", "one sample back or on"],
  ["Shift ← →", "move the view"],
  ["+ −", "zoom in or out at the cursor"],
  ["click on a name", "hide a curve, or show it again"],
  ["f", "hide free memory, or show it"],
  ["[ ]", "the finding before, the next one"],
  ["Esc", "back to the worst moment"],
  ["t", "light, dark, or as the system is"],
  ["?", "this help"],
];

const READING: readonly string[] = [
  "One cursor runs through all charts; the numbers in each chart's legend are the values there.",
  "A shaded stretch is where a finding holds; a bar on top says that the chart is evidence for it.",
  "Dashed lines are limits. Hatched stretches were not recorded: nothing is drawn across them.",
  "Where a line has a pale band, each of its points stands for many samples: the line is their mean, the band reaches from the least to the largest. Zoom in for more.",
  "The address of the page keeps the view, the cursor, what is hidden and the theme: a copied link opens the same picture.",
];

const COMPARED =
  "Each chart stands twice, on one scale, and one cursor runs through both; each side by its own clock.";

export function helpDialog(isCompared: boolean): () => void {
  const dialog = element("dialog", "help");
  dialog.setAttribute("aria-labelledby", "help-title");
  const title = element("h2", "", "Reading this page");
  title.id = "help-title";
  const table = element("table");
  for (const [keys, what] of KEYS) {
    const row = table.insertRow();
    const name = element("th", "", keys);
    name.scope = "row";
    row.append(name, element("td", "", what));
  }
  const list = element("ul");
  list.append(...READING.concat(isCompared ? COMPARED : []).map((text) => element("li", "", text)));
  dialog.append(title, list, table, button("ghost", "Close", () => dialog.close()));
  document.body.append(dialog);
  return () => (dialog.open ? dialog.close() : dialog.showModal());
}
