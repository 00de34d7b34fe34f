/** Where events and findings stand under the navigator, without covering each other. Pixels in, pixels out. */

import type { HostEvent, Stretch } from "./page";

export interface Tick {
  x: number;
  event: HostEvent;
}

export interface EventLabel {
  event: HostEvent;
  /** The left end of the text. */
  x: number;
  text: string;
  /** The text ends at the event, instead of beginning there. */
  isLeft: boolean;
}

/** So many events that their marks would be one bar: they are counted. */
export interface Crowd {
  x: number;
  width: number;
  events: HostEvent[];
}

export interface EventLane {
  ticks: Tick[];
  labels: EventLabel[];
  crowds: Crowd[];
}

const BUCKET_PX = 100;
const MOST_PER_BUCKET = 12;
const MARK_PX = 8;
/** What is longer is ended after a word between these lengths. */
const SHORTEST = 24;
const LONGEST = 100;

export function eventLane(
  events: readonly HostEvent[],
  x: (at: number) => number,
  width: number,
  widthOf: (text: string) => number,
): EventLane {
  const buckets = new Map<number, HostEvent[]>();
  for (const event of events) {
    const bucket = Math.floor(x(event.at_s) / BUCKET_PX);
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), event]);
  }
  const crowds: Crowd[] = [];
  const single: HostEvent[] = [];
  for (const [bucket, inside] of buckets) {
    if (inside.length <= MOST_PER_BUCKET) {
      single.push(...inside);
      continue;
    }
    const left = Math.max(bucket * BUCKET_PX, 0);
    crowds.push({ x: left, width: Math.min(BUCKET_PX, width - left), events: inside });
  }
  const ticks = single.map((event) => ({ x: x(event.at_s), event }));
  const main = ticks.filter((tick) => tick.event.is_main).sort((a, b) => a.x - b.x);
  const taken: Span[] = [
    ...crowds.map((crowd) => ({ from: crowd.x, to: crowd.x + crowd.width })),
    ...main.map((tick) => ({ from: tick.x - MARK_PX / 2, to: tick.x + MARK_PX / 2 })),
  ];
  const labels = main.flatMap((tick) => label(tick, width, widthOf, taken) ?? []);
  return { ticks, labels, crowds };
}

interface Span {
  from: number;
  to: number;
}

/**
 * A label right of its mark, else left of it, whole or ended after a word, else none: its text is still in the mark's title
 * and the list of events.
 */
function label(tick: Tick, width: number, widthOf: (text: string) => number, taken: Span[]): EventLabel | null {
  for (const text of shortened(tick.event.text)) {
    const placed = place(tick, text, width, widthOf, taken);
    if (placed !== null) return placed;
  }
  return null;
}

/** A text, and the beginnings of it that end with a word, the longest first. */
function shortened(text: string): string[] {
  const ends = [...text.slice(0, LONGEST).matchAll(/[,;:]? /g)].map(({ index }) => index).filter((end) => end >= SHORTEST);
  const parts = ends.reverse().map((end) => `${text.slice(0, end)} …`);
  return text.length > LONGEST ? parts : [text, ...parts];
}

function place(
  tick: Tick,
  text: string,
  width: number,
  widthOf: (text: string) => number,
  taken: Span[],
): EventLabel | null {
  const { event } = tick;
  const room = widthOf(text) + 6;
  const right = { from: tick.x + MARK_PX / 2 + 1, to: tick.x + MARK_PX / 2 + 1 + room };
  const left = { from: tick.x - MARK_PX / 2 - 1 - room, to: tick.x - MARK_PX / 2 - 1 };
  for (const [place, isLeft] of [[right, false], [left, true]] as const) {
    const isInside = place.from >= 0 && place.to <= width;
    if (!isInside || taken.some((other) => place.from < other.to && other.from < place.to)) continue;
    taken.push(place);
    return { event, x: isLeft ? place.from : place.from + 2, text, isLeft };
  }
  return null;
}

