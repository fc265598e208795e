import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { isTaken, SUBMIT_ANSWERS } from "../../../src/domain/chain/answers.ts";

it("exactly two submission answers mean that an endpoint has the payload", () => {
  expect(SUBMIT_ANSWERS.filter(isTaken)).toEqual(["accepted", "alreadyKnown"]);
});

it("neither the answer `unknown` nor a consumed nonce means that an endpoint has the payload", () => {
  expect(isTaken("unknown")).toBe(false);
  expect(isTaken("nonceConsumed")).toBe(false);
});

// protects [Explained, and said aloud] docs/node-answers.md, src/domain/chain/answers.ts
it("the documentation lists every submission answer, and no other", () => {
  const [, section = ""] = readFileSync("docs/node-answers.md", "utf8").split("## Answers to a submission");
  const documented = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, answer]) => answer);
  expect(documented).toEqual([...SUBMIT_ANSWERS]);
});
