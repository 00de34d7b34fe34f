/** When there may be something new: the server says so by an event where it can, and the page asks from time to time elsewhere. */

import { pause } from "./live";

/** A connection of which the end was lost is noticed by then. */
const SILENCE_S = 60;
/** A server that had no room for one more stream of events may have some after so many questions without. */
const QUESTIONS = 30;

export class Changes {
  #stream: EventSource | null = null;
  #isNew = false;
  #wake: (() => void) | null = null;
  #questions = 0;

  /** `url`: where the server sends events; undefined where it sends none. `every_s`: how long to wait without them. */
  constructor(
    private readonly url: string | undefined,
    private readonly every_s: number,
  ) {
    // A page in the background holds no connection: a browser has six to a server, for all of its pages.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#note();
      else this.#close();
    });
  }

  /** Waits until there may be something new. */
  async next(): Promise<void> {
    this.#follow();
    const isFollowing = this.#stream !== null && this.#stream.readyState !== EventSource.CLOSED;
    if (!this.#isNew) {
      const heard = new Promise<void>((resolve) => (this.#wake = resolve));
      await Promise.race([heard, pause(isFollowing ? SILENCE_S : this.every_s)]);
    }
    this.#isNew = false;
    this.#wake = null;
  }

  #follow(): void {
    if (this.url === undefined || !("EventSource" in window) || document.visibilityState !== "visible") return;
    if (this.#stream?.readyState === EventSource.CLOSED) {
      this.#questions += 1;
      if (this.#questions % QUESTIONS !== 0) return;
      this.#stream = null;
    }
    if (this.#stream !== null) return;
    this.#stream = new EventSource(this.url);
    // An error has its reason in the answer to the next question; the browser itself connects again, where there was no refusal.
    for (const kind of ["open", "message", "error"]) this.#stream.addEventListener(kind, () => this.#note());
  }

  #note(): void {
    this.#isNew = true;
    this.#wake?.();
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = null;
  }
}
