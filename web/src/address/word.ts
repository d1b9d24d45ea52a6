/** Reads single words of an address. */

/**
 * Gives a reader of `parts`: the value of a name as `read` understands it, or `otherwise`. What it does not understand is
 * named in `problems`.
 */
export function wordsOf(parts: URLSearchParams, problems: string[]) {
  return <T>(name: string, read: (text: string) => T | null, otherwise: T): T => {
    const text = parts.get(name);
    if (text === null) return otherwise;
    const value = read(text);
    if (value === null) problems.push(`${name}=${text}`);
    return value ?? otherwise;
  };
}
