/** The order in which people count names: `port3` before `port11`, `1/0/9` before `1/0/10`. */

const PIECES = /\d+|\D+/g;

/**
 * Compares names piece by piece: runs of digits by their number, everything else by its letters. The result does not
 * depend on the language of the browser, and only equal names compare as equal: `node1` stands before `node01`.
 */
export function naturally(left: string, right: string): number {
  const [a, b] = [left.match(PIECES) ?? [], right.match(PIECES) ?? []];
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
    const order = comparePieces(a[at] ?? "", b[at] ?? "");
    if (order !== 0) return order;
  }
  if (a.length !== b.length) return a.length - b.length;
  return left.length - right.length || compareLetters(left, right);
}

function isNumber(piece: string): boolean {
  const code = piece.charCodeAt(0);
  return code >= 48 && code <= 57;
}

function comparePieces(a: string, b: string): number {
  if (!isNumber(a) || !isNumber(b)) return compareLetters(a, b);
  // Compared as text, because serial numbers can be longer than a JavaScript number is exact.
  const [left, right] = [a.replace(/^0+/, ""), b.replace(/^0+/, "")];
  return left.length - right.length || compareLetters(left, right);
}

function compareLetters(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A copy in natural order of what `name` says of each. */
export function inNaturalOrder<T>(all: readonly T[], name: (one: T) => string): T[] {
  return [...all].sort((left, right) => naturally(name(left), name(right)));
}
