/**
 * An error of the error catalogue (domain/errors.ts) in the form that nodes exchange, over HTTP or through the
 * database.
 */
import { ERROR_CATALOGUE, type ErrorCode, type ErrorExtras, FencepostError, REJECTION_REASONS } from "../errors.ts";

/** An error of the error catalogue (domain/errors.ts) as plain JSON. */
export interface Problem extends ErrorExtras {
  readonly code: ErrorCode;
  readonly detail: string;
}

type Test = (value: unknown) => boolean;

export const isText = (value: unknown): value is string => typeof value === "string";
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const isRevert: Test = (value) => {
  if (typeof value !== "object" || value === null) return false;
  const { name, message, data, args = [] } = value as Readonly<Record<string, unknown>>;
  return [name, message].every((each) => each === null || isText(each)) && isText(data) && Array.isArray(args);
};

/** Checks for the documented fields of an error, by name. Other fields, which a newer node may add, are dropped. */
const EXTRAS: { readonly [Name in keyof Required<ErrorExtras>]: Test } = {
  path: isText,
  hint: isText,
  reason: (value) => REJECTION_REASONS.some((reason) => reason === value),
  revert: isRevert,
  dependsOnPending: (value) => typeof value === "boolean",
  baseFeePerGas: isText,
  retryAfterSeconds: (value) => typeof value === "number" && value >= 0,
  ownerUrl: (value) => value === null || isText(value),
  rule: isText,
  limit: isCount,
  txId: isText,
  txHash: isText,
  nextNonce: isCount,
  outcome: (value) => value === "unknown",
  epoch: isCount,
  resumeAfter: isCount,
};

export function problemFrom({ code, message, extras }: FencepostError): Problem {
  return { ...extras, code, detail: message };
}

/** Rebuilds an error from its fields; null for a code that this version does not know. */
export function errorFrom(fields: Readonly<Record<string, unknown>>): FencepostError | null {
  const { code, detail } = fields;
  if (typeof code !== "string" || !Object.hasOwn(ERROR_CATALOGUE, code)) return null;
  const known = Object.entries(EXTRAS).filter(([name, test]) => Object.hasOwn(fields, name) && test(fields[name]));
  const extras: ErrorExtras = Object.fromEntries(known.map(([name]) => [name, fields[name]]));
  return new FencepostError(code as ErrorCode, typeof detail === "string" ? detail : code, extras);
}
