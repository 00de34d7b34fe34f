/** Shapes of curves: lines and steps, broken where nothing was measured. Geometry only; no colour. */

import type { Frame } from "./frame";

/** A curve: a value for each row, NaN where nothing was measured. */
export interface Curve {
  times: Float64Array;
  values: Float64Array;
  /** Rates hold from the sample before to their own; levels are joined by straight lines. */
  isSteps: boolean;
  /** Whether a row does not follow from the one before: a gap lies between. */
  isBroken: (row: number) => boolean;
}

/** Calls `each` with the first and the last row of every unbroken part. */
function eachRun(curve: Curve, each: (first: number, last: number) => void): void {
  const { times, values } = curve;
  let first = -1;
  for (let row = 0; row < times.length; row++) {
    const isMissing = Number.isNaN(values[row] ?? NaN);
    if (first >= 0 && (isMissing || curve.isBroken(row))) {
      each(first, row - 1);
      first = -1;
    }
    if (!isMissing && first < 0) first = row;
  }
  if (first >= 0) each(first, times.length - 1);
}

/** Where the time of a row begins on the canvas: at the row before, if that is not beyond a gap. */
function beginning(curve: Curve, frame: Frame, row: number): number {
  const own = frame.x(curve.times[row] ?? 0);
  return row === 0 || curve.isBroken(row) ? own - frame.ratio : frame.x(curve.times[row - 1] ?? 0);
}

/** The points of a run of rows, from left to right or back. */
function trace(path: Path2D, curve: Curve, values: Float64Array | null, frame: Frame, first: number, last: number, isBack: boolean) {
  const y = (row: number) => frame.y(values === null ? 0 : (values[row] ?? 0));
  const count = last - first + 1;
  for (let i = 0; i < count; i++) {
    const row = isBack ? last - i : first + i;
    const x = frame.x(curve.times[row] ?? 0);
    if (!curve.isSteps) {
      path.lineTo(x, y(row));
      continue;
    }
    const start = row === first ? beginning(curve, frame, row) : frame.x(curve.times[row - 1] ?? 0);
    path.lineTo(isBack ? x : start, y(row));
    path.lineTo(isBack ? start : x, y(row));
  }
}

/** The line of a curve. A sample that stands alone is a dot as wide as the line, or it would not be seen. */
export function line(curve: Curve, frame: Frame): Path2D {
  const path = new Path2D();
  eachRun(curve, (first, last) => {
    const at = frame.x(curve.times[first] ?? 0);
    const start = curve.isSteps ? beginning(curve, frame, first) : at - (first === last ? frame.ratio : 0);
    path.moveTo(start, frame.y(curve.values[first] ?? 0));
    trace(path, curve, curve.values, frame, first, last, false);
  });
  return path;
}

/** The area between a curve and what is `below` it: another curve's values on the same rows, or 0. */
export function area(curve: Curve, below: Float64Array | null, frame: Frame): Path2D {
  const path = new Path2D();
  const isWide = (first: number, last: number) => curve.isSteps || last > first;
  eachRun(curve, (first, last) => {
    if (!isWide(first, last)) {
      const x = frame.x(curve.times[first] ?? 0);
      const top = frame.y(curve.values[first] ?? 0);
      path.rect(x - frame.ratio, top, 2 * frame.ratio, frame.y(below?.[first] ?? 0) - top);
      return;
    }
    const bottom = zeroed(below);
    const start = curve.isSteps ? beginning(curve, frame, first) : frame.x(curve.times[first] ?? 0);
    path.moveTo(start, frame.y(curve.values[first] ?? 0));
    trace(path, curve, curve.values, frame, first, last, false);
    trace(path, curve, bottom, frame, first, last, true);
    path.closePath();
  });
  return path;
}

/** Under the lowest area of a stack there is nothing: 0, not missing. */
function zeroed(below: Float64Array | null): Float64Array | null {
  if (below === null) return null;
  return below.every((value) => !Number.isNaN(value)) ? below : below.map((value) => (Number.isNaN(value) ? 0 : value));
}

/** The range of values within each row's time, never thinner than a pixel: a peak of one sample is seen at any zoom. */
export function band(curve: Curve, min: Float64Array, max: Float64Array, frame: Frame): Path2D {
  const path = new Path2D();
  for (let row = 0; row < curve.times.length; row++) {
    const [low, high] = [min[row] ?? NaN, max[row] ?? NaN];
    if (Number.isNaN(low) || Number.isNaN(high)) continue;
    const right = frame.x(curve.times[row] ?? 0);
    const left = Math.min(beginning(curve, frame, row), right - frame.ratio);
    const [top, bottom] = [frame.y(high), frame.y(low)].sort((a, b) => a - b) as [number, number];
    path.rect(left, top, right - left, Math.max(bottom - top, frame.ratio));
  }
  return path;
}
