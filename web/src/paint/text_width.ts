/** How wide texts are on the screen, and texts made to fit. */

let context: CanvasRenderingContext2D | null = null;

/** CSS pixels of a text in a font as canvases name it. */
export function textWidth(text: string, font: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (context === null) return 0;
  context.font = font;
  return context.measureText(text).width;
}

/** The text, or its end behind an ellipsis: the ends of names are what tells them apart. */
export function fittedEnd(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  const letters = [...text];
  let [kept, dropped] = [0, letters.length];
  // As many letters as fit, found by halving.
  while (dropped - kept > 1) {
    const middle = Math.floor((kept + dropped) / 2);
    if (measure(`\u2026${letters.slice(-middle).join("")}`) <= width) kept = middle;
    else dropped = middle;
  }
  return `\u2026${kept === 0 ? "" : letters.slice(-kept).join("")}`;
}
