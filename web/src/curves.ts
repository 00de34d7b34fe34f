/** The curves of a chart: which picture is shown, what is on top of what, and what they are worth at a moment. */

import { seriesColour } from "./colours";
import type { Context } from "./context";
import { cut, type Cut } from "./cut";
import { range, value } from "./format";
import { nearest, type Levels, type Picture, type View } from "./levels";
import type { Chart, Series } from "./page";
import { edges } from "./stack";

export class Curves {
  #shown: Picture;
  #cut: Cut = { times: new Float64Array(), broken: new Uint8Array(), columns: [] };
  #sums: Float64Array[] | null = null;
  /** The same chart of the source that this one is compared with: both have one scale. */
  beside: Curves | null = null;
  #ends: [low: number, high: number] = [0, 1];
  /** What was hidden when they were found. */
  #endsOf: ReadonlySet<string> | null = null;

  constructor(
    readonly chart: Chart,
    private readonly index: number,
    private readonly levels: Levels,
    view: View,
    private readonly alike: readonly string[] = [],
    private readonly hidden: () => ReadonlySet<string> = () => new Set(),
  ) {
    this.#shown = levels.picture(index, view);
  }

  /** All rows from which the view is cut. */
  get picture(): Picture {
    return this.#shown;
  }

  /** Takes the picture that suits a view. */
  look(view: View): void {
    this.#shown = this.levels.picture(this.index, view);
  }

  /** Cuts out what is to be painted, `pixels` wide. */
  prepare(view: View, pixels: number): void {
    // Areas on top of each other have no bands.
    this.#cut = cut(this.#shown, view, pixels, this.chart.kind !== "stack");
    this.#sums = null;
  }

  /** The name of a series' colour. */
  colour(series: number): string {
    const known = this.chart.series[series];
    return known === undefined ? "limit" : seriesColour(known, this.alike.indexOf(known.label));
  }

  /** What is painted; nothing before it is prepared. */
  get cut(): Cut {
    return this.#cut;
  }

  /** Whether it is drawn as data: no limit, and not hidden. */
  isData = (series: number): boolean => {
    const known = this.chart.series[series];
    return known?.is_limit === false && !this.hidden().has(nameOf(this.chart, known));
  };

  /** The upper edges of a stack's areas. */
  get edges(): Float64Array[] {
    return (this.#sums ??= edges(this.cut, this.isData));
  }

  /** The values of a series as painted: downwards where it is the negative one of a mirror. */
  drawn(series: number, part: "mean" | "min" | "max" = "mean"): Float64Array | null {
    const column = this.cut.columns[series] ?? null;
    const values = column === null ? null : column[part];
    if (values === null || this.chart.series[series]?.is_negative !== true) return values;
    return values.map((value) => -value);
  }

  /** The time of the sample that is closest to a moment. */
  snapped(at: number): number {
    const { times } = this.#shown;
    return times[nearest(times, at)] ?? at;
  }

  /** What a series says at a moment: as drawn while the pointer moves, else from the finest level that knows it. */
  at(moment: number, isHovering: boolean): Reading {
    const picture = isHovering ? this.#shown : this.levels.finestAt(this.index, moment);
    const row = this.levels.outside(moment) === "" ? nearest(picture.times, moment) : -1;
    return new Reading(this.chart, picture, row);
  }

  /** The ends of the vertical axis, which stay while zooming. */
  get ends(): [low: number, high: number] {
    if (this.#endsOf !== this.hidden()) {
      this.#endsOf = this.hidden();
      this.#ends = this.#endsWith(this.beside);
    }
    return this.#ends;
  }

  #endsWith(beside: Curves | null): [low: number, high: number] {
    const [low, high] = this.#ownEnds();
    const [otherLow, otherHigh] = beside === null ? [low, high] : beside.#ownEnds();
    return [Math.min(low, otherLow), Math.max(high, otherHigh)];
  }