export interface Bar {
  finding: number;
  x: number;
  width: number;
  row: number;
  /** The finding's name; empty where there is no room for it. */
  text: string;
  /** Where it stands: in the bar, beside it, where it is too short for that, or nowhere, where it stands at another bar. */
  place: "inside" | "outside" | "none";
}

const LEAST_BAR = 6;
/** The navigator must not cover the charts: what would need more rows stands in the findings' cards alone. */
const MOST_ROWS = 3;

const overlap = (one: readonly Span[], other: readonly Span[]) => one.some((a) => other.some((b) => a.from < b.to && b.from < a.to));

/**
 * Bars for each finding, all in one row and one with its name, the longest for which there is room; those that overlap are in
 * different rows, the first on top. A name gives way to a bar, but for that of the first finding.
 */
export function findingBars(
  findings: readonly { index: number; stretches: readonly Stretch[]; texts: readonly string[] }[],
  x: (at: number) => number,
  width: number,
  widthOf: (text: string) => number,
): Bar[] {
  const rows = Array.from({ length: MOST_ROWS }, () => ({ bars: [] as Span[], names: [] as { span: Span; bar: Bar }[] }));
  const all: Bar[] = [];
  for (const { index, stretches, texts } of findings) {
    const places = barsOf(stretches, x, width);
    const add = (row: number, text: string, named: ReturnType<typeof nameOf>) => {
      rows[row]?.bars.push(...places);
      for (const span of places) {
        const place = span !== named?.bar ? "none" : named.isOutside ? "outside" : "inside";
        const bar: Bar = { finding: index, x: span.from, width: span.to - span.from, row, text, place };
        if (place === "outside" && named !== null) rows[row]?.names.push({ span: named.span, bar });
        all.push(bar);
      }
    };
    const fits = texts.some((text) => {
      const named = nameOf(places, widthOf(text) + 14, width);
      if (named === null) return false;
      const taken = [...places, named.span];
      const row = rows.findIndex(({ bars, names }) => !overlap(bars, taken) && !overlap(names.map(({ span }) => span), taken));
      if (row >= 0) add(row, text, named);
      return row >= 0;
    });
    if (fits) continue;
    const isInTheWay = ({ span }: { span: Span }) => overlap([span], places);
    const row = rows.findIndex(({ bars, names }) => !overlap(bars, places) && !names.some((it) => isInTheWay(it) && it.bar.finding === all[0]?.finding));
    if (row < 0) continue;
    for (const { bar } of rows[row]?.names.filter(isInTheWay) ?? []) bar.place = "none";
    add(row, "", null);
  }
  return all;
}

/** Where a finding's name stands: in or beside its widest bar, or the next one beside which there is room between the others. */
function nameOf(bars: readonly Span[], needed: number, width: number): { bar: Span; span: Span; isOutside: boolean } | null {
  const byWidth = [...bars].sort((a, b) => b.to - b.from - (a.to - a.from));
  const [widest] = byWidth;
  if (widest === undefined) return null;
  if (widest.to - widest.from >= needed) return { bar: widest, span: widest, isOutside: false };
  for (const bar of byWidth) {
    const isRoomRight = bar.to + needed <= width;
    const span = isRoomRight ? { from: bar.from, to: bar.to + needed } : { from: bar.from - needed, to: bar.to };
    const isFree = span.from >= 0 && bars.every((other) => other === bar || other.to <= span.from || span.to <= other.from);
    if (isFree) return { bar, span, isOutside: true };
  }
  return null;
}

/** Bars wide enough to be hit; those that would touch are one. */
function barsOf(stretches: readonly Stretch[], x: (at: number) => number, width: number): Span[] {
  const bars: Span[] = [];
  for (const [from, to] of stretches) {
    const wide = Math.max(x(to) - x(from), LEAST_BAR);
    const start = Math.min(x(from), width - wide);
    const last = bars.at(-1);
    if (last !== undefined && start - last.to < 1) last.to = Math.max(last.to, start + wide);
    else bars.push({ from: start, to: start + wide });
  }
  return bars;
}
