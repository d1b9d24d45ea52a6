/**
 * The number of the newest painted interval as pixels, so that a bench can read from the screen itself what a
 * person would see (`bench=1` in the address).
 *
 * A canvas of 35 x 1 cells, each 4 x 4 device pixels, stands in the lower left corner of the window. From the left:
 * one white cell, one black cell (where to begin), 32 cells with the number modulo 2^32, most significant bit
 * first, white for 1; one cell that makes the count of white number cells even. It is drawn in the same animation
 * frame as the strip.
 */

export const CELL_PIXELS = 4;
export const CELLS = 35;

/** Whether each cell is white. */
export function intervalCells(number: number): boolean[] {
  const word = number % 2 ** 32;
  const bits = Array.from({ length: 32 }, (_, at) => Math.floor(word / 2 ** (31 - at)) % 2 === 1);
  return [true, false, ...bits, bits.filter(Boolean).length % 2 === 1];
}

/** Reads the cells back; null if they are none. */
export function readIntervalCells(white: readonly boolean[]): number | null {
  if (white.length !== CELLS || white[0] !== true || white[1] !== false) return null;
  const bits = white.slice(2, 34);
  if (white.slice(2).filter(Boolean).length % 2 !== 0) return null;
  return bits.reduce((sum, bit) => sum * 2 + (bit ? 1 : 0), 0);
}

export function drawIntervalCells(canvas: HTMLCanvasElement, number: number): void {
  if (canvas.width !== CELLS * CELL_PIXELS) {
    canvas.width = CELLS * CELL_PIXELS;
    canvas.height = CELL_PIXELS;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.width = `${canvas.width / ratio}px`;
    canvas.style.height = `${canvas.height / ratio}px`;
  }
  const context = canvas.getContext("2d");
  if (context === null) return;
  intervalCells(number).forEach((white, at) => {
    context.fillStyle = white ? "#fff" : "#000";
    context.fillRect(at * CELL_PIXELS, 0, CELL_PIXELS, CELL_PIXELS);
  });
}
