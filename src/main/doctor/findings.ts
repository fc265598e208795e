import type { Finding } from "../../adapters/cli/diagnose.ts";
import { SETUP_TROUBLES, type SetupCode } from "../../domain/troubles/setup.ts";

export const fine = (code: string, text: string): Finding => ({ sign: "ok", code, text, fix: null });
export const warning = (code: SetupCode, text: string): Finding => wrong("warning", code, text);
export const mistake = (code: SetupCode, text: string): Finding => wrong("mistake", code, text);

/**
 * Creates a finding, which is one problem to report. Pending migrations are reported under the code SCHEMA, but with a
 * remedy of their own.
 */
function wrong(sign: Finding["sign"], code: SetupCode, text: string): Finding {
  return { sign, code: code === "MIGRATIONS" ? "SCHEMA" : code, text, fix: SETUP_TROUBLES[code] };
}

/** Results of the doctor's checks: a problem to report, or false or null if there is none. */
export type Findings = readonly (Finding | false | null)[];

/** A count with its noun, such as `1 node`, `2 nodes`. */
export const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;
