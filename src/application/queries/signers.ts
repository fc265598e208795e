import { FencepostError } from "../../domain/errors.ts";
import type { Address } from "../../domain/lane.ts";
import { laneKey } from "../../domain/lane.ts";
import type { Codec } from "../../ports/codec.ts";
import type { LaneRecord, QueryStore } from "../../ports/query-store.ts";
import type { Signer } from "../../ports/signer.ts";
import type { SignerView } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { parseSigner } from "../stages/1-create/normalise.ts";
import { silent } from "./silent.ts";

export interface SignerQueryPorts {
  readonly store: Pick<QueryStore, "lanes" | "lanesAfter" | "laneDecisions">;
  readonly signer: Pick<Signer, "addresses">;
  readonly codec: Codec;
  readonly chains: ReadonlyMap<number, ChainContext>;
}

const MOST_DECISIONS = 20;

/** Every configured signer on every chain, used or not, and every lane the database knows beside them. */
export async function signers(ports: SignerQueryPorts): Promise<readonly SignerView[]> {
  return describe(ports, ports.signer.addresses(), await ports.store.lanesAfter(null, 500));
}

export async function signer(ports: SignerQueryPorts, name: string): Promise<readonly SignerView[]> {
  const address = parseSigner(ports.codec, name, "signer");
  const lanes = await ports.store.lanes(address);
  const configured = ports.signer.addresses().filter((held) => held === address);
  if (configured.length === 0 && lanes.length === 0) {
    throw new FencepostError("UNKNOWN_SIGNER", `no node holds the key of ${name}`);
  }
  const views = await describe(ports, configured, lanes);
  return Promise.all(
    views.map(async (view) => ({
      ...view,
      decisions: await ports.store.laneDecisions(view.lane, MOST_DECISIONS),
    })),
  );
}

async function describe(
  ports: SignerQueryPorts,
  configured: readonly Address[],
  lanes: readonly LaneRecord[],
): Promise<readonly SignerView[]> {
  const known = new Map(lanes.map((record) => [laneKey(record.lane), record]));
  for (const chainId of ports.chains.keys()) {
    for (const address of configured) {
      const lane = { chainId, signer: address };
      if (!known.has(laneKey(lane))) known.set(laneKey(lane), unused(lane));
    }
  }
  return Promise.all([...known.values()].map((record) => withChain(ports, record)));
}

async function withChain(ports: SignerQueryPorts, record: LaneRecord): Promise<SignerView> {
  const context = ports.chains.get(record.lane.chainId);
  const { signer: address } = record.lane;
  const [latest, pending, balance] = await Promise.all([
    silent(context?.chain.transactionCount(address, "latest")),
    silent(context?.chain.transactionCount(address, "pending")),
    silent(context?.balance(address)),
  ]);
  const chainCounts = latest === null || pending === null ? null : { latest, pending };
  return { ...record, address, chainCounts, balance };
}

function unused(lane: LaneRecord["lane"]): LaneRecord {
  return {
    lane,
    cursor: null,
    suspendedBy: null,
    owner: null,
    token: 0,
    acquiredAt: null,
    pending: 0,
    confirmed: 0,
    failed: 0,
    stuck: 0,
    reserved: 0,
    holes: [],
    oldestPendingAt: null,
    headOfLine: null,
  };
}
