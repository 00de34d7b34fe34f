/** Where a plot's values lie on its canvas, in the canvas's own pixels. */

import type uPlot from "uplot";

import type { Theme } from "./colours";

export interface Frame {
  ctx: CanvasRenderingContext2D;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** Canvas pixels in a CSS pixel. */
  ratio: number;
  /** The stretch of time between left and right. */
  from: number;
  to: number;
  theme: Theme;
  x(at: number): number;
  y(value: number): number;
  /** The same for all rows of a curve, as plain loops: they run for each series at each step of a zoom. */
  xs(times: Float64Array): Float64Array;
  ys(values: Float64Array): Float64Array;
}

export const FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","DejaVu Sans",sans-serif';

export function frameOf(u: uPlot, theme: Theme): Frame {
  const { left, top, width, height } = u.bbox;
  const from = u.scales.x?.min ?? 0;
  const to = u.scales.x?.max ?? 1;
  const perSecond = width / Math.max(to - from, 1e-6);
  const { y, ys } = vertical(u, top, height);
  return {
    ctx: u.ctx,
    left,
    top,
    right: left + width,
    bottom: top + height,
    ratio: devicePixelRatio,
    from,
    to,
    theme,
    x: (at) => left + (at - from) * perSecond,
    y,
    xs: (times) => linear(times, left - from * perSecond, perSecond),
    ys,
  };
}

/** By hand rather than by valToPos: this runs for each row of each series. */
function vertical(u: uPlot, top: number, height: number): Pick<Frame, "y" | "ys"> {
  const scale = u.scales.y;
  const low = scale?.min ?? 0;
  const high = scale?.max ?? 1;
  if (scale?.distr === 3) {
    const [lowLog, highLog] = [Math.log(low), Math.log(high)];
    const y = (value: number) => top + (height * (highLog - Math.log(Math.max(value, low)))) / (highLog - lowLog);
    return { y, ys: (values) => values.map(y) };
  }
  const perUnit = height / (high - low);
  return {
    y: (value) => top + (high - value) * perUnit,
    ys: (values) => linear(values, top + high * perUnit, -perUnit),
  };
}

function linear(values: Float64Array, start: number, by: number): Float64Array {
  const result = new Float64Array(values.length);
  for (let row = 0; row < values.length; row++) result[row] = start + (values[row] ?? NaN) * by;
  return result;
}
