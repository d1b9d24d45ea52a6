/** What is wrong with the shown readings, where they would be. */

import { addressOf } from "../session/view.ts";
import { plural } from "../words/names.ts";
import { Empty } from "./empty.tsx";

export function Problem({ error, known, table }: { error: string | null; known: boolean; table: string }) {
  if (!known && table === "") return <Empty text="Nothing in this recording can be drawn." />;
  if (!known) return <Empty text={`This recording has no table ${table}. Choose another quantity on the left.`} />;
  return error === null ? null : (
    <p class="kin" role="alert">
      {error}
    </p>
  );
}

/** A gap that is damage is not left to be taken for silence. */
export function Damaged({ files }: { files: number }) {
  if (files === 0) return null;
  return (
    <p role="status">
      <span class="shu">{plural(files, "file")} of this time cannot be read</span>; what they held is missing below.{" "}
      <a href={addressOf({ name: "data" })}>Which ones</a>
    </p>
  );
}
