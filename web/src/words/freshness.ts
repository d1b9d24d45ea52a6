/** How often an agent really updates a value (table `freshness`), in words. */

import { span } from "./quantity.ts";

export function freshnessWords(kind: string, periodUs: number | null): string {
  switch (kind) {
    case "every_poll":
      return "fresh every poll";
    case "periodic":
      return `updated every ${span(periodUs)}`;
    case "irregular":
      return periodUs === null ? "updated now and then" : `updated about every ${span(periodUs)}`;
    case "frozen":
      return "frozen";
    case "unchanged":
      return "has not changed";
    default:
      return kind.replaceAll("_", " ");
  }
}
