/** Converts every error of the embedded node to a FencepostError that the caller can act on. */
import { WrongChain } from "../../adapters/evm/chain.ts";
import { BadKey } from "../../adapters/evm/signers/private-keys.ts";
import { problemOf } from "../../adapters/http/exchange/problems.ts";
import { SchemaMismatch } from "../../adapters/postgres/schema/migrate.ts";
import { isDatabaseAway } from "../../adapters/postgres/session/is-away.ts";
import { UnsuitableServer } from "../../adapters/postgres/store.ts";
import { FencepostError as FaceError, fromProblem } from "../../client/error-classes.ts";
import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { Mask } from "../../domain/text/mask.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";
import { SchemaTooNew } from "../../ports/lease-store.ts";
import { SignerAway } from "../../ports/signer.ts";
import { ConfigurationError } from "../config/config.ts";
import { SETTING_KEYS, SETTINGS } from "../config/schema.ts";
import { ConfigurationError as OptionsError } from "./own-errors.ts";

/** An error of the node with the class and members that the same error has over HTTP. */
export function asFaceError(error: unknown, mask: Mask): FaceError {
  if (error instanceof FaceError) return error;
  if (error instanceof FencepostError) return fromProblem(problemOf(error, mask), error);
  const known = unavailableService(error);
  if (known !== null) return fromProblem(problemOf(unavailable(known), mask), error);
  const internal = new FencepostError("INTERNAL", `an unexpected error occurred: ${messageOf(error)}`);
  return fromProblem(problemOf(internal, mask), error);
}

/**
 * An error of the caller's own database transaction: it is broken, and everything in it with it, so that nothing was
 * accepted.
 */
export function brokenTransaction(error: unknown): FencepostError {
  const detail = `client: the intent cannot be written in your transaction: ${firstMessage(error)}; roll it back`;
  if (isDatabaseAway(error)) return unavailable(detail, error);
  return new FencepostError("CONFLICT", detail, { path: "client", cause: error });
}

function unavailableService(error: unknown): string | null {
  // Before the database: its error, too, can have a refused connection as cause.
  if (error instanceof ChainUnavailable || error instanceof SignerAway) return error.message;
  const isStore = error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
  return isStore || isDatabaseAway(error) ? `the database does not answer: ${firstMessage(error)}` : null;
}

/** Node's AggregateError of a connection to several addresses has an empty message: use its first cause. */
function firstMessage(error: unknown): string {
  return messageOf(error instanceof AggregateError && error.message === "" ? error.errors[0] : error);
}

/** Errors that a change of the options or of the database's set-up repairs, and waiting does not. */
const OF_OPTIONS = [BadKey, WrongChain, SchemaMismatch, SchemaTooNew, UnsuitableServer];

/** SQLSTATE classes of a connection that the server refuses: no right to connect, or no such database. */
const REFUSED_CONNECTION = /^(?:28|3D|42501)/;

/** An error of `createFencepost`: like any other, and mistakes in its options are named as the caller wrote them. */
export function asStartError(error: unknown, mask: Mask): FaceError {
  if (error instanceof ConfigurationError) return ofOptions(error.mistakes.map(inOptions), error);
  if (OF_OPTIONS.some((Class) => error instanceof Class)) {
    return ofOptions([mask(withOptionNames(messageOf(error)))], error);
  }
  const { code } = Object(error) as { readonly code?: unknown };
  if (typeof code === "string" && REFUSED_CONNECTION.test(code) && !isDatabaseAway(error)) {
    return ofOptions([mask(`databaseUrl: the database refuses the connection: ${messageOf(error)}`)], error);
  }
  return asFaceError(error, mask);
}

function ofOptions(mistakes: readonly string[], cause: unknown): FaceError {
  const path = /^([\w.[\]]+): /.exec(mistakes[0] ?? "")?.[1] ?? "";
  return new OptionsError(path, mistakes, cause);
}

/** Name of the options in the mistakes that the configuration reports about them. */
export const OPTIONS = "createFencepost";

const KEYS: ReadonlyMap<string, string> = new Map(SETTING_KEYS.map((key) => [SETTINGS[key].variable, key]));

/** Names each setting as an option, not as an environment variable, and an item of a list by its index. */
function inOptions(mistake: string): string {
  const named = withOptionNames(mistake.replace(`${OPTIONS}: `, "")).replace(/ is required by start\b/, " is required");
  return named.replace(/^(\w+): .* is wrong at place (\d+): /, (_, option, place) => `${option}[${place - 1}]: `);
}

function withOptionNames(text: string): string {
  return text.replace(/FENCEPOST_[A-Z_]+/g, (variable) => KEYS.get(variable) ?? variable);
}
