/** Draws a chart's curves onto its canvas, in the order: shades, data, limits, events. */

import type { Curves } from "./curves";
import type { Frame } from "./frame";
import { hatch, Labels, paintBrackets, paintEvents, paintGaps, paintTints, type Tint } from "./marks";
import { dataColour, surface, translucent } from "./colours";
import type { Gap, HostEvent, Series } from "./page";
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
    if (series === undefined || series.is_limit || top === undefined || !curves.cut.columns[index]) continue;
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
  const data = chart.series.map((series, index) => ({ series, index })).filter(({ series }) => !series.is_limit);
  const perSide = Math.max(...[true, false].map((side) => data.filter(({ series }) => series.is_negative === side).length));
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
  if (curves.chart.limits.length === 0) return;
  const labels = new Labels(frame);
  const sides = busy(frame, curves);
  frame.ctx.strokeStyle = surface("ink", frame.theme);
  const hasFloor = floorOf(curves) !== null;
  const lines = curves.chart.limits.flatMap((limit) => {
    const y = limit.series === null ? fixedLine(frame, limit.value) : movingLine(frame, curves, limit.series);
    // The two edges of a floor lie close together; the legend names them.
    return y === null || (hasFloor && limit.series !== null) ? [] : [{ y, label: limit.label }];
  });
  for (const { y, label } of lines) labels.put(label, y, sides);
}

function dashed({ ctx, ratio }: Frame, stroke: () => void): void {
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  stroke();
  ctx.setLineDash([]);
}

/** Draws a limit at one value; gives its height where that is inside the chart. */
function fixedLine(frame: Frame, value: number | null): number | null {
  if (value === null) return null;
  const y = frame.y(value);
  if (y < frame.top - 1 || y > frame.bottom + 1) return null;
  const path = new Path2D();
  path.moveTo(frame.left, Math.round(y) + 0.5);
  path.lineTo(frame.right, Math.round(y) + 0.5);
  frame.ctx.lineWidth = frame.ratio;
  dashed(frame, () => frame.ctx.stroke(path));
  return y;
}

function movingLine(frame: Frame, curves: Curves, id: string): number | null {
  const index = curves.chart.series.findIndex((series) => series.id === id);
  const values = curves.drawn(index);
  if (values === null) return null;
  dashed(frame, () => stroke(frame, curveOf(frame, curves, index, values), 1));
  const at = values.at(-1) ?? NaN;
  const y = frame.y(at);
  return Number.isNaN(at) || y < frame.top ? null : y;
}

/** How high curves reach near the left and the right end, where labels can stand. */
function busy(frame: Frame, curves: Curves): [number, number] {
  const last = curves.cut.times.length - 1;
  const third = Math.floor(last / 3);
  const reach = (from: number, to: number) => {
    let top = frame.bottom;
    for (let series = 0; series < curves.chart.series.length; series++) {
      const values = curves.chart.kind === "stack" ? curves.edges[series] : curves.drawn(series);
      if (curves.chart.series[series]?.is_limit !== false) continue;
      for (let row = from; row <= to; row++) {
        const y = frame.y(values?.[row] ?? NaN);
        if (y < top) top = y;
      }
    }
    return (frame.bottom - top) / (frame.bottom - frame.top);
  };
  return [reach(0, third), reach(last - third, last)];
}
