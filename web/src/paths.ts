/** Shapes of curves: lines, areas and bands, broken where nothing was measured. Geometry only; no colour. */

import type { Cut } from "./cut";
import type { Frame } from "./frame";

/** A curve in the canvas's own pixels. */
export interface Curve {
  /** Where the time of each row ends. */
  xs: Float64Array;
  /** NaN where nothing was measured. */
  ys: Float64Array;
  /** 1 for each row that does not follow from the one before: a gap lies between. */
  broken: Uint8Array;
  /** Rates hold from the sample before to their own; levels are joined by straight lines. */
  isSteps: boolean;
  /** Rows are about as close as pixels: whether steps or straight lines join them, nobody sees. */
  isDense: boolean;
}

/** Rows closer than so many pixels are dense. */
const DENSE_PX = 2;

export function curve(frame: Frame, { times, broken }: Pick<Cut, "times" | "broken">, values: Float64Array, isSteps: boolean): Curve {
  const isDense = times.length * DENSE_PX * frame.ratio > frame.right - frame.left;
  return { xs: frame.xs(times), ys: frame.ys(values), broken, isSteps: isSteps && !isDense, isDense };
}

/** Calls `each` with the first and the last row of every unbroken part. */
function eachRun({ ys, broken }: Curve, each: (first: number, last: number) => void): void {
  let first = -1;
  for (let row = 0; row < ys.length; row++) {
    const isMissing = Number.isNaN(ys[row]);
    if (first >= 0 && (isMissing || broken[row] === 1)) {
      each(first, row - 1);
      first = -1;
    }
    if (!isMissing && first < 0) first = row;
  }
  if (first >= 0) each(first, ys.length - 1);
}

/** Where the time of a row begins: at the row before, if that is not beyond a gap. */
function beginning({ xs, broken }: Curve, { ratio }: Frame, row: number): number {
  return row === 0 || broken[row] === 1 ? (xs[row] ?? 0) - ratio : (xs[row - 1] ?? 0);
}

/** The points of a run of rows at the heights `ys`, from left to right; along a level stretch only its ends. */
function trace(path: Path2D, { xs, isSteps }: Curve, ys: Float64Array, start: number, first: number, last: number): void {
  let before = start;
  for (let row = first; row <= last; row++) {
    const [x, y] = [xs[row] ?? 0, ys[row] ?? 0];
    const isLevel = row > first && row < last && ys[row - 1] === y && ys[row + 1] === y;
    if (isSteps && !isLevel) path.lineTo(before, y);
    if (!isLevel) path.lineTo(x, y);
    before = x;
  }
}

/** The same points from right to left. */
function traceBack(path: Path2D, { xs, isSteps }: Curve, ys: Float64Array, start: number, first: number, last: number): void {
  for (let row = last; row >= first; row--) {
    const y = ys[row] ?? 0;
    path.lineTo(xs[row] ?? 0, y);
    if (isSteps) path.lineTo(row === first ? start : (xs[row - 1] ?? 0), y);
  }
}

/** The line of a curve. A sample that stands alone is a dot as wide as the line, or it would not be seen. */
export function line(curve: Curve, frame: Frame): Path2D {
  const path = new Path2D();
  const { xs, ys, isSteps } = curve;
  eachRun(curve, (first, last) => {
    const start = isSteps ? beginning(curve, frame, first) : (xs[first] ?? 0) - (first === last ? frame.ratio : 0);
    path.moveTo(start, ys[first] ?? 0);
    trace(path, curve, ys, start, first, last);
  });
  return path;
}

/** The area between a curve and what is `below` it: the heights of another curve on the same rows, or 0. */
export function area(curve: Curve, below: Float64Array | null, frame: Frame): Path2D {
  const path = new Path2D();
  const zero = frame.y(0);
  const lower = below && below.map((y) => (Number.isNaN(y) ? zero : y));
  const { xs, ys, isSteps } = curve;
  eachRun(curve, (first, last) => {
    if (!isSteps && first === last) {
      const top = ys[first] ?? 0;
      path.rect((xs[first] ?? 0) - frame.ratio, top, 2 * frame.ratio, (lower?.[first] ?? zero) - top);
      return;
    }
    const start = isSteps ? beginning(curve, frame, first) : (xs[first] ?? 0);
    path.moveTo(start, ys[first] ?? 0);
    trace(path, curve, ys, start, first, last);
    if (lower === null) {
      path.lineTo(xs[last] ?? 0, zero);
      path.lineTo(start, zero);
    } else {
      traceBack(path, curve, lower, start, first, last);
    }
    path.closePath();
  });
  return path;
}

/**
 * Fills the range of each row's values, from the curve down to `below`: a peak of one sample is as high as it was. Row by
 * row, on whole pixels, which neither blurs nor fades it and is several times as fast as one path of as many boxes.
 */
export function fillBand(curve: Curve, below: Float64Array, frame: Frame): void {
  const { ctx, ratio } = frame;
  const { xs, ys } = curve;
  for (let row = 0; row < ys.length; row++) {
    const [top, bottom] = [ys[row] ?? NaN, below[row] ?? NaN];
    // Less than a pixel is under the line.
    if (!(bottom - top >= ratio)) continue;
    const right = Math.round(xs[row] ?? 0);
    const left = Math.min(Math.round(beginning(curve, frame, row)), right - ratio);
    ctx.fillRect(left, top, right - left, bottom - top);
  }
}
