/** From findings to charts and back: "Show on charts", sparklines, events, links between both, and copying commands. */

import type { Context } from "./context";
import { all, button, scrollTo } from "./dom";
import type { View } from "./levels";
import type { Finding } from "./page";
import { idOf, sideOf } from "./sides";
import type { Clock } from "./time";

/** So much of what is shown lies after a finding. */
const MARGIN = 0.05;
/** What a finding came from is shown as long as the finding itself, and so many seconds and samples at least. */
const RUN_UP = { seconds: 60, samples: 20 };
const LINKS = 'a[href^="#finding-"], a[href^="#chart-"]';

/** The place of a finding among those of other data: the same rule, the first of it the first. -1 where it is not there. */
export function placeAmong(others: readonly Named[], findings: readonly Named[], index: number): number {
  const id = findings[index]?.id;
  const places = (all: readonly Named[]) => all.flatMap((one, place) => (one.id === id ? [place] : []));
  return places(others)[places(findings).indexOf(index)] ?? -1;
}

type Named = Pick<Finding, "id">;

export class Findings {
  /** The page's text is about the data that it opened with; a finding's card has its number among those. */
  #text!: { findings: readonly Finding[]; clock: Clock; range: View };
  #shows: HTMLButtonElement[] = [];

  constructor(private readonly context: Context) {
    this.textIsNew();
    for (const chip of this.#own(".evidence-for")) shorten(chip);
    this.#follow();
  }

  /** The page's text is about the data that the context has now. */
  textIsNew(): void {
    const { meta, clock, levels } = this.context;
    this.#text = { findings: meta.findings, clock, range: levels.range };
    this.#shows = this.#own("button.show[data-finding]");
    for (const show of this.#shows) show.addEventListener("click", () => this.showOnCharts(Number(show.dataset.finding)));
    this.update();
    for (const spark of this.#own("svg.spark:not(.is-part)")) this.#sparkline(spark);
    for (const entry of this.#own("[data-at]")) this.#event(entry);
  }

  /** The context has newer data. */
  update(): void {
    const { findings } = this.context.meta;
    for (const show of this.#shows) show.hidden = findings[this.#now(Number(show.dataset.finding))]?.from_s == null;
  }

  /** The present number of a finding that has a card. */
  #now(card: number): number {
    return placeAmong(this.context.meta.findings, this.#text.findings, card);
  }

  /** The present second of a moment that the page's text names. */
  #second(at: number): number {
    return at - this.context.clock.since(this.#text.clock);
  }

  /** Elements of this source. */
  #own<E extends HTMLElement = HTMLElement>(selector: string): E[] {
    return all<E>(selector).filter((element) => sideOf(element) === this.context.side);
  }

  /** Zooms to the finding of a card, with what came before it, and scrolls to the first chart that shows it. */
  showOnCharts(card: number): void {
    const { meta, looking } = this.context;
    const index = this.#now(card);
    const finding = meta.findings[index];
    if (finding === undefined || finding.from_s === null || finding.to_s === null) return;
    const interval = meta.interval_s ?? 1;
    const runUp = Math.max(finding.to_s - finding.from_s, RUN_UP.seconds, RUN_UP.samples * interval);
    const from = Math.max(finding.from_s - runUp, this.context.levels.range.from);
    looking.select(index);
    looking.show(from, finding.to_s + Math.max((finding.to_s - from) * MARGIN, interval));
    if (looking.cursor < looking.view.from || looking.cursor > looking.view.to) {
      looking.pin((finding.from_s + finding.to_s) / 2);
    }
    const [first] = finding.charts;
    const target = document.getElementById(first === undefined ? "charts" : idOf(this.context.side, "chart", first));
    if (target !== null) this.#reveal(target, false);
  }

  /** Selects a finding and goes to its card, if the page has one. */
  goTo(index: number): void {
    this.context.looking.select(index);
    const card = placeAmong(this.#text.findings, this.context.meta.findings, index);
    const target = document.getElementById(idOf(this.context.side, "finding", card));
    if (target !== null) this.#reveal(target, true);
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
      const card = target.dataset.finding;
      if (card !== undefined) this.context.looking.select(this.#now(Number(card)));
      this.#reveal(target, true);
    });
  }

  /** A sparkline covers the whole range: where it is clicked is a moment. */
  #sparkline(spark: HTMLElement): void {
    const { looking } = this.context;
    const { from, to } = this.#text.range;
    spark.classList.add("is-clickable");
    spark.addEventListener("click", (event) => {
      const box = spark.getBoundingClientRect();
      const part = (event.clientX - box.left) / Math.max(box.width, 1);
      looking.pin(this.#second(from + part * (to - from)));
    });
  }

  #event(entry: HTMLElement): void {
    const at = Number(entry.dataset.at);
    const [time] = entry.children;
    if (Number.isNaN(at) || time === undefined) return;
    const go = button("moment", time.textContent ?? "", () => this.#goToMoment(this.#second(at)));
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
export function copyButtons(within: ParentNode): void {
  for (const copy of all<HTMLButtonElement>("button.copy", within)) {
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
