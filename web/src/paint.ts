/** Draws a chart's curves onto its canvas, in the order: shades, data, limits, events. */

import type { Curves } from "./curves";
import type { Frame } from "./frame";
import { hatch, Labels, paintBrackets, paintEvents, paintGaps, paintTints, type Anchor, type Box, type Tint } from "./marks";
import { dataColour, surface, translucent } from "./colours";
import { range, value } from "./format";
import type { Gap, HostEvent, Series, Unit } from "./page";
import { area, curve, fillBand, line, type Curve } from "./paths";

export interface Surroundings {
  tints: readonly Tint[];
  events: readonly HostEvent[];
  gaps: readonly Gap[];
  /** Without limits and their labels. */
  isSmall?: boolean;
}

export function paint(frame: Frame, curves: Curves, around: Surroundings): void {
  const { ctx } = frame;
  curves.prepare(frame, (frame.right - frame.left) / frame.ratio);
  ctx.save();
  ctx.beginPath();
  ctx.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
  ctx.clip();
  const isStack = curves.chart.kind === "stack";
  paintGaps(frame, around.gaps, 0.35);
  if (!isStack) paintTints(frame, around.tints);
  if (isStack) paintStack(frame, curves);
  else paintCurves(frame, curves);
  if (isStack) paintBrackets(frame, around.tints.filter((tint) => tint.isEvidence || curves.chart.size !== "small"));
  if (around.isSmall !== true) paintLimits(frame, curves);
  paintEvents(frame, around.events);
  ctx.restore();
}

function curveOf(frame: Frame, curves: Curves, series: number, values: Float64Array): Curve {
  return curve(frame, curves.cut, values, curves.chart.series[series]?.is_steps === true);
}

/** Strokes the line of a curve, `width` pixels wide; of a dense one a single pixel, which is ten times as fast without a GPU. */
function stroke(frame: Frame, shape: Curve, width: number): void {
  const { ctx, ratio } = frame;
  ctx.lineWidth = (shape.isDense ? 1 : width) * ratio;
  ctx.lineJoin = "round";
  ctx.stroke(line(shape, frame));
}

function paintStack(frame: Frame, curves: Curves): void {
  const { ctx, theme, ratio } = frame;
  // From the top down, each area to the bottom of the chart: what lies below covers the rest, and no hairline is left
  // between two areas.
  for (let index = curves.chart.series.length - 1; index >= 0; index--) {
    const [series, top] = [curves.chart.series[index], curves.edges[index]];
    if (series === undefined || !curves.isData(index) || top === undefined || !curves.cut.columns[index]) continue;
    const edge = curveOf(frame, curves, index, top);
    const colour = dataColour(curves.colour(index), theme);
    const shape = area(edge, null, frame);
    if (series.is_hatched) {
      ctx.fillStyle = surface("panel", theme);
      ctx.fill(shape);
      ctx.fillStyle = hatch(ctx, colour, ratio);
    } else {
      ctx.fillStyle = colour;
    }
    ctx.fill(shape);
    if (!series.is_alike) continue;
    // A thin line separates owners of memory.
    ctx.strokeStyle = surface("panel", theme);
    stroke(frame, edge, 1);
  }
}

/** Rates of one or two kinds are filled; more, or levels, are lines that can cross. */
const MOST_FILLED = 2;

function paintCurves(frame: Frame, curves: Curves): void {
  const { chart } = curves;
  const all = chart.series.map((series, index) => ({ series, index })).filter(({ series }) => !series.is_limit);
  const data = all.filter(({ index }) => curves.isData(index));
  const perSide = Math.max(...[true, false].map((side) => all.filter(({ series }) => series.is_negative === side).length));
  // What is larger is drawn first, so that nothing is hidden behind it.
  const byHeight = [...data].sort((a, b) => highest(curves, b.index) - highest(curves, a.index));
  paintFloor(frame, curves);
  for (const { series, index } of byHeight) {
    if (perSide <= MOST_FILLED && !chart.is_log) paintFilled(frame, curves, series, index);
    else paintLine(frame, curves, series, index);
  }
}

function highest(curves: Curves, series: number): number {
  let peak = 0;
  for (const value of curves.cut.columns[series]?.mean ?? []) if (value > peak) peak = value;
  return peak;
}

function paintFilled(frame: Frame, curves: Curves, series: Series, index: number): void {
  const values = curves.drawn(index);
  if (values === null) return;
  const { ctx, theme } = frame;
  const colour = dataColour(series.colour, theme);
  const shape = curveOf(frame, curves, index, values);
  // A pale colour of a pair is pale already.
  ctx.fillStyle = translucent(colour, series.is_steps ? (series.is_pale ? 0.65 : 0.82) : 0.22);
  ctx.fill(area(shape, null, frame));
  paintBand(frame, curves, series, index);
  ctx.strokeStyle = colour;
  stroke(frame, shape, series.is_steps ? 1 : 1.5);
}

function paintLine(frame: Frame, curves: Curves, series: Series, index: number): void {
  const values = curves.drawn(index);
  if (values === null) return;
  paintBand(frame, curves, series, index);
  frame.ctx.strokeStyle = dataColour(series.colour, frame.theme);
  stroke(frame, curveOf(frame, curves, index, values), 1.6);
}

