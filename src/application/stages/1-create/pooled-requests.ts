/**
 * Stage 1: whether a request to a pool was made before, on whichever lane. Requests that come in one turn of the event loop
 * share a look.
 *
 * Reads: the rows that pools' requests got with their nonces, and the request ids of the pool's lanes. Writes: nothing; the
 * check that binds is stage 2's, in the transaction that gives the nonce. A crash here leaves nothing behind.
 */
import { type Lane, laneKey } from "../../../domain/lane.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import { poolKey } from "../../../domain/pool.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { AskedOfPool, ExistingTransaction, LaneStore, Spent } from "../../../ports/lane-store.ts";
import { Gathering } from "./gather.ts";

/** With the lanes of the pool, whose callers may have used the same id without naming the pool. */
interface Asked extends AskedOfPool {
  readonly lanes: readonly Lane[];
}

const ENOUGH = 500;

type Owner = ExistingTransaction | Spent;

export class PooledRequests {
  private readonly gathering: Gathering<Asked, Owner | null>;

  constructor(store: Pick<LaneStore, "findPooled" | "findByRequestIds">, clock: Pick<Clock, "soon">) {
    this.gathering = new Gathering(
      clock,
      async (asked, tell) => {
        const found = await look(store, asked);
        asked.forEach((each, at) => void tell(at, found(each)));
      },
      ENOUGH,
    );
  }

  find(asked: Asked): Promise<Owner | null> {
    return this.gathering.add(asked);
  }
}

/** What the pool gave wins over what its lanes have by themselves. */
async function look(store: Pick<LaneStore, "findPooled" | "findByRequestIds">, asked: readonly Asked[]) {
  const ofLanes = asked.flatMap(({ lanes, requestId }) => lanes.map((lane) => ({ lane, requestIds: [requestId] })));
  const [pooled, direct] = await Promise.all([store.findPooled(asked), store.findByRequestIds(ofLanes)]);
  const byPool = new Map(
    pooled.map((each) => {
      const chainId = isSpent(each) ? each.chainId : each.lane.chainId;
      return [`${chainId}:${poolKey(each.pool, each.requestId as string)}`, each];
    }),
  );
  const byLane = new Map(direct.map((each) => [`${laneKey(each.lane)}:${each.requestId}`, each]));
  return ({ chainId, pool, requestId, lanes }: Asked): Owner | null => {
    const given = byPool.get(`${chainId}:${poolKey(pool, requestId)}`);
    return given ?? lanes.map((lane) => byLane.get(`${laneKey(lane)}:${requestId}`)).find(isFound) ?? null;
  };
}

function isFound<T>(value: T | undefined): value is T {
  return value !== undefined;
}
