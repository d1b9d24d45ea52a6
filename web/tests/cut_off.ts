/** Whether a text is cut off, as the page itself finds it. */

/** Texts that reach beyond what an element around them shows, or beyond the window. */
export function cutOff(): string[] {
  const found = new Set<string>();
  for (const element of document.querySelectorAll<HTMLElement>("main *, .time *, .head *, dialog[open] *")) {
    // Plots hide labels at their edges themselves; unseen texts are for those who listen.
    if (element.closest(".unseen, .uplot, .keyword, .mark, select, input") !== null) continue;
    if (![...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim() !== ""))
      continue;
    const range = document.createRange();
    range.selectNodeContents(element);
    const text = range.getBoundingClientRect();
    if (text.width === 0) continue;
    if (text.right > window.innerWidth + 1) found.add(`beyond the window: ${element.textContent}`);
    for (
      let around: HTMLElement | null = element;
      around !== null && around !== document.body;
      around = around.parentElement
    ) {
      if (getComputedStyle(around).overflowX === "visible") continue;
      const box = around.getBoundingClientRect();
      if (text.right > box.left + around.clientLeft + around.clientWidth + 1 || text.left < box.left - 1)
        found.add(`${element.textContent} in ${around.tagName} ${around.className}`);
    }
  }
  return [...found];
}