  #ownEnds(): [low: number, high: number] {
    const { chart } = this;
    const of = (wanted: (series: number) => boolean) =>
      chart.series.flatMap((_, series) => (wanted(series) ? (this.levels.extent(this.index, series) ?? []) : []));
    const up = of((series) => this.isData(series) && chart.series[series]?.is_negative !== true);
    const down = of((series) => this.isData(series) && chart.series[series]?.is_negative === true);
    const peak = chart.kind === "stack" ? this.#highestSum() : Math.max(0, ...up.map((extent) => extent.to));
    const depth = Math.max(0, ...down.map((extent) => extent.to));
    const limits = this.#limitsWithin(of, Math.max(peak, depth));
    if (chart.is_log) return logEnds([...up, ...limits.map((to) => ({ from: to, to }))]);
    // A stack of which a part is hidden does not reach its top.
    const isWhole = chart.kind !== "stack" || chart.series.every((series, index) => series.is_limit || this.isData(index));
    const top = isWhole ? chart.top : null;
    const high = Math.max(top ?? 0, Math.max(peak, ...limits) * (top === null ? 1.1 : 1));
    const least = Math.min(0, ...up.map((extent) => extent.from), -depth);
    return [least * 1.1, high > 0 || least < 0 ? high : EMPTY[chart.unit]];
  }

  /** Limits far above all data would press it flat; they are left out of the range. */
  #limitsWithin(of: (wanted: (series: number) => boolean) => View[], peak: number): number[] {
    const fixed = this.chart.limits.flatMap((limit) => limit.value ?? []);
    const moving = of((series) => this.chart.series[series]?.is_limit === true).map((extent) => extent.to);
    return [...fixed, ...moving].filter((limit) => limit <= FAR * peak || this.chart.is_log);
  }

  #highestSum(): number {
    let highest = 0;
    for (const picture of this.levels.pictures(this.index)) {
      for (const sum of edges(picture, this.isData).at(-1) ?? []) if (sum > highest) highest = sum;
    }
    return highest;
  }
}

/** The curves of one of a source's charts, for a view. */
export function curvesOf({ meta, levels, alike, looking }: Context, index: number, view: View): Curves {
  const chart = meta.charts[index];
  if (chart === undefined) throw new Error(`no chart ${index}`);
  return new Curves(chart, index, levels, view, alike.get(chart.id), () => looking.hidden);
}

/** What a curve is called where it is hidden. */
export const nameOf = (chart: Pick<Chart, "id">, series: Pick<Series, "id">) => `${chart.id}.${series.id}`;

/** The names of a chart's curves of free memory, on top of which nothing lies. */
export function freeOf(chart: Chart): string[] {
  const free = chart.series.filter(({ group }) => chart.kind === "stack" && group === "free");
  return free.map((series) => nameOf(chart, series));
}

const FAR = 3;

/** The upper end where everything is 0. */
const EMPTY = { bytes: 2 ** 20, "bytes/s": 2 ** 20, "pages/s": 1, "count/s": 1, share: 0.01, ms: 1 } as const;

function logEnds(extents: readonly View[]): [number, number] {
  const highest = Math.max(1, ...extents.map((extent) => extent.to));
  // Below a page there is nothing to see; a zero is drawn at the lower end.
  const least = Math.max(4096, highest / 2 ** 24);
  const lowest = Math.min(highest, ...extents.map((extent) => Math.max(extent.from, least)));
  return [lowest * 0.7, highest * 1.4];
}

/** All series of a chart at one row. */
export class Reading {
  constructor(
    private readonly chart: Chart,
    private readonly picture: Picture,
    private readonly row: number,
  ) {}

  /** NaN where nothing was measured. */
  number(series: number): number {
    return this.picture.columns[series]?.mean[this.row] ?? NaN;
  }

  /** In words; from the least to the largest where a row holds many samples. */
  text(series: number): string {
    const column = this.picture.columns[series] ?? null;
    if (column === null) return "–";
    const [min, max] = [column.min?.[this.row], column.max?.[this.row]];
    if (this.chart.kind === "stack" || min === undefined || max === undefined) {
      return value(this.number(series), this.chart.unit);
    }
    return range(min, max, this.chart.unit);
  }

  total(): number {
    const known = this.chart.series.flatMap((series, index) => (series.is_limit ? [] : [this.number(index)]));
    const present = known.filter((value) => !Number.isNaN(value));
    return present.length === 0 ? NaN : present.reduce((sum, value) => sum + value, 0);
  }
}
