import type { Codec } from "../../ports/codec.ts";
import type { KillActionRequest } from "../api.ts";
import type { KillSwitch } from "../cluster/kill-switch.ts";
import { parseReason } from "../requests/action.ts";
import { asObject, refuseUnknownKeys } from "../requests/fields.ts";
import { parseSigner } from "../requests/normalise.ts";

export interface KillPorts {
  readonly codec: Codec;
  readonly kills: Pick<KillSwitch, "start" | "end">;
}

/** Starts and ends kills. Any node does it; a kill belongs to no lane, so it is not forwarded to an owner. */
export function killOperations({ codec, kills }: KillPorts) {
  const read = ({ signer, request, actor }: KillActionRequest) => ({
    signer: signer === null ? null : parseSigner(codec, signer, "signer"),
    actor,
    reason: readReason(request),
  });
  return {
    /**
     * Stops all sends of one signer, or of every signer, on all nodes until the kill is ended. Takes effect at once,
     * even if the database is unavailable.
     */
    kill: async (received: KillActionRequest) => kills.start(read(received)),
    /** Ends a kill; resolves once the end is durable. */
    endKill: async (received: KillActionRequest) => kills.end(read(received)),
  };
}

/**
 * A kill needs no reason: an emergency stop must not fail because of a missing text, and some proxies drop the body of
 * a DELETE.
 */
function readReason(request: unknown) {
  if (request === undefined || request === null) return UNSAID;
  const fields = asObject(request, "");
  refuseUnknownKeys(fields, ["reason"], "");
  return fields.reason === undefined ? UNSAID : parseReason(fields.reason);
}

const UNSAID = "no reason was given";
