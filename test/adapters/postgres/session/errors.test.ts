import pg from "pg";
import { describe, expect, it } from "vitest";
import { asStoreError, provesAbort } from "../../../../src/adapters/postgres/session/errors.ts";
import {
  BatchRefused,
  HistoryChanged,
  NotLoaded,
  OutcomeUnknown,
  StoreUnavailable,
} from "../../../../src/ports/lane-store.ts";
import { InstanceOver } from "../../../../src/ports/lease-store.ts";

function sqlError(code: string | undefined): pg.DatabaseError {
  const error = new pg.DatabaseError("as the server put it", 0, "error");
  error.code = code;
  return error;
}

describe("the classification of PostgreSQL errors", () => {
  it.each(["57014", "55P03", "40P01", "40001", "25P03", "25P04"])(
    "maps SQLSTATE %s to busy, which may be retried",
    (code) => {
      expect(asStoreError(sqlError(code))).toMatchObject({ name: "StoreUnavailable", busy: true });
    },
  );

  it.each(["22021", "22P05", "22003", "22P02", "23505", "23514", "23502", "54000", "FP001"])(
    "maps SQLSTATE %s to a refused batch, because the data is at fault",
    (code) => {
      expect(asStoreError(sqlError(code))).toBeInstanceOf(BatchRefused);
    },
  );

  it.each(["57P01", "57P03", "08006", "53100", "53300", "42P01", "25006", "XX000"])(
    "maps SQLSTATE %s to an unavailable database",
    (code) => {
      expect(asStoreError(sqlError(code))).toMatchObject({ name: "StoreUnavailable", busy: false });
    },
  );

  it("maps any other thrown value to an unavailable database", () => {
    const cause = new Error("Connection terminated unexpectedly");
    expect(asStoreError(cause)).toBeInstanceOf(StoreUnavailable);
    expect(asStoreError(cause).cause).toBe(cause);
    expect(asStoreError("odd").message).toBe("odd");
    expect(asStoreError(sqlError(undefined))).toBeInstanceOf(StoreUnavailable);
  });

  // protects [Many lanes] src/application/writer/committer.ts, src/adapters/postgres/session/errors.ts
  it("passes on errors that the store's interface already defines", () => {
    const known = [
      new StoreUnavailable("a"),
      new BatchRefused("b"),
      new HistoryChanged("c"),
      new OutcomeUnknown("d"),
      new InstanceOver("e"),
      new NotLoaded("f"),
    ];
    for (const error of known) expect(asStoreError(error)).toBe(error);
  });

  it("treats a transaction as aborted only if the server reported a failure", () => {
    for (const code of ["23505", "57014", "25P02", "55P03", "FP001", "25P03"]) {
      expect(provesAbort(sqlError(code))).toBe(true);
    }
    for (const code of ["57P01", "57P02", "08P01", "08006", "25P04", "XX000", "58030"]) {
      expect(provesAbort(sqlError(code))).toBe(false);
    }
    expect(provesAbort(new Error("read ECONNRESET"))).toBe(false);
  });
});
