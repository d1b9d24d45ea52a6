import { expect, it } from "vitest";
import {
  DEFAULT_PROFILE,
  formatProfile,
  joinNames,
  type ProfileView,
  parseProfile,
  splitNames,
} from "./profile_address.ts";

function there(of: ProfileView): { view: ProfileView; problems: string[] } {
  const parts = new URLSearchParams(formatProfile(of).map(([name, text]) => [name, text]));
  const problems: string[] = [];
  return { view: parseProfile(new URLSearchParams(parts.toString()), 0, problems), problems };
}

it("a link restores what is shown of a profile", () => {
  const of: ProfileView = {
    host: "node001",
    cpu: 3,
    process: "solver*",
    job: "slurm:12",
    counted: "off_cpu",
    by: "thread",
    shape: "time",
    search: "mul",
    focus: ["main", "a;b\\c", "operator()(int, char)"],
    fn: "f<&>",
    than: { fromUs: 1_795_294_799_020_000, toUs: 1_795_294_800_000_000 },
    thanHost: "node002",
  };
  expect(there(of)).toEqual({ view: of, problems: [] });
  expect(there(DEFAULT_PROFILE)).toEqual({ view: DEFAULT_PROFILE, problems: [] });
  expect(formatProfile(DEFAULT_PROFILE)).toEqual([]);
});

it("what cannot be read is named and as usual", () => {
  const problems: string[] = [];
  expect(parseProfile(new URLSearchParams("cpu=x&by=colour&than=yesterday"), 0, problems)).toEqual(DEFAULT_PROFILE);
  expect(problems).toEqual(["cpu=x", "by=colour", "than=yesterday"]);
});

it("names may hold what stands between them", () => {
  for (const names of [[], [""], ["a"], ["a;", "\\", ";\\;"], ["", ""]]) {
    // One name without letters reads as none, and there is no such function.
    expect(splitNames(joinNames(names))).toEqual(names.join("") === "" && names.length === 1 ? [] : names);
  }
});
