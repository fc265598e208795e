import { describe, expect, it } from "vitest";
import {
  ERROR_CATALOGUE,
  type ErrorCode,
  FencepostError,
  invalid,
  REJECTION_REASONS,
  unavailable,
} from "../../src/domain/errors.ts";

/** The contract's own list, status by status; a code more or less is a change of the public contract. */
const CONTRACT: Readonly<Record<ErrorCode, number>> = {
  INVALID_REQUEST: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  NOT_LEADER: 409,
  REQUEST_ID_REUSED: 409,
  CONFLICT: 409,
  EPOCH_CHANGED: 409,
  FEED_TRUNCATED: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNKNOWN_SIGNER: 422,
  UNKNOWN_CHAIN: 422,
  SUBMISSION_REJECTED: 422,
  QUEUE_FULL: 429,
  QUOTA_EXCEEDED: 429,
  UNAVAILABLE: 503,
  INTERNAL: 500,
};
const CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

describe("the error catalogue", () => {
  it("has the contract's codes and statuses", () => {
    expect(Object.fromEntries(CODES.map((code) => [code, ERROR_CATALOGUE[code].status]))).toEqual(CONTRACT);
  });

  it.each(CODES)("explains %s in words", (code) => {
    const { title, status } = ERROR_CATALOGUE[code];
    expect(title).toMatch(/^[A-Z].{10,}[^.]$/);
    expect(new FencepostError(code, "why").status).toBe(status);
  });

  it("lets no caller retry its own mistake", () => {
    const retriable = CODES.filter((code) => ERROR_CATALOGUE[code].retry !== "never");
    expect(retriable.sort()).toEqual(["INTERNAL", "NOT_LEADER", "QUEUE_FULL", "QUOTA_EXCEEDED", "UNAVAILABLE"]);
  });

  it("names the reasons for a rejection", () => {
    expect([...REJECTION_REASONS].sort()).toEqual(
      [
        ...["GAS_OVER_BLOCK", "GAS_TOO_LOW", "INSUFFICIENT_FUNDS", "INVALID_INPUT", "INVALID_SIGNATURE", "REVERT"],
        ...["FEE_OVER_CEILING", "FEE_TOO_LOW", "NO_CODE"],
      ].sort(),
    );
  });
});

describe("an error", () => {
  it("carries its code, message, members and cause", () => {
    const cause = new Error("the socket broke");
    const error = new FencepostError("NOT_LEADER", "ask node 2", { ownerUrl: "http://node-2", cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "FencepostError", code: "NOT_LEADER", message: "ask node 2", cause });
    expect(error.extras).toEqual({ ownerUrl: "http://node-2" });
  });

  it("without members has none, and no cause", () => {
    const error = new FencepostError("INTERNAL", "oh");
    expect(error.extras).toEqual({});
    expect("cause" in error).toBe(false);
  });

  it("about bad input names the field, or the body as a whole", () => {
    expect(invalid("payload.to", "is required")).toMatchObject({
      code: "INVALID_REQUEST",
      message: "payload.to: is required",
      extras: { path: "payload.to" },
    });
    expect(invalid("", "must be an object")).toMatchObject({
      message: "body: must be an object",
      extras: { path: "" },
    });
  });

  it("about a service that is away says when to retry", () => {
    const cause = new Error("ECONNREFUSED");
    expect(unavailable("gone", cause)).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 }, cause });
    expect("cause" in unavailable("gone")).toBe(false);
  });
});
