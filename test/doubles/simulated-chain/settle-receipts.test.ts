import type { Hash } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { describeSettlingContract, type ReceiptLieKind, type SettlingHarness } from "../../contracts/chain/settling.ts";
import { DirectChain } from "./chain-port.ts";
import { SimulatedChain } from "./core.ts";
import { Faults } from "./faults.ts";
import { SampleSender } from "./sample-transactions.ts";

const LIES: Readonly<Record<ReceiptLieKind, (receipt: Receipt) => Receipt | null>> = {
  reverted: (receipt) => ({ ...receipt, status: "reverted" }),
  "other gas": (receipt) => ({ ...receipt, gasUsed: receipt.gasUsed + 1n }),
  "a contract": (receipt) => ({ ...receipt, contractAddress: `0x${"ee".repeat(20)}` }),
  "no receipt": () => null,
};

async function start(endpoints: 1 | 2): Promise<SettlingHarness> {
  const simulated = new SimulatedChain({ tagDepths: { safe: 0, finalized: 0 } });
  const faults = [new Faults(), new Faults()] as const;
  const second = endpoints === 2 ? { elsewhere: { chain: simulated, faults: faults[1] } } : {};
  const chain = new DirectChain(simulated, { faults: faults[0], proves: true, ...second });
  const alice = new SampleSender(1);
  return {
    chain,
    transfers: await Promise.all([0, 1, 2].map((nonce) => alice.sign({ nonce }))),
    sender: alice.address,
    mine: async () => void simulated.mine(),
    lie: (endpoint, txHash: Hash, kind) => {
      const lie = (honest: Receipt) => (kind !== null && honest.txHash === txHash ? LIES[kind](honest) : honest);
      faults[endpoint]?.lieAboutReceipts(lie);
    },
    pin: (endpoint, blockNumber) => faults[endpoint]?.pinHead(blockNumber),
    knowsTags: (endpoint, knows) => faults[endpoint]?.lieAboutTags(knows ? null : () => null),
    close: () => chain.close(),
  };
}

describeSettlingContract({ name: "DirectChain alone", endpoints: 1, start: () => start(1) });
describeSettlingContract({ name: "DirectChain with a second endpoint", endpoints: 2, start: () => start(2) });
