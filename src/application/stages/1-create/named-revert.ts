/**
 * Stage 1, on the way out: what a contract reverted with, by the names of the ABI that the caller gave.
 * Reads: the request and the refusal. Writes: nothing. Invariant: what does not fit the ABI stays as it was said.
 * A crash here leaves nothing behind: a refusal has consumed nothing.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Hex } from "../../../domain/lane.ts";
import type { Codec } from "../../../ports/codec.ts";
import type { CreateRequest } from "../../api.ts";

const LONGEST_WORDS = 300;

export function withNamedRevert<T>(
  codec: Pick<Codec, "decodeError">,
  request: CreateRequest,
  fate: T,
): T | FencepostError {
  if (!(fate instanceof FencepostError)) return fate;
  const { revert, ...extras } = fate.extras;
  const abi = abiOf(request.payload);
  if (abi === null || revert === undefined || revert.name !== null) return fate;
  const decoded = codec.decodeError(abi, revert.data as Hex);
  if (decoded === null) return fate;
  const { name, args } = decoded;
  const words = `${name}(${args.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(", ")})`;
  const message = words.slice(0, LONGEST_WORDS);
  const named = { ...revert, name, args, message };
  return new FencepostError(fate.code, `the call would revert: ${message}`, { ...extras, revert: named, cause: fate });
}

/** Beside the name of a function, of a deployment, or in the place of the function. */
function abiOf(payload: unknown): readonly unknown[] | null {
  const { abi, function: callee } = (payload ?? {}) as { readonly abi?: unknown; readonly function?: unknown };
  const given = abi ?? callee;
  return Array.isArray(given) ? given : null;
}
