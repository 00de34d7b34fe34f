/** What is drawn over and under curves: tints of findings, brackets, events, gaps, limits with their labels. */

import { FONT, type Frame } from "./frame";
import { severityColour, surface, translucent } from "./colours";
import { merged } from "./gaps";
import type { Finding, Gap, HostEvent, Stretch } from "./page";

export interface Tint {
  finding: Finding;
  /** In order of time. */
  stretches: Stretch[];
  isEvidence: boolean;
}

/**
 * Which findings shade a chart: the selected one first, then those that it is evidence for, then the rest, and none that
 * overlaps one already chosen, so that a shade always means one thing.
 */
export function tints(findings: readonly Finding[], evidenceOf: readonly number[], selected: number): Tint[] {
  const order = findings
    .map((_, index) => index)
    .sort((a, b) => rank(a) - rank(b) || a - b);
  function rank(index: number): number {
    if (index === selected) return 0;
    return evidenceOf.includes(index) ? 1 : 2;
  }
  const chosen: Tint[] = [];
  for (const index of order) {
    const finding = findings[index];
    if (finding === undefined) continue;
    const taken = chosen.flatMap((tint) => tint.stretches).sort((a, b) => a[0] - b[0]);
    const stretches = finding.stretches.filter((stretch) => isFree(stretch, taken));
    if (stretches.length > 0) chosen.push({ finding, stretches, isEvidence: evidenceOf.includes(index) });
  }
  return chosen;
}

/** Whether a stretch has nothing in common with those that are taken, which do not overlap and are in order. */
function isFree([from, to]: Stretch, taken: readonly Stretch[]): boolean {
  let [low, high] = [0, taken.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((taken[middle]?.[1] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return (taken[low]?.[0] ?? Infinity) > to;
}

/** The parts of a frame in which a finding held: pixels, cut at its edges; what lies closer than a pixel is one. */
function* bands(frame: Frame, stretches: readonly Stretch[]): Generator<[left: number, right: number]> {
  let open: [number, number] | null = null;
  for (const [from, to] of stretches) {
    if (to < frame.from || from > frame.to) continue;
    const left = Math.max(frame.x(from), frame.left);
    const right = Math.min(Math.max(frame.x(to), left + frame.ratio), frame.right);
    if (open !== null && left - open[1] < frame.ratio) open[1] = Math.max(open[1], right);
    else {
      if (open !== null) yield open;
      open = [left, right];
    }
  }
  if (open !== null) yield open;
}

export function paintTints(frame: Frame, tints: readonly Tint[]): void {
  const { ctx } = frame;
  for (const { finding, stretches, isEvidence } of tints) {
    const colour = severityColour(finding.severity, frame.theme);
    for (const [left, right] of bands(frame, stretches)) {
      ctx.fillStyle = translucent(colour, isEvidence ? 0.1 : 0.05);
      ctx.fillRect(left, frame.top, right - left, frame.bottom - frame.top);
      if (!isEvidence) continue;
      ctx.fillStyle = colour;
      ctx.fillRect(left, frame.top, right - left, 3 * frame.ratio);
    }
  }
}

/** A stack is never tinted, which would change its colours: lines stand at the ends. */
export function paintBrackets(frame: Frame, tints: readonly Tint[]): void {
  const { ctx, ratio } = frame;
  for (const { finding, stretches } of tints) {
    ctx.fillStyle = severityColour(finding.severity, frame.theme);
    for (const [left, right] of bands(frame, stretches)) {
      ctx.fillRect(left, frame.top, right - left, 3 * ratio);
      ctx.fillRect(left - ratio / 2, frame.top, 1.5 * ratio, frame.bottom - frame.top);
      ctx.fillRect(right - ratio / 2, frame.top, 1.5 * ratio, frame.bottom - frame.top);
    }
  }
}

const CLOSEST_PX = 32;

export function paintEvents(frame: Frame, events: readonly HostEvent[]): void {
  const { ctx, ratio } = frame;
  ctx.fillStyle = dots(ctx, translucent(surface("ink", frame.theme), 0.45), ratio);
  let last = -Infinity;
  for (const event of events) {
    if (!event.is_main || event.at_s < frame.from || event.at_s > frame.to) continue;
    const x = Math.round(frame.x(event.at_s));
    // Closer than this, lines would be a curtain before the data; the navigator counts the events.
    if (x - last < CLOSEST_PX * ratio) continue;
    last = x;
    ctx.fillRect(x, frame.top, ratio, frame.bottom - frame.top);
  }
}

/** Stretches without a recording. Those that less than a pixel lies between are one. */
export function paintGaps(frame: Frame, gaps: readonly Gap[], opacity: number): void {
  const { ctx } = frame;
  ctx.fillStyle = hatch(ctx, translucent(surface("ink-3", frame.theme), opacity), frame.ratio);
  const pixel = ((frame.to - frame.from) / Math.max(frame.right - frame.left, 1)) * frame.ratio;
  for (const [from, to] of merged(gaps, frame, pixel)) {
    // Not beyond the frame: a canvas is slow with what is far outside of it.
    const left = Math.max(frame.x(from), frame.left);
    const right = Math.min(Math.max(frame.x(to), left + frame.ratio), frame.right);
    ctx.fillRect(left, frame.top, right - left, frame.bottom - frame.top);
  }
}

/** Slanted lines: what no colour may stand for. */
export function hatch(ctx: CanvasRenderingContext2D, colour: string, ratio: number): CanvasPattern | string {
  const size = Math.round(6 * ratio);
  return pattern(ctx, "hatch", colour, size, (pen) => {
    pen.strokeStyle = colour;
    pen.lineWidth = 1.4 * ratio;
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift - 1, size + 1);
      pen.lineTo(shift + size + 1, -1);
    }
    pen.stroke();
  });
}

/** What an upright dotted line is filled with; a canvas strokes dashes one by one. */
function dots(ctx: CanvasRenderingContext2D, colour: string, ratio: number): CanvasPattern | string {
  const size = Math.round(4 * ratio);
  return pattern(ctx, "dots", colour, size, (pen) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, size, Math.round(1.5 * ratio));
  });
}

