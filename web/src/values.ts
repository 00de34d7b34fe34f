/** The legend of a chart, with each series' value at the cursor: a line of them, or a table beside a wide chart. */

import { variableName } from "./colours";
import { nameOf, type Curves, type Reading } from "./curves";
import { button, element } from "./dom";
import { share, value } from "./format";
import type { Series } from "./page";

export interface Values {
  host: HTMLElement;
  curves: Curves;
  /** Whether it stands beside a wide plot, and not above. */
  isBeside: boolean;
  show(reading: Reading): void;
}

/** Hides a curve, or shows it again. */
type Toggle = (curve: string) => void;

export function values(host: HTMLElement, curves: Curves, toggle: Toggle): Values {
  const isTable = curves.chart.size !== "small" && curves.chart.kind === "stack";
  return isTable ? new Table(host, curves, toggle) : new Line(host, curves, toggle);
}

/** A curve's colour and name; a click hides it or shows it again, also one that is alone, as a link may hide it. */
class Name {
  readonly #button: HTMLButtonElement | null = null;
  readonly host: HTMLElement;

  constructor(
    private readonly curves: Curves,
    private readonly index: number,
    text: string,
    toggle: Toggle,
  ) {
    const { chart } = curves;
    const series = chart.series[index] as Series;
    if (!series.is_limit) this.#button = button("toggle", "", () => toggle(nameOf(chart, series)));
    this.host = this.#button ?? element("span", "toggle");
    this.host.title = series.label;
    this.host.append(swatch(series, curves.colour(index)), element("span", "name", text));
  }

  show(): void {
    const isShown = String(this.curves.isData(this.index));
    if (this.#button?.ariaPressed !== isShown) this.#button?.setAttribute("aria-pressed", isShown);
  }
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
  readonly #cells: { series: number; name: Name; text: HTMLElement }[] = [];

  constructor(
    readonly host: HTMLElement,
    readonly curves: Curves,
    toggle: Toggle,
  ) {
    host.classList.add("is-line");
    curves.chart.series.forEach((series, index) => {
      const entry = element("span", "entry");
      const text = element("b");
      const arrow = curves.chart.kind === "mirror" ? (series.is_negative ? " ↓" : " ↑") : "";
      const name = new Name(curves, index, series.label + arrow, toggle);
      entry.append(name.host, text);
      host.append(entry);
      this.#cells.push({ series: index, name, text });
    });
  }

  show(reading: Reading): void {
    for (const { series, name, text } of this.#cells) {
      name.show();
      say(text, reading.text(series));
    }
  }
}

class Table implements Values {
  readonly isBeside = true;
  readonly #rows: { series: number; name: Name; row: HTMLElement; text: HTMLElement; part: HTMLElement }[] = [];
  readonly #sum = element("td", "num");
  readonly #whole: number | null;
  readonly #unit;

  constructor(
    readonly host: HTMLElement,
    readonly curves: Curves,
    toggle: Toggle,
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
      body.append(this.#entry(new Name(curves, index, series.label, toggle), index));
    }
    body.append(this.#footer());
    host.classList.add("is-table");
    host.append(table);
  }

  #entry(name: Name, series: number): HTMLElement {
    const row = element("tr");
    const head = element("th");
    head.scope = "row";
    head.append(name.host);
    const [text, part] = [element("td", "num"), element("td", "num part")];
    row.append(head, text, part);
    this.#rows.push({ series, name, row, text, part });
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
    for (const { series, name, row, text, part } of this.#rows) {
      name.show();
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
