/**
 * Stage 1, last step: names the error that a contract reverted with by the ABI that the caller gave.
 * Reads: the request and the refusal. Writes: nothing. Invariant: an error that does not fit the ABI stays as it is.
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
  result: T,
): T | FencepostError {
  if (!(result instanceof FencepostError)) return result;
  const { revert, ...extras } = result.extras;
  const abi = abiOf(request.payload);
  if (abi === null || revert === undefined || revert.name !== null) return result;
  const decoded = codec.decodeError(abi, revert.data as Hex);
  if (decoded === null) return result;
  const { name, args } = decoded;
  const words = `${name}(${args.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(", ")})`;
  const message = words.slice(0, LONGEST_WORDS);
  const named = { ...revert, name, args, message };
  return new FencepostError(result.code, `the call would revert: ${message}`, {
    ...extras,
    revert: named,
    cause: result,
  });
}

/** The ABI stands beside the name of a function or of a deployment, or in the place of the function. */
function abiOf(payload: unknown): readonly unknown[] | null {
  const { abi, function: callee } = (payload ?? {}) as { readonly abi?: unknown; readonly function?: unknown };
  const given = abi ?? callee;
  return Array.isArray(given) ? given : null;
}