function paintBand(frame: Frame, curves: Curves, series: Series, index: number): void {
  const [min, max] = [curves.drawn(index, "min"), curves.drawn(index, "max")];
  if (min === null || max === null) return;
  frame.ctx.fillStyle = translucent(dataColour(series.colour, frame.theme), 0.32);
  const [top, bottom] = series.is_negative ? [min, max] : [max, min];
  fillBand(curveOf(frame, curves, index, top), frame.ys(bottom), frame);
}

/** The two edges of the floor, where a chart has one. */
function floorOf(curves: Curves): { high: number; below: Float64Array; above: Float64Array } | null {
  const { band, series } = curves.chart;
  if (band === null) return null;
  const [low, high] = band.map((id) => series.findIndex((one) => one.id === id)) as [number, number];
  const [below, above] = [curves.drawn(low), curves.drawn(high)];
  return below === null || above === null ? null : { high, below, above };
}

function paintFloor(frame: Frame, curves: Curves): void {
  const floor = floorOf(curves);
  if (floor === null) return;
  frame.ctx.fillStyle = translucent(dataColour("psi_some", frame.theme), 0.5);
  frame.ctx.fill(area(curveOf(frame, curves, floor.high, floor.above), frame.ys(floor.below), frame));
}

function paintLimits(frame: Frame, curves: Curves): void {
  const { limits, unit } = curves.chart;
  if (limits.length === 0) return;
  const labels = new Labels(frame, crossed(frame, curves));
  frame.ctx.strokeStyle = surface("ink", frame.theme);
  const floor = floorOf(curves);
  const named = limits.flatMap(({ label, value, series }) => {
    const at = series === null ? fixedLine(frame, value) : movingLine(frame, curves, series);
    // The two edges of a floor lie close together; they have one name.
    return at.length === 0 || (floor !== null && series !== null) ? [] : [{ at, label, worth: (there: Anchor) => worth(there.value, unit) }];
  });
  if (floor !== null) {
    const at = inside(frame, curves, floor.above);
    const row = floor.above.indexOf(at[1]?.value ?? NaN);
    const worth = range(floor.below[row] ?? NaN, floor.above[row] ?? NaN, unit);
    if (row >= 0) named.push({ at, label: "floor", worth: () => worth });
  }
  for (const { at, label, worth } of named) labels.put(label, worth, at);
}

/** A limit of nothing needs no number. */
const worth = (at: number, unit: Unit) => (at === 0 ? "" : value(at, unit));

function dashed({ ctx, ratio }: Frame, stroke: () => void): void {
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  stroke();
  ctx.setLineDash([]);
}

/** Where on a limit's line its name may stand, the best first. */
const PLACES = [0, 1, ...Array.from({ length: 15 }, (_, at) => (at + 1) / 16)];

/** Draws a limit at one value; gives where its name can stand. */
function fixedLine(frame: Frame, value: number | null): Anchor[] {
  if (value === null) return [];
  const y = frame.y(value);
  if (y < frame.top - 1 || y > frame.bottom + 1) return [];
  const path = new Path2D();
  path.moveTo(frame.left, Math.round(y) + 0.5);
  path.lineTo(frame.right, Math.round(y) + 0.5);
  frame.ctx.lineWidth = frame.ratio;
  dashed(frame, () => frame.ctx.stroke(path));
  const length = frame.right - frame.left;
  return PLACES.map((part) => ({ x: frame.left + part * length, y, value }));
}

function movingLine(frame: Frame, curves: Curves, id: string): Anchor[] {
  const index = curves.chart.series.findIndex((series) => series.id === id);
  const values = curves.drawn(index);
  if (values === null) return [];
  dashed(frame, () => stroke(frame, curveOf(frame, curves, index, values), 1));
  return inside(frame, curves, values);
}

/** Some points at which a curve is seen. */
function inside(frame: Frame, { cut }: Curves, values: Float64Array): Anchor[] {
  const seen: Anchor[] = [];
  for (const [row, value] of values.entries()) {
    const [x, y] = [frame.x(cut.times[row] ?? NaN), frame.y(value)];
    if (x >= frame.left && x <= frame.right && y >= frame.top - 1 && y <= frame.bottom + 1) seen.push({ x, y, value });
  }
  return PLACES.flatMap((part) => seen[Math.round(part * (seen.length - 1))] ?? []);
}

/** Tells whether a curve runs through a box. */
function crossed(frame: Frame, curves: Curves): (box: Box) => boolean {
  const xs = frame.xs(curves.cut.times);
  const lines = curves.chart.series.flatMap((_, series) => {
    const values = curves.chart.kind === "stack" ? curves.edges[series] : curves.drawn(series);
    return values && curves.isData(series) ? [frame.ys(values)] : [];
  });
  return ({ left, right, top, bottom }) => {
    for (let row = 1; row < xs.length; row++) {
      if ((xs[row] ?? NaN) < left || (xs[row - 1] ?? NaN) > right) continue;
      for (const ys of lines) {
        const [one = NaN, other = NaN] = [ys[row - 1], ys[row]];
        if (Math.max(one, other) >= top && Math.min(one, other) <= bottom) return true;
      }
    }
    return false;
  };
}
