/** What stands where nothing is yet: what it is, and the one command that fills it. */

import type { ComponentChildren } from "preact";

export function Empty({ text, command, children }: { text: string; command?: string; children?: ComponentChildren }) {
  return (
    <div class="empty" role="status">
      <p>{text}</p>
      {command !== undefined && (
        <p>
          <code>{command}</code>
        </p>
      )}
      {children}
    </div>
  );
}
