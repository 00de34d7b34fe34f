/** For a page that gets new data again and again: pauses, and the reader's own doings, which must not be disturbed. */

export function pause(length_s: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, length_s * 1000));
}

/** Waits as long as nobody looks at the page: a tab in the background asks nothing. */
export async function seen(): Promise<void> {
  if (document.visibilityState === "visible") return;
  await new Promise((resolve) => addEventListener("visibilitychange", resolve, { once: true }));
}

/** Gives a function that waits as long as a pointer is held down: what is clicked or dragged stays where it is. */
export function patience(): () => Promise<void> {
  let isHeld = false;
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const) {
    addEventListener(kind, (event) => (isHeld = event.buttons !== 0), { capture: true, passive: true });
  }
  return async () => {
    while (isHeld) await pause(0.1);
  };
}
