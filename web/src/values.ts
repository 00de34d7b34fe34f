/** The legend of a chart, with each series' value at the cursor: a line of them, or a table beside a wide chart. */

import { variableName } from "./colours";
import type { Curves, Reading } from "./curves";
import { element } from "./dom";
import { share, value } from "./format";
import type { Series } from "./page";

export interface Values {
  host: HTMLElement;
  curves: Curves;
  /** Whether it stands beside a wide plot, and not above. */
  isBeside: boolean;
  show(reading: Reading): void;
}

export function values(host: HTMLElement, curves: Curves): Values {
  const isTable = curves.chart.size !== "small" && curves.chart.kind === "stack";
  return isTable ? new Table(host, curves) : new Line(host, curves);
}

function swatch(series: Series, colour: string): HTMLElement {
  const kind = series.is_limit ? "dash" : series.is_hatched ? "hatch" : "";
  const mark = element("i", `swatch ${kind}`);
  mark.style.setProperty("--c", `var(--${variableName(colour)}, var(--ink))`);
  mark.setAttribute("aria-hidden", "true");
  return mark;
}

class Line implements Values {
  readonly isBeside = false;
  readonly #cells: { series: number; text: HTMLElement }[] = [];

  constructor(
    readonly host: HTMLElement,
    readonly curves: Curves,
  ) {
    host.classList.add("is-line");
    curves.chart.series.forEach((series, index) => {
      const entry = element("span", "entry");
      const text = element("b");
      const arrow = curves.chart.kind === "mirror" ? (series.is_negative ? " ↓" : " ↑") : "";
      entry.append(swatch(series, curves.colour(index)), element("span", "name", series.label + arrow), text);
      host.append(entry);
      this.#cells.push({ series: index, text });
    });
  }

  show(reading: Reading): void {
    for (const { series, text } of this.#cells) say(text, reading.text(series));
  }
}

class Table implements Values {
  readonly isBeside = true;
  readonly #rows: { series: number; row: HTMLElement; text: HTMLElement; part: HTMLElement }[] = [];
  readonly #sum = element("td", "num");
  readonly #whole: number | null;
  readonly #unit;

  constructor(
    readonly host: HTMLElement,
    readonly curves: Curves,
  ) {
    const { chart } = curves;
    this.#whole = chart.top;
    this.#unit = chart.unit;
    const table = element("table");
    // Widths are the columns', not those of the first row, which may be a heading across all.
    const columns = element("colgroup");
    columns.append(element("col"), element("col"), element("col"));
    table.append(columns);
    const body = table.createTBody();
    // From the top of the stack down, so that the eye finds the area beside the name.
    const drawn = chart.series.map((series, index) => ({ series, index })).filter(({ series }) => !series.is_limit);
    let group: string | undefined;
    for (const { series, index } of drawn.reverse()) {
      if (series.group !== undefined && series.group !== group) body.append(heading(series.group));
      group = series.group;
      body.append(this.#entry(series, index, curves.colour(index)));
    }
    body.append(this.#footer());
    host.classList.add("is-table");
    host.append(table);
  }

  #entry(series: Series, index: number, colour: string): HTMLElement {
    const row = element("tr");
    const name = element("th");
    name.scope = "row";
    const label = element("span", "name", series.label);
    label.title = series.label;
    name.append(swatch(series, colour), label);
    const [text, part] = [element("td", "num"), element("td", "num part")];
    row.append(name, text, part);
    this.#rows.push({ series: index, row, text, part });
    return row;
  }

  #footer(): HTMLElement {
    const row = element("tr", "sum");
    const name = element("th", "", "together");
    name.scope = "row";
    row.append(name, this.#sum, element("td"));
    return row;
  }

  show(reading: Reading): void {
    const total = reading.total();
    for (const { series, row, text, part } of this.#rows) {
      const amount = reading.number(series);
      say(text, reading.text(series));
      say(part, share(amount / (this.#whole ?? total)));
      row.classList.toggle("is-none", !(amount > 0));
    }
    say(this.#sum, value(total, this.#unit));
  }
}

function heading(name: string): HTMLElement {
  const row = element("tr", "group");
  const cell = element("th", "", name);
  cell.colSpan = 3;
  row.append(cell);
  return row;
}

/** Writes a text where it is a new one: a page is laid out anew after each. */
function say(host: HTMLElement, text: string): void {
  if (host.textContent !== text) host.textContent = text;
}
