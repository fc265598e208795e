/** A lane's nonces by what holds them, a stretch at a time. */
import { FencepostError, invalid } from "../../domain/errors.ts";
import { spansOf } from "../../domain/nonces/nonce-spans.ts";
import type { NonceRulerQuery } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";

/** Nonces at once. */
const MOST = 2_000;
/** Of what is over, so many are shown where nobody says from where. */
const BELOW = 100;

export async function rulerOf(
  ports: Pick<CallPorts, "codec" | "store" | "signer" | "chains">,
  name: string,
  query: NonceRulerQuery = {},
) {
  const { store, chains } = ports;
  const signer = parseSigner(ports.codec, name, "signer");
  const lane = { chainId: parseChainId([...chains.keys()], query.chainId), signer };
  const { cursor, firstOpen } = await store.nonces(lane, 0, -1);
  if (cursor === null && !ports.signer.addresses().includes(signer)) {
    throw new FencepostError("UNKNOWN_SIGNER", `no node holds the key of ${name}`);
  }
  const final = firstOpen ?? cursor ?? 0;
  const { from, to } = stretch(query, final, cursor ?? 0);
  const held = await store.nonces(lane, from, to);
  const mined = chains.get(lane.chainId)?.counts.lastTold(signer).latest ?? null;
  // Nonces from the cursor on have not been given to anybody.
  const last = Math.min(to, (cursor ?? 0) - 1);
  // `mined`: the chain's last count; `final`: every nonce below it is over.
  return { lane, from, to, cursor, mined, final, spans: spansOf(from, last, held) };
}

function stretch({ from, to }: NonceRulerQuery, final: number, cursor: number) {
  const end = Math.max(0, cursor - 1);
  const near = Math.min(final - BELOW, to ?? Number.MAX_SAFE_INTEGER);
  const first = from ?? Math.max(0, near, to === undefined ? 0 : to - MOST + 1);
  const last = to ?? Math.max(first, Math.min(end, first + MOST - 1));
  if (last < first) throw invalid("to", "is below from");
  if (last - first >= MOST) throw invalid("to", `is too far from ${first}: at most ${MOST} nonces are shown at once`);
  return { from: first, to: last };
}
