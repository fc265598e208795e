import type { Codec } from "../../ports/codec.ts";
import type { KillOrder } from "../api.ts";
import type { KillSwitch } from "../cluster/kill-switch.ts";
import { asObject, refuseUnknownKeys } from "../requests/fields.ts";
import { parseSigner } from "../requests/normalise.ts";
import { parseReason } from "../requests/order.ts";

export interface KillPorts {
  readonly codec: Codec;
  readonly kills: Pick<KillSwitch, "order" | "end">;
}

/** Stops, and goes on. At any node, and of no lane: nothing is forwarded to an owner. */
export function killOperations({ codec, kills }: KillPorts) {
  const read = ({ signer, request, actor }: KillOrder) => ({
    signer: signer === null ? null : parseSigner(codec, signer, "signer"),
    actor,
    reason: readReason(request),
  });
  return {
    /** Nothing of a signer, or of any, is sent from any node until this is ended. Stops at once, also if the database is away. */
    kill: async (order: KillOrder) => kills.order(read(order)),
    /** Answers once the end is durable. */
    endKill: async (order: KillOrder) => kills.end(read(order)),
  };
}

/**
 * A kill needs no reason: an emergency must not fail for want of a sentence; and not every proxy passes on a body with
 * DELETE.
 */
function readReason(request: unknown) {
  if (request === undefined || request === null) return UNSAID;
  const fields = asObject(request, "");
  refuseUnknownKeys(fields, ["reason"], "");
  return fields.reason === undefined ? UNSAID : parseReason(fields.reason);
}

const UNSAID = "no reason was given";
