import { describeSettlingContract } from "../../contracts/chain/settling.ts";
import { startLyingEndpoints } from "../../support/lying-endpoints.ts";

for (const endpoints of [1, 2, 3] as const) {
  const name = `EvmChain on EDR, ${endpoints} of its endpoints`;
  describeSettlingContract({ name, endpoints, start: () => startLyingEndpoints(endpoints) });
}
