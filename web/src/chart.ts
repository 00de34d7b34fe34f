/** One chart of the page: a uPlot for axes, scales and the pointer, with our own curves painted onto it. */

import type uPlot from "uplot";

import { timeAxis, valueAxis } from "./axes";
import type { Context } from "./context";
import { curvesOf, type Curves } from "./curves";
import { element } from "./dom";
import { frameOf } from "./frame";
import { tints } from "./marks";
import { paint } from "./paint";
import { placeCursor, plot, type Frame } from "./plot";
import { pointer } from "./pointer";
import { values, type Values } from "./values";

const HEIGHTS = { overview: 400, wide: 300, small: 176 } as const;
const PHONE = { overview: 300, wide: 240, small: 160 } as const;

export class ChartView {
  #curves: Curves;
  /** Whether it is on the screen; only such charts are redrawn. */
  isSeen = false;
  #isStale = false;
  #plot: uPlot | null = null;
  readonly #line = element("div", "cursor-line");
  readonly #host: HTMLElement;
  #values: Values;

  constructor(
    readonly figure: HTMLElement,
    index: number,
    private readonly context: Context,
  ) {
    this.#curves = curvesOf(context, index, context.looking.whole);
    this.#host = part(figure, "plot");
    this.#values = values(part(figure, "values"), this.curves, this.#toggle);
  }

  readonly #toggle = (curve: string) => this.context.looking.toggle(curve);

  get curves(): Curves {
    return this.#curves;
  }

  /** The context has newer data; it is drawn when `looking` tells. A chart that they lack is hidden until it comes again. */
  update(): void {
    const { meta, looking } = this.context;
    const index = meta.charts.findIndex((chart) => chart.id === this.curves.chart.id);
    this.figure.hidden = index < 0;
    if (index < 0) return;
    this.#curves = curvesOf(this.context, index, looking.view);
  }

  get isDrawn(): boolean {
    return this.#plot !== null;
  }

  /** Draws for the first time. A figure inside closed details has no width yet and waits. */
  draw(): void {
    const { clientWidth: width } = this.#host;
    if (this.#plot !== null || width === 0) return;
    this.#host.classList.add("is-drawn");
    this.#host.textContent = "";
    this.#plot = plot(this.#host, () => this.curves, this.#frame(width));
    this.#plot.over.append(this.#line);
    this.curves.look(this.context.looking.view);
    pointer(this.#plot, this.context.looking, (at) => this.curves.snapped(at));
    this.showCursor();
    this.describe();
  }

  #height(width: number): number {
    const { size } = this.curves.chart;
    if (width < 420) return PHONE[size];
    // Beside a table the plot is as high as that, so that names and areas stand next to each other.
    const table = this.#values.isBeside ? this.#values.host.scrollHeight : 0;
    return Math.max(HEIGHTS[size], table);
  }

  #frame(width: number): Frame {
    const { looking, theme } = this.context;
    const { chart } = this.curves;
    return {
      width,
      height: this.#height(width),
      padding: [8, 6, 0, 0],
      time: () => [looking.view.from, looking.view.to],
      axes: [timeAxis(() => this.context.clock, () => theme.current, false), valueAxis(chart, () => theme.current, chart.size === "small" ? 30 : 48)],
      paint: (u) => this.#paint(u),
    };
  }

  #paint(u: uPlot): void {
    const { meta, looking, theme } = this.context;
    paint(frameOf(u, theme.current), this.curves, {
      tints: tints(meta.findings, this.curves.chart.evidence_of, looking.finding),
      events: meta.events,
      gaps: meta.gaps,
    });
  }

  /** Something that the picture depends on has changed. */
  refresh(): void {
    if (!this.isSeen) {
      this.#isStale = true;
      return;
    }
    this.#catchUp();
  }

  #catchUp(): void {
    this.#isStale = false;
    const { view } = this.context.looking;
    this.curves.look(view);
    this.#plot?.setScale("x", { min: view.from, max: view.to });
    this.showCursor();
  }

  /** Colours have changed; axes are drawn anew, too. */
  recolour(): void {
    this.#plot?.redraw(false, true);
  }

  /** Comes onto the screen or leaves it. */
  see(isSeen: boolean): void {
    this.isSeen = isSeen;
    if (!isSeen) return;
    this.draw();
    if (this.#isStale) this.refresh();
    this.describe();
  }

  fit(width = this.#host.clientWidth, height = this.#height(width)): void {
    if (this.#plot === null || width === 0) return;
    if (this.#isStale) this.#catchUp();
    if (width !== this.#plot.width || height !== this.#plot.height) this.#plot.setSize({ width, height });
    this.showCursor();
  }

  showCursor(): void {
    const { looking } = this.context;
    if (this.#plot === null) return;
    if (this.#values.curves !== this.curves) {
      this.#values.host.replaceChildren();
      this.#values = values(this.#values.host, this.curves, this.#toggle);
      // Newer data may have more names, and the plot is as high as their table.
      this.fit();
    }
    placeCursor(this.#plot, this.#line, looking.cursor, looking.view, looking.isHovering);
    this.#values.show(this.curves.at(looking.cursor, looking.isHovering));
  }

  /** Says in the plot's label what it shows and what the cursor reads. */
  describe(): void {
    const { looking, clock } = this.context;
    const { chart } = this.curves;
    const reading = this.curves.at(looking.cursor, looking.isHovering);
    const now = chart.series.map((series, index) => `${series.label} ${reading.text(index)}`).join(", ");
    this.#host.setAttribute("aria-label", `${chart.title}. ${chart.says} At ${clock.moment(looking.cursor)}: ${now}.`);
  }
}

function part(figure: HTMLElement, name: string): HTMLElement {
  const found = figure.querySelector<HTMLElement>(`.${name}`);
  if (found !== null) return found;
  const made = element("div", name);
  figure.append(made);
  return made;
}
