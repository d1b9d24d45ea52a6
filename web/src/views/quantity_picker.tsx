/** Which quantity is shown, and whether a row is a device or a single series. */

import { columnWords } from "../words/names.ts";
import { drawable, recording } from "../session/recordings.ts";
import { show, view } from "../session/view.ts";

const TABLE_WORDS: Readonly<Record<string, string>> = {
  interfaces: "Interfaces", storage: "Disks", load: "Load", cpu: "CPU", memory: "Memory", objects: "Other objects", polls: "Answers",
};

/** Tables whose rows have a series for each of these. */
const PARTED = new Set(["interfaces", "storage", "objects"]);

export function QuantityPicker() {
  const tables = (recording.value?.tables ?? []).filter(({ labels, columns }) => labels.includes("device") && columns.some(drawable));
  const { table, column } = view.value.quantity;
  return (
    <div class="row">
      <select
        aria-label="Quantity"
        value={`${table}.${column}`}
        onChange={(event) => {
          const [table_ = "", column_ = ""] = event.currentTarget.value.split(".");
          show({ quantity: { table: table_, column: column_ }, also: null }, true);
        }}
      >
        {tables.map((one) => (
          <optgroup key={one.name} label={TABLE_WORDS[one.name] ?? one.name}>
            {one.columns.filter(drawable).map((of) => (
              <option key={of.name} value={`${one.name}.${of.name}`} title={of.doc}>{columnWords(one.name, of.name)}</option>
            ))}
          </optgroup>
        ))}
      </select>
      {PARTED.has(table) && (
        <button
          type="button"
          class="tag"
          aria-pressed={view.value.rows === "series"}
          title="a row for each interface, disk or object"
          onClick={() => show({ rows: view.value.rows === "series" ? "devices" : "series" })}
        >
          split
        </button>
      )}
    </div>
  );
}
