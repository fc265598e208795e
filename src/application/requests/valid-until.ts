/** `validUntil` of a create: the instant by which its caller wants it mined, or not at all. */
import { invalid } from "../../domain/errors.ts";
import type { Clock } from "../../ports/clock.ts";

const A_DAY_MS = 86_400_000;
/** Whoever means a later one has taken milliseconds for seconds. */
const MOST_DAYS = 366;

/** With its offset: a local time would mean another instant on another machine. */
const INSTANT = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

const EXPECTED = 'must be an instant as in ISO 8601, with its offset, such as "2026-01-31T12:00:00Z"';

/**
 * `clock` bounds how far ahead it may be. That it is not over is judged where the nonce is given, by the database's clock and
 * after the request id: a repeat of what was accepted in time is answered, however late it comes.
 */
export function parseValidUntil(value: unknown, clock: Pick<Clock, "now"> | null): Date | undefined {
  if (value === undefined || value === null) return undefined;
  const at = value instanceof Date ? value : instantOf(value);
  if (Number.isNaN(at.getTime())) throw invalid("validUntil", EXPECTED);
  if (clock !== null && at.getTime() - clock.now().getTime() > MOST_DAYS * A_DAY_MS) {
    throw invalid("validUntil", `must be at most ${MOST_DAYS} days ahead`);
  }
  return at;
}

function instantOf(value: unknown): Date {
  const [text, year, month, day] = (typeof value === "string" ? INSTANT.exec(value) : null) ?? [];
  if (text === undefined) throw invalid("validUntil", EXPECTED);
  // Date takes the 31st of any month, and means the first of the next.
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (Number(day) > daysOfMonth) throw invalid("validUntil", EXPECTED);
  return new Date(text);
}
