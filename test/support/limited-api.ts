import * as authority from "../../src/application/authority.ts";
import { KeyRates } from "../../src/application/key-rates.ts";
import type { FencepostApi } from "../../src/application/operations/calls.ts";
import type { Principal } from "../../src/domain/keys/principal.ts";

const still = new KeyRates({ monotonicMs: () => 0 });

/** The API with the permissions of this API key. By default, the clock for its rate limits stands still. */
export function limitedTo(principal: Principal, api: FencepostApi, rates = still): FencepostApi {
  return authority.limitedTo(principal, api, rates);
}
