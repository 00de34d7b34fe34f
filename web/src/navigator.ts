/** The strip that stays on the screen: what the cursor reads, the whole range in small, its events and findings. */

import type uPlot from "uplot";

import { timeAxis } from "./axes";
import type { Context } from "./context";
import { curvesOf, type Curves } from "./curves";
import { all, button, element } from "./dom";
import { seconds } from "./format";
import { FONT, frameOf } from "./frame";
import { merged } from "./gaps";
import { eventLane, findingBars, type Bar, type EventLane } from "./lanes";
import { paint } from "./paint";
import { placeCursor, plot } from "./plot";
import type { Finding } from "./page";
import { pointer } from "./pointer";

const HEIGHT = 72;
const ROW_PX = 18;
/** Gaps closer than this are one for the pointer. */
const APART_PX = 4;

export class Navigator {
  readonly #readout = element("p", "readout");
  readonly #box = element("div", "overview");
  readonly #lanes = element("div", "lanes");
  readonly #masks = [element("div", "mask"), element("div", "mask")] as const;
  readonly #line = element("div", "cursor-line");
  #curves: Curves;
  #plot: uPlot | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly context: Context,
    private readonly showFinding: (index: number) => void,
    help: () => void,
  ) {
    this.#curves = overview(context);
    const bar = element("div", "bar");
    bar.append(this.#readout, this.#buttons(help));
    this.#box.setAttribute("role", "img");
    host.append(bar, this.#box, this.#lanes);
    // It sticks once its upper edge has left the window.
    const edge = new IntersectionObserver(
      ([entry]) => host.classList.toggle("is-stuck", (entry?.intersectionRatio ?? 1) < 1),
      { threshold: 1, rootMargin: "-1px 0px 0px 0px" },
    );
    edge.observe(host);
    this.#draw();
  }

  /** The context has newer data. */
  update(): void {
    this.#curves = overview(this.context);
    this.rescale();
    // What has the focus is made anew, too.
    const focus = this.#lanes.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    this.fit();
    if (focus !== null) all("button", this.#lanes).find((it) => nameOf(it) === focus)?.focus({ preventScroll: true });
  }

  #buttons(help: () => void): HTMLElement {
    const { looking } = this.context;
    const group = element("div", "zoom");
    const named = (text: string, name: string, act: () => void) => {
      const made = button("ghost", "", act);
      // On a phone there is room for a word of three letters.
      if (text === "Whole range") made.append(element("span", "wide", text), element("span", "narrow", "All"));
      else made.textContent = text;
      made.setAttribute("aria-label", name);
      made.title = name;
      return made;
    };
    group.append(
      named("−", "Zoom out (-)", () => looking.zoom(2)),
      named("+", "Zoom in (+)", () => looking.zoom(0.5)),
      named("Whole range", "Whole range (0)", () => looking.showWhole()),
      named("?", "Keys and how to read this page (?)", help),
    );
    return group;
  }

  #draw(): void {
    const { theme, looking } = this.context;
    this.#plot = plot(this.#box, () => this.#curves, {
      width: Math.max(this.#box.clientWidth, 200),
      height: HEIGHT,
      padding: [2, 0, 0, 0],
      time: () => [this.context.range.from, this.context.range.to],
      axes: [timeAxis(() => this.context.clock, () => theme.current, true), { show: false, size: 0 }],
      paint: (u) => {
        const { meta } = this.context;
        const around = { tints: [], events: meta.events, gaps: meta.gaps, isSmall: true };
        paint(frameOf(u, theme.current), this.#curves, around);
      },
    });
    this.#plot.over.append(...this.#masks, this.#line);
    pointer(this.#plot, looking, (at) => this.#curves.snapped(at));
    this.#layOut();
    this.showView();
    this.showCursor();
  }

  fit(width = this.#box.clientWidth): void {
    if (this.#plot === null || width === 0) return;
    if (width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
    this.#layOut(width);
    this.showView();
    this.showCursor();
  }

  /** Curves were hidden or shown. */
  rescale(): void {
    const { range } = this.context;
    this.#plot?.setScale("x", { min: range.from, max: range.to });
  }

  recolour(): void {
    this.#plot?.redraw(false, true);
  }

  /** What is outside the view is paler. */
  showView(): void {
    const { looking: { view }, range } = this.context;
    const part = (at: number) => Math.min(Math.max((at - range.from) / Math.max(range.to - range.from, 1e-6), 0), 1) * 100;
    this.#masks[0].style.width = `${part(view.from)}%`;
    this.#masks[1].style.width = `${100 - part(view.to)}%`;
  }

  showCursor(): void {
    const { looking, range } = this.context;
    if (this.#plot !== null) placeCursor(this.#plot, this.#line, looking.cursor, range, looking.isHovering);
    this.#readout.replaceChildren(...this.#words());
  }

  #words(): (Node | string)[] {
    const { clock, levels, looking, meta } = this.context;
    const at = looking.cursor;
    const words: (Node | string)[] = [element("b", "", clock.moment(at))];
    if (clock.isOfTheWall) words.push(element("span", "offset", ` +${seconds(Math.round(at * 10) / 10)}`));
    // Of two sources the cursor opens at the moment of one.
    if (looking.isAtWorst && Math.abs(at - meta.worst_s) < 1e-6) {
      words.push(element("span", "", meta.findings.length > 0 ? " · worst moment" : " · tightest moment"));
    } else if (!looking.isHovering && !looking.isAtWorst) words.push(" · pinned");
    const event = this.#eventNear(at);
    if (event !== null) words.push(` · ${event}`);
    const outside = levels.outside(at);
    if (outside !== "") words.push(` · ${outside}`);
    const { from, to } = looking.view;
    if (at < from || at > to) words.push(" (outside the view)");
    if (!looking.isWhole) {
      words.push(element("span", "offset", ` · showing ${clock.range(from, to)} (${seconds(to - from)})`));
    }
    return words;
  }

  /** The text of the event closest to a moment, the main ones preferred; null where none is close. */
  #eventNear(at: number): string | null {
    const { meta, looking } = this.context;
    const close = Math.max(0.8 * (meta.interval_s ?? 1), (looking.view.to - looking.view.from) * 0.012);
    let best: { distance: number; text: string } | null = null;
    for (const event of meta.events) {
      const distance = Math.abs(event.at_s - at);
      if (distance > close) continue;
      const rank = distance + (event.is_main ? 0 : close / 2);
      if (best === null || rank < best.distance) best = { distance: rank, text: event.text };
    }
    return best?.text ?? null;
  }

  /** Places events and findings under the plot. */
  #layOut(width = this.#box.clientWidth): void {
    const { range } = this.context;
    const { title, says } = this.#curves.chart;
    this.#box.setAttribute("aria-label", `The whole range in small: ${title}. ${says}`);
    const x = (at: number) => ((at - range.from) / Math.max(range.to - range.from, 1e-6)) * width;
    this.#lanes.replaceChildren(this.#gapLane(x, width), this.#events(x, width), this.#bars(x, width));
    // What is scrolled to must not end up under what sticks: on a phone that is the bar alone.
    const height = this.host.offsetHeight || (this.#readout.parentElement?.offsetHeight ?? 0);
    document.documentElement.style.setProperty("--sticky", `${height}px`);
  }

  /** How long each gap is, written into it where there is room. */
  #gapLane(x: (at: number) => number, width: number): HTMLElement {
    const { meta, clock, range } = this.context;
    const lane = element("div", "lane gaps");
    for (const [from, to, lost] of merged(meta.gaps, range, ((range.to - range.from) * APART_PX) / Math.max(width, 1))) {
      const text = `${seconds(lost)} not recorded`;
      const mark = element("span", "gap", x(to) - x(from) > textWidth(text) + 8 ? text : "");
      mark.title = `${clock.range(from, to)}: ${text}`;
      mark.style.left = `${x(from)}px`;
      mark.style.width = `${Math.max(x(to) - x(from), 1)}px`;
      lane.append(mark);
    }
    return lane;
  }

  #events(x: (at: number) => number, width: number): HTMLElement {
    const { meta } = this.context;
    const lane = element("div", meta.events.length > 0 ? "lane events" : "lane");
    const placed = eventLane(meta.events, x, width, textWidth);
    lane.append(...this.#marks(placed));
    for (const { x, text } of placed.labels) {
      const made = element("span", "event-label", text);
      made.style.left = `${x}px`;
      lane.append(made);
    }
    for (const crowd of placed.crowds) {
      const { looking } = this.context;
      const times = crowd.events.map((event) => event.at_s);
      const made = button("crowd", `${crowd.events.length} events`, () => {
        looking.show(Math.min(...times), Math.max(...times));
      });
      made.style.left = `${crowd.x}px`;
      made.style.width = `${crowd.width}px`;
      lane.append(made);
    }
    return lane;
  }

  /** A triangle for a main event, a tick for another. The list of events below the charts has the same for the keyboard. */
  #marks(placed: EventLane): HTMLElement[] {
    const { clock, looking } = this.context;
    return placed.ticks.map(({ x, event }) => {
      const made = button(event.is_main ? "event is-main" : "event", "", () => looking.pin(event.at_s));
      made.title = `${clock.moment(event.at_s)}  ${event.text}`;
      made.setAttribute("aria-label", made.title);
      made.tabIndex = -1;
      made.style.left = `${x}px`;
      return made;
    });
  }

  /** A consequence stands inside the card of its cause. */
  #bars(x: (at: number) => number, width: number): HTMLElement {
    const { meta } = this.context;
    const lane = element("div", "lane bars");
    const roots = meta.findings.flatMap((finding, index) =>
      finding.is_root ? [{ index, stretches: finding.stretches, texts: namesOf(finding) }] : [],
    );
    const bars = findingBars(roots, x, width, textWidth);
    for (const bar of bars) lane.append(...this.#bar(bar, width));
    lane.style.height = `${(Math.max(-1, ...bars.map((bar) => bar.row)) + 1) * ROW_PX}px`;
    return lane;
  }

  /** The cursor goes to the time of a bar, unless it is there already: a finding may hold many times. */
  #moveInto(bar: Bar, width: number): void {
    const { looking, range: { from, to } } = this.context;
    const at = (x: number) => from + (x / Math.max(width, 1)) * (to - from);
    if (looking.cursor < at(bar.x) || looking.cursor > at(bar.x + bar.width)) looking.pin(at(bar.x + bar.width / 2));
  }

  #bar(bar: Bar, width: number): HTMLElement[] {
    const finding = this.context.meta.findings[bar.finding];
    if (finding === undefined) return [];
    const made = button(`bar is-${finding.severity}`, bar.place === "inside" ? bar.text : "", () => {
      this.#moveInto(bar, width);
      this.showFinding(bar.finding);
    });
    made.title = finding.title;
    made.setAttribute("aria-label", `${finding.severity}: ${namesOf(finding)[0]}`);
    made.style.left = `${bar.x}px`;
    made.style.width = `${bar.width}px`;
    made.style.top = `${bar.row * ROW_PX + 2}px`;
    if (bar.place !== "outside") return [made];
    const label = element("span", `bar-label is-${finding.severity}`, bar.text);
    const needed = textWidth(bar.text) + 10;
    label.style.left = `${bar.x + bar.width + needed > width ? bar.x - needed + 4 : bar.x + bar.width + 5}px`;
    label.style.top = `${bar.row * ROW_PX + 2}px`;
    return [made, label];
  }
}

/** What a finding's bar is called, the longest first: rules of one name differ by what they are about. */
const namesOf = ({ id, subject }: Finding) => (subject === null ? [id] : [`${id} · ${subject}`, id]);

const nameOf = (element: Element | null) => element?.getAttribute("aria-label") ?? null;

/** The curves that stand for all. */
function overview(context: Context): Curves {
  const index = context.meta.charts.findIndex((chart) => chart.size === "overview");
  return curvesOf(context, Math.max(index, 0), context.range);
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text: string): number {
  if (pen === null) return text.length * 7;
  pen.font = `600 12px ${FONT}`;
  return pen.measureText(text).width;
}
