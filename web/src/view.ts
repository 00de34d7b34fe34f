/** What is being looked at: the stretch of time, the cursor, the finding, and how a link tells it. */

import type { View } from "./levels";

interface State {
  view: View;
  /** Where the cursor stays when nothing hovers. */
  pinned: number;
  /** Where the pointer is. */
  hovered: number | null;
  /** The finding that tints the charts. */
  finding: number;
}

type Part = "view" | "cursor" | "finding";
type Listener = (changed: ReadonlySet<Part>) => void;

export class Looking {
  #state: State;
  readonly #listeners: Listener[] = [];
  #changed = new Set<Part>();
  #frame = 0;

  constructor(
    readonly whole: View,
    private readonly worst: number,
    /** The shortest stretch worth drawing: a few samples. */
    private readonly least: number,
  ) {
    this.#state = { view: whole, pinned: worst, hovered: null, finding: 0 };
  }

  get view(): View {
    return this.#state.view;
  }

  /** The moment that is told: where the pointer is, else the pinned one. */
  get cursor(): number {
    return this.#state.hovered ?? this.#state.pinned;
  }

  get isHovering(): boolean {
    return this.#state.hovered !== null;
  }

  get isAtWorst(): boolean {
    return this.#state.hovered === null && this.#state.pinned === this.worst;
  }

  get isWhole(): boolean {
    return this.view.from <= this.whole.from && this.view.to >= this.whole.to;
  }

  get finding(): number {
    return this.#state.finding;
  }

  get pinned(): number | null {
    return this.#state.pinned === this.worst ? null : this.#state.pinned;
  }

  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /** Listeners hear of all changes of a frame at once. */
  #tell(part: Part): void {
    this.#changed.add(part);
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }

  flush(): void {
    if (this.#frame !== 0) cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const changed = this.#changed;
    this.#changed = new Set();
    if (changed.size > 0) for (const listener of this.#listeners) listener(changed);
  }

  show(from: number, to: number): void {
    this.#state.view = clamped({ from, to }, this.whole, this.least);
    this.#tell("view");
  }

  showWhole(): void {
    this.show(this.whole.from, this.whole.to);
  }

  /** Makes the view `factor` times as long, around the cursor where that is in it. */
  zoom(factor: number): void {
    const { from, to } = this.view;
    const at = Math.min(Math.max(this.cursor, from), to);
    const length = Math.min((to - from) * factor, this.whole.to - this.whole.from);
    const start = at - ((at - from) / (to - from)) * length;
    const moved = Math.min(Math.max(start, this.whole.from), this.whole.to - length);
    this.show(moved, moved + length);
  }

  /** Moves the view by a part of its length. */
  pan(part: number): void {
    const { from, to } = this.view;
    const by = Math.min(Math.max((to - from) * part, this.whole.from - from), this.whole.to - to);
    this.show(from + by, to + by);
  }

  hover(at: number | null): void {
    if (this.#state.hovered === at) return;
    this.#state.hovered = at;
    this.#tell("cursor");
  }

  pin(at: number): void {
    this.#state.pinned = Math.min(Math.max(at, this.whole.from), this.whole.to);
    this.#state.hovered = null;
    this.#tell("cursor");
  }

  pinWorst(): void {
    this.pin(this.worst);
  }

  select(finding: number): void {
    this.#state.finding = finding;
    this.#tell("finding");
  }
}

/** A view inside the whole range: cut where it leaves it, and made longer around its middle where it is shorter than `least`. */
export function clamped(view: View, whole: View, least: number): View {
  const from = Math.max(view.from, whole.from);
  const to = Math.min(view.to, whole.to);
  if (to - from >= least) return { from, to };
  const length = Math.min(least, whole.to - whole.from);
  const start = Math.min(Math.max((from + to - length) / 2, whole.from), whole.to - length);
  return { from: start, to: start + length };
}

/** What a link says: `v=12.5-30`, `c=18`, `theme=dark`; what it does not say or says wrongly is null. */
export interface Link {
  view: View | null;
  cursor: number | null;
  theme: string | null;
}

export function readLink(hash: string): Link {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const view = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(words.get("v") ?? "");
  const cursor = words.get("c") ?? "";
  return {
    view: view === null || Number(view[1]) >= Number(view[2]) ? null : { from: Number(view[1]), to: Number(view[2]) },
    cursor: /^\d+(\.\d+)?$/.test(cursor) ? Number(cursor) : null,
    theme: words.get("theme"),
  };
}

export function writeLink(link: Link): string {
  const round = (at: number) => String(Math.round(at * 1000) / 1000);
  const words: string[] = [];
  if (link.view !== null) words.push(`v=${round(link.view.from)}-${round(link.view.to)}`);
  if (link.cursor !== null) words.push(`c=${round(link.cursor)}`);
  if (link.theme !== null) words.push(`theme=${link.theme}`);
  return words.length > 0 ? "#" + words.join("&") : "";
}
