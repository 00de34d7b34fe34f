/** The view: stretch of time, cursor and finding, and how a link keeps them. */

import type { View } from "./levels";

interface State {
  view: View;
  /** Where the cursor stays when nothing hovers. */
  pinned: number;
  /** Where the pointer is. */
  hovered: number | null;
  /** The finding that tints the charts. */
  finding: number;
  /** Curves that the reader has hidden: `where.free`. */
  hidden: ReadonlySet<string>;
}

type Part = "view" | "cursor" | "finding" | "hidden";
type Listener = (changed: ReadonlySet<Part>) => void;

/** How a page begins. */
interface Opening {
  /** The whole range. */
  whole: View;
  /** Where the cursor stands. */
  worst: number;
  /** The shortest stretch worth drawing: a few samples. */
  least: number;
  /** What is shown. */
  view: View;
}

/** What is the same for all clocks, by the first one. */
interface Shared {
  opening: Opening;
  state: State;
  readonly listeners: Listener[];
  changed: Set<Part>;
  frame: number;
}

/** All times are by one clock; of two sources the other has its own ({@link Looking.ahead}). */
export class Looking {
  readonly #shared: Shared;

  constructor(
    opening: Opening,
    /** The clock shows so many seconds more than that of what is shared. */
    private readonly by = 0,
    shared: Shared | null = null,
  ) {
    const state = { view: opening.view, pinned: opening.worst, hovered: null, finding: 0, hidden: new Set<string>() };
    this.#shared = shared ?? { opening, state, listeners: [], changed: new Set(), frame: 0 };
  }

  /** The same view and cursor, by a clock that shows so many seconds more. */
  ahead(by: number): Looking {
    return new Looking(this.#opening, this.by + by, this.#shared);
  }

  get #opening(): Opening {
    return this.#shared.opening;
  }

