import type { FastifyRequest } from "fastify";
import { invalid } from "../../../domain/errors.ts";

export const IDEMPOTENCY_KEY = "idempotency-key";
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** The caller's name of its request, if any: requests with the same name are the same request. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers[IDEMPOTENCY_KEY];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || !PRINTABLE_ASCII.test(key)) throw invalid(IDEMPOTENCY_KEY, "must be printable ASCII");
  return key;
}
