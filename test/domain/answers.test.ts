import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { isTaken, SUBMIT_ANSWERS } from "../../src/domain/answers.ts";

it("a node holds the payload after exactly two of the answers", () => {
  expect(SUBMIT_ANSWERS.filter(isTaken)).toEqual(["accepted", "alreadyKnown"]);
});

it("unknown is not among what a node holds, nor is a consumed nonce", () => {
  expect(isTaken("unknown")).toBe(false);
  expect(isTaken("nonceConsumed")).toBe(false);
});

it("each stands in the documentation, and no other", () => {
  const [, section = ""] = readFileSync("docs/node-answers.md", "utf8").split("## Answers to a submission");
  const documented = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, answer]) => answer);
  expect(documented).toEqual([...SUBMIT_ANSWERS]);
});
