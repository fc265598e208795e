import { describe, expect, it } from "vitest";
import {
  ERROR_CATALOGUE,
  type ErrorCode,
  FencepostError,
  invalid,
  REJECTION_REASONS,
  unavailable,
} from "../../src/domain/errors.ts";

/** The expected HTTP status of each error code. Adding or removing a code changes the public contract. */
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
  it("has the codes and statuses of the API contract", () => {
    expect(Object.fromEntries(CODES.map((code) => [code, ERROR_CATALOGUE[code].status]))).toEqual(CONTRACT);
  });

  it.each(CODES)("has a text description of %s", (code) => {
    const { title, status } = ERROR_CATALOGUE[code];
    expect(title).toMatch(/^[A-Z].{10,}[^.]$/);
    expect(new FencepostError(code, "why").status).toBe(status);
  });

  it("marks no error that the caller caused as retryable", () => {
    const retriable = CODES.filter((code) => ERROR_CATALOGUE[code].retry !== "never");
    expect(retriable.sort()).toEqual(["INTERNAL", "NOT_LEADER", "QUEUE_FULL", "QUOTA_EXCEEDED", "UNAVAILABLE"]);
  });

  it("lists every reason for which a transaction can be rejected", () => {
    expect([...REJECTION_REASONS].sort()).toEqual(
      [
        ...["GAS_OVER_BLOCK", "GAS_TOO_LOW", "INSUFFICIENT_FUNDS", "INVALID_INPUT", "INVALID_SIGNATURE", "REVERT"],
        ...["FEE_OVER_CEILING", "FEE_TOO_LOW", "NO_CODE"],
      ].sort(),
    );
  });
});

describe("an API error", () => {
  it("has its code, message, extra fields and cause", () => {
    const cause = new Error("the socket broke");
    const error = new FencepostError("NOT_LEADER", "ask node 2", { ownerUrl: "http://node-2", cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "FencepostError", code: "NOT_LEADER", message: "ask node 2", cause });
    expect(error.extras).toEqual({ ownerUrl: "http://node-2" });
  });

  it("has neither extra fields nor a cause if none were given", () => {
    const error = new FencepostError("INTERNAL", "oh");
    expect(error.extras).toEqual({});
    expect("cause" in error).toBe(false);
  });

  it("for invalid input names the field, or the body as a whole", () => {
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

  it("for an unavailable service states when to retry", () => {
    const cause = new Error("ECONNREFUSED");
    expect(unavailable("gone", cause)).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 }, cause });
    expect("cause" in unavailable("gone")).toBe(false);
  });
});
