/** From findings to charts and back: "Show on charts", sparklines, events, links between both, and copying commands. */

import type { Context } from "./context";
import { all, button, scrollTo } from "./dom";
import { idOf, sideOf } from "./sides";

/** So much of a finding's length is shown on either side of it. */
const MARGIN = 0.15;
const LINKS = 'a[href^="#finding-"], a[href^="#chart-"]';

export class Findings {
  constructor(private readonly context: Context) {
    for (const show of this.#own<HTMLButtonElement>("button.show[data-finding]")) {
      const index = Number(show.dataset.finding);
      if (context.meta.findings[index]?.from_s == null) show.hidden = true;
      show.addEventListener("click", () => this.showOnCharts(index));
    }
    for (const chip of this.#own(".evidence-for")) shorten(chip);
    this.#follow();
    for (const spark of this.#own("svg.spark:not(.is-part)")) this.#sparkline(spark);
    for (const entry of this.#own("[data-at]")) this.#event(entry);
  }

  /** Elements of this source. */
  #own<E extends HTMLElement = HTMLElement>(selector: string): E[] {
    return all<E>(selector).filter((element) => sideOf(element) === this.context.side);
  }

  /** Zooms to a finding and scrolls to the first chart that shows it. */
  showOnCharts(index: number): void {
    const { meta, looking } = this.context;
    const finding = meta.findings[index];
    if (finding === undefined || finding.from_s === null || finding.to_s === null) return;
    const margin = Math.max((finding.to_s - finding.from_s) * MARGIN, meta.interval_s ?? 1);
    looking.select(index);
    looking.show(finding.from_s - margin, finding.to_s + margin);
    if (looking.cursor < looking.view.from || looking.cursor > looking.view.to) {
      looking.pin((finding.from_s + finding.to_s) / 2);
    }
    const [first] = finding.charts;
    const target = document.getElementById(first === undefined ? "charts" : idOf(this.context.side, "chart", first));
    if (target !== null) this.#reveal(target, false);
  }

  /** Selects a finding and goes to its text. */
  goTo(index: number): void {
    const target = document.getElementById(idOf(this.context.side, "finding", index));
    if (target === null) return;
    this.context.looking.select(index);
    this.#reveal(target, true);
  }

  /** The finding before or after the selected one. */
  step(by: number): void {
    const { meta, looking } = this.context;
    const count = meta.findings.length;
    if (count === 0) return;
    this.goTo(this.#hasStepped ? (looking.finding + by + count) % count : by > 0 ? 0 : count - 1);
    this.#hasStepped = true;
  }

  #hasStepped = false;

  /** Opens whatever an element is folded into, scrolls to it and, for text, moves the focus there. */
  #reveal(target: HTMLElement, isFocused: boolean): void {
    for (let inside: Element | null = target; inside !== null; inside = inside.parentElement) {
      if (inside instanceof HTMLDetailsElement) inside.open = true;
    }
    scrollTo(target);
    target.classList.remove("flash");
    // Reading a size makes the browser notice that the class was gone, so that the flash begins again.
    void target.offsetWidth;
    target.classList.add("flash");
    if (!isFocused) return;
    // What folds is operated by its first line.
    const spot = target.querySelector<HTMLElement>(":scope > summary") ?? target;
    if (!spot.matches("summary, a, button")) spot.tabIndex = -1;
    spot.focus({ preventScroll: true });
  }

  /** The address keeps the view; a link inside the page must not replace it. */
  #follow(): void {
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>(LINKS) : null;
      const target = link === null ? null : document.getElementById(link.hash.slice(1));
      if (target === null || sideOf(target) !== this.context.side || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const index = Number(target.dataset.finding ?? NaN);
      if (Number.isNaN(index)) this.#reveal(target, true);
      else this.goTo(index);
    });
  }

  /** A sparkline covers the whole range: where it is clicked is a moment. */
  #sparkline(spark: HTMLElement): void {
    const { levels, looking } = this.context;
    spark.classList.add("is-clickable");
    spark.addEventListener("click", (event) => {
      const box = spark.getBoundingClientRect();
      const part = (event.clientX - box.left) / Math.max(box.width, 1);
      looking.pin(levels.range.from + part * (levels.range.to - levels.range.from));
    });
  }

  #event(entry: HTMLElement): void {
    const at = Number(entry.dataset.at);
    const [time] = entry.children;
    if (Number.isNaN(at) || time === undefined) return;
    const go = button("moment", time.textContent ?? "", () => this.#goToMoment(at));
    go.title = "Move the cursor here";
    time.replaceChildren(go);
  }

  #goToMoment(at: number): void {
    const { looking } = this.context;
    looking.pin(at);
    if (at < looking.view.from || at > looking.view.to) looking.showWhole();
  }
}

/** A chart that proves many findings names the first; the others are counted, and named on request. */
function shorten(chip: HTMLElement): void {
  const [first, ...others] = all<HTMLAnchorElement>("a", chip);
  if (first === undefined || others.length === 0) return;
  const named = [...chip.childNodes];
  chip.title = chip.textContent ?? "";
  const more = button("more", `${others.length} more`, () => {
    chip.classList.add("is-long");
    chip.replaceChildren(...named);
    first.focus();
  });
  chip.replaceChildren("evidence for ", first.cloneNode(true), " and ", more);
}

/** Copy buttons say what they did; where the browser gives no clipboard, the text is selected instead. */
export function copyButtons(): void {
  for (const copy of all<HTMLButtonElement>("button.copy")) {
    const command = copy.parentElement?.querySelector("code") ?? null;
    if (command === null) continue;
    const say = (word: string) => {
      const before = copy.dataset.text ?? copy.textContent ?? "Copy";
      copy.dataset.text = before;
      copy.textContent = word;
      setTimeout(() => (copy.textContent = before), 1600);
    };
    copy.addEventListener("click", () => {
      const clipboard = navigator.clipboard as Clipboard | undefined;
      if (clipboard === undefined) say(copySelected(command));
      else clipboard.writeText(command.textContent ?? "").then(() => say("Copied"), () => say(copySelected(command)));
    });
  }
}

function copySelected(command: Element): string {
  const selection = getSelection();
  const range = document.createRange();
  range.selectNodeContents(command);
  selection?.removeAllRanges();
  selection?.addRange(range);
  try {
    // Old, but the only way where a page from a file may not use the clipboard.
    return document.execCommand("copy") ? "Copied" : "Selected";
  } catch {
    return "Selected";
  }
}
