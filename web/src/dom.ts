/** Making elements. All text goes through textContent: names from the host never become markup. */

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text: string | null = null,
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className !== "") made.className = className;
  if (text !== null) made.textContent = text;
  return made;
}

export function button(className: string, text: string, act: () => void): HTMLButtonElement {
  const made = element("button", className, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

export function all<E extends HTMLElement = HTMLElement>(selector: string, root: ParentNode = document): E[] {
  return [...root.querySelectorAll<E>(selector)];
}

/** Scrolls without animation where the reader prefers reduced motion. */
export function scrollTo(target: Element): void {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  target.scrollIntoView({ block: "start", behavior: isStill ? "auto" : "smooth" });
}