  get #state(): State {
    return this.#shared.state;
  }

  get whole(): View {
    return moved(this.#opening.whole, this.by);
  }

  get view(): View {
    return moved(this.#state.view, this.by);
  }

  /** The moment that is read: where the pointer is, else the pinned one. */
  get cursor(): number {
    return (this.#state.hovered ?? this.#state.pinned) + this.by;
  }

  get isHovering(): boolean {
    return this.#state.hovered !== null;
  }

  get isAtWorst(): boolean {
    return this.#state.hovered === null && this.#state.pinned === this.#opening.worst;
  }

  get isWhole(): boolean {
    return contains(this.#state.view, this.#opening.whole);
  }

  /** Whether it is shown what the page opened with. */
  get isAsOpened(): boolean {
    const { view } = this.#opening;
    return contains(this.#state.view, view) && contains(view, this.#state.view);
  }

  get finding(): number {
    return this.#state.finding;
  }

  get pinned(): number | null {
    return this.#state.pinned === this.#opening.worst ? null : this.#state.pinned + this.by;
  }

  /**
   * Goes on with newer data: their clock begins so many seconds later. Moments stay; but the whole range stays whole, the
   * worst moment the worst, and a view of what the data no longer have keeps its length.
   */
  reopen(opening: Opening, later: number, finding: number): void {
    const state = this.#state;
    const { whole } = opening;
    const view = this.isAsOpened ? opening.view : this.isWhole ? whole : within(moved(state.view, -later), whole);
    const pinned = state.pinned === this.#opening.worst ? opening.worst : nearestIn(whole, state.pinned - later);
    const hovered = state.hovered === null ? null : nearestIn(whole, state.hovered - later);
    this.#shared.opening = opening;
    this.#shared.state = { ...state, view, pinned, hovered, finding };
    for (const part of ["view", "cursor", "finding"] as const) this.#tell(part);
  }

  onChange(listener: Listener): void {
    this.#shared.listeners.push(listener);
  }

  /** Listeners hear of all changes of a frame at once. */
  #tell(part: Part): void {
    this.#shared.changed.add(part);
    this.#shared.frame ||= requestAnimationFrame(() => this.flush());
  }

  flush(): void {
    const { changed, frame, listeners } = this.#shared;
    if (frame !== 0) cancelAnimationFrame(frame);
    this.#shared.frame = 0;
    this.#shared.changed = new Set();
    if (changed.size > 0) for (const listener of listeners) listener(changed);
  }

  show(from: number, to: number): void {
    this.#state.view = clamped(moved({ from, to }, -this.by), this.#opening.whole, this.#opening.least);
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
    const hovered = at === null ? null : at - this.by;
    if (this.#state.hovered === hovered) return;
    this.#state.hovered = hovered;
    this.#tell("cursor");
  }

  pin(at: number): void {
    this.#state.pinned = nearestIn(this.#opening.whole, at - this.by);
    this.#state.hovered = null;
    this.#tell("cursor");
  }

  pinWorst(): void {
    this.pin(this.#opening.worst + this.by);
    this.#state.pinned = this.#opening.worst;
  }

  get hidden(): ReadonlySet<string> {
    return this.#state.hidden;
  }

  /** Shows these curves if one of them is hidden, else hides them. */
  toggle(...curves: string[]): void {
    const { hidden } = this.#state;
    const others = [...hidden].filter((one) => !curves.includes(one));
    this.hide(others.length < hidden.size ? others : [...hidden, ...curves]);
  }

  /** Hides these curves, and shows all others. */
  hide(curves: readonly string[]): void {
    const { hidden } = this.#state;
    if (curves.length === hidden.size && curves.every((one) => hidden.has(one))) return;
    this.#state.hidden = new Set(curves);
    this.#tell("hidden");
  }

  select(finding: number): void {
    this.#state.finding = finding;
    this.#tell("finding");
  }
}

function moved({ from, to }: View, by: number): View {
  return { from: from + by, to: to + by };
}

const nearestIn = ({ from, to }: View, at: number) => Math.min(Math.max(at, from), to);

/** A view of the same length inside the whole range, as far as that is long enough. */
function within({ from, to }: View, whole: View): View {
  const length = Math.min(to - from, whole.to - whole.from);
  const start = Math.min(Math.max(from, whole.from), whole.to - length);
  return { from: start, to: start + length };
}

const contains = (one: View, other: View) => one.from <= other.from && one.to >= other.to;

/** A view inside the whole range: cut where it leaves it, and made longer around its middle where it is shorter than `least`. */
export function clamped(view: View, whole: View, least: number): View {
  const from = Math.max(view.from, whole.from);
  const to = Math.min(view.to, whole.to);
  if (to - from >= least) return { from, to };
  const length = Math.min(least, whole.to - whole.from);
  const start = Math.min(Math.max((from + to - length) / 2, whole.from), whole.to - length);
  return { from: start, to: start + length };
}

/**
 * What a link says: `v=12.5-30`, `c=18`, `h=where.free`, `theme=dark`; what it does not say or says wrongly is null. Without
 * `h` nothing is hidden, but a link to a place of the page (`#recorded`) is about none of this.
 */
export interface Link {
  view: View | null;
  cursor: number | null;
  hidden: readonly string[] | null;
  theme: string | null;
}

export function readLink(hash: string): Link {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const view = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(words.get("v") ?? "");
  const cursor = words.get("c") ?? "";
  return {
    view: view === null || Number(view[1]) >= Number(view[2]) ? null : { from: Number(view[1]), to: Number(view[2]) },
    cursor: /^-?\d+(\.\d+)?$/.test(cursor) ? Number(cursor) : null,
    hidden: words.get("h")?.split(",") ?? (isPlace(hash) ? null : []),
    theme: words.get("theme"),
  };
}

const isPlace = (hash: string) => hash.length > 1 && !hash.includes("=");

export function writeLink(link: Link): string {
  const round = (at: number) => String(Math.round(at * 1000) / 1000);
  const words: string[] = [];
  if (link.view !== null) words.push(`v=${round(link.view.from)}-${round(link.view.to)}`);
  if (link.cursor !== null) words.push(`c=${round(link.cursor)}`);
  if (link.hidden !== null && link.hidden.length > 0) words.push(`h=${link.hidden.map(encodeURIComponent).join()}`);
  if (link.theme !== null) words.push(`theme=${link.theme}`);
  return words.length > 0 ? "#" + words.join("&") : "";
}