const patterns = new Map<string, CanvasPattern>();

/** A tile of `size` by `size` pixels, drawn once; where that cannot be, the plain colour. */
function pattern(
  ctx: CanvasRenderingContext2D,
  shape: string,
  colour: string,
  size: number,
  draw: (pen: CanvasRenderingContext2D) => void,
): CanvasPattern | string {
  const key = `${shape} ${colour} ${size}`;
  const known = patterns.get(key);
  if (known !== undefined) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  if (pen === null) return colour;
  draw(pen);
  const made = ctx.createPattern(tile, "repeat");
  if (made === null) return colour;
  patterns.set(key, made);
  return made;
}

/** A label's place that is taken, so that no other is written over it. */
export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const overlaps = (a: Box, b: Box) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** A point of a limit's line, and what the limit is there. */
export interface Anchor {
  x: number;
  y: number;
  value: number;
}

/** Labels of limits: above the line or below it, never on another label, and on a curve only where there is no other place. */
export class Labels {
  readonly #taken: Box[] = [];
  constructor(
    private readonly frame: Frame,
    private readonly isBusy: (box: Box) => boolean,
  ) {}

  /** Writes a name, ended where there is no room for it, and what it is worth there, at the first point that is free. */
  put(name: string, worth: (there: Anchor) => string, points: readonly Anchor[]): void {
    this.frame.ctx.font = `${11 * this.frame.ratio}px ${FONT}`;
    const places = [true, false].flatMap((isAbove) =>
      points.flatMap((point) => {
        const text = this.#fitted(name, worth(point));
        const box = this.#box(point, this.#width(text) + 8 * this.frame.ratio, isAbove);
        return box === null ? [] : [{ text, box }];
      }),
    );
    const free = places.filter(({ box }) => !this.#taken.some((other) => overlaps(box, other)));
    const best = free.find(({ box }) => !this.isBusy(box)) ?? free[0];
    if (best !== undefined) this.#write(best.text, best.box);
  }

  #width(text: string): number {
    return this.frame.ctx.measureText(text).width;
  }

  #fitted(name: string, worth: string): string {
    const { ratio, left, right } = this.frame;
    const room = right - left - 14 * ratio;
    let text = `${name} ${worth}`.trim();
    for (let end = name.length - 1; end > 0 && this.#width(text) > room; end--) text = `${name.slice(0, end)}… ${worth}`;
    return text;
  }

  #box({ x, y }: Anchor, width: number, isAbove: boolean): Box | null {
    const { left, right, top, bottom, ratio } = this.frame;
    const start = Math.max(Math.min(x - width / 2, right - width - 3 * ratio), left + 3 * ratio);
    const edge = isAbove ? y - 16 * ratio : y + 2 * ratio;
    if (edge < top + 2 * ratio || edge + 14 * ratio > bottom) return null;
    return { left: start, right: start + width, top: edge, bottom: edge + 14 * ratio };
  }

  #write(text: string, box: Box): void {
    const { ctx, ratio, theme } = this.frame;
    this.#taken.push(box);
    ctx.fillStyle = translucent(surface("panel", theme), 0.82);
    ctx.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    ctx.fillStyle = surface("ink", theme);
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(text, box.left + 4 * ratio, (box.top + box.bottom) / 2 + ratio / 2);
  }
}
