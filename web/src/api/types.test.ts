import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

it("the types are those of the server's document", () => {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/types-from-openapi.mjs", "--check"], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
