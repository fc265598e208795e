import type { Readiness } from "../api.ts";
import type { ReadCalls } from "../queries/reads.ts";
import type { SightCalls } from "../queries/sights.ts";
import type { CreateCalls } from "./create-calls.ts";
import type { JsonRpcCalls } from "./json-rpc.ts";
import type { KeyCalls } from "./keys.ts";
import type { KillCalls } from "./kill.ts";
import type { NoticeCalls } from "./notices.ts";
import type { OwnerCalls } from "./operations.ts";
import type { PolicyCalls } from "./policies.ts";

/**
 * One typed record of what performs each call: HTTP, the library and the tests all use it. Each call is described where it
 * is performed. A call that fails for a reason a caller can act on throws a FencepostError.
 */
export interface FencepostApi
  extends CreateCalls,
    JsonRpcCalls,
    KeyCalls,
    KillCalls,
    NoticeCalls,
    OwnerCalls,
    PolicyCalls,
    ReadCalls,
    SightCalls {
  /** Of one chain, or of any. UNKNOWN_CHAIN if the one asked for is not configured. */
  readiness(chainId?: number): Promise<Readiness>;
}
