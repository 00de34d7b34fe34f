/** Light, dark, or as the reader's system is. */

import { button } from "./dom";
import type { Theme } from "./colours";

type Choice = Theme | "auto";
const ORDER: readonly Choice[] = ["auto", "light", "dark"];
const STORED = "memtide-theme";

export class ThemeChoice {
  #choice: Choice = "auto";
  #isPrinting = false;
  readonly #system = matchMedia("(prefers-color-scheme: dark)");
  readonly #listeners: (() => void)[] = [];
  readonly #toggle = button("ghost", "", () => this.next());

  constructor(fromLink: string | null) {
    this.#toggle.id = "theme";
    document.querySelector(".host-line")?.append(this.#toggle);
    this.set(isChoice(fromLink) ? fromLink : stored());
    this.#system.addEventListener("change", () => this.#tell());
  }

  get current(): Theme {
    if (this.#isPrinting) return "light";
    if (this.#choice !== "auto") return this.#choice;
    return this.#system.matches ? "dark" : "light";
  }

  /** What a link has to say to give the same; null where the reader's system decides. */
  get chosen(): Theme | null {
    return this.#choice === "auto" ? null : this.#choice;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** As the system, light, dark, and round again. */
  next(): void {
    const after = ORDER[(ORDER.indexOf(this.#choice) + 1) % ORDER.length] ?? "auto";
    this.set(after);
    try {
      localStorage.setItem(STORED, after);
    } catch {
      // A page opened from a mail may not store anything; the choice then lasts as long as the page.
    }
  }

  set(choice: Choice): void {
    this.#choice = choice;
    const { dataset } = document.documentElement;
    if (choice === "auto") delete dataset.theme;
    else dataset.theme = choice;
    this.#toggle.textContent = `Theme: ${choice}`;
    this.#tell();
  }

  /** Paper is white. */
  print(isPrinting: boolean): void {
    this.#isPrinting = isPrinting;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

export function isChoice(word: string | null): word is Choice {
  return ORDER.some((choice) => choice === word);
}

function stored(): Choice {
  try {
    const word = localStorage.getItem(STORED);
    return isChoice(word) ? word : "auto";
  } catch {
    return "auto";
  }
}
