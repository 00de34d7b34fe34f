/** The keyboard. */

import type { ThemeChoice } from "./theme";
import type { Looking } from "./view";

export interface Doors {
  looking: Looking;
  /** Goes to the finding before or after the one that was gone to last. */
  stepFinding: (by: number) => void;
  theme: ThemeChoice;
  help: () => void;
  toggleFree: () => void;
  /** The sample so many before or after a moment, as drawn. */
  neighbour: (at: number, by: number) => number;
}

const PAN = 0.25;

export function keyboard(doors: Doors): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null && event.key !== "?") return;
    const act = action(event, doors);
    if (act === null) return;
    act();
    event.preventDefault();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function action(event: KeyboardEvent, { looking, stepFinding, theme, help, toggleFree, neighbour }: Doors): (() => void) | null {
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowRight": {
      const by = event.key === "ArrowLeft" ? -1 : 1;
      return event.shiftKey ? () => looking.pan(by * PAN) : () => step(looking, neighbour(looking.cursor, by));
    }
    case "+":
    case "=":
      return () => looking.zoom(0.5);
    case "-":
      return () => looking.zoom(2);
    case "0":
      return () => looking.showWhole();
    case "[":
      return () => stepFinding(-1);
    case "]":
      return () => stepFinding(1);
    case "f":
      return toggleFree;
    case "t":
      return () => theme.next();
    case "?":
      return help;
    case "Escape":
      return () => looking.pinWorst();
    default:
      return null;
  }
}

/** Moves the cursor and takes the view with it. */
function step(looking: Looking, at: number): void {
  looking.pin(at);
  if (at < looking.view.from) looking.pan(-2 * PAN);
  if (at > looking.view.to) looking.pan(2 * PAN);
}
