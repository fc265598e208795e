import { createClient } from "fencepost/client";
import { fencepost } from "fencepost/viem";
import { createWalletClient, http, publicActions } from "viem";
import { foundry } from "viem/chains";
import { payments, rpcUrl, signer, url } from "./settings.ts";

const wallet = createWalletClient({
  account: signer,
  chain: foundry,
  transport: fencepost({ client: createClient({ url }), rpc: http(rpcUrl) }),
  pollingInterval: 200,
}).extend(publicActions);

const paid = await Promise.allSettled(
  payments.map(async (payment) => {
    const hash = await wallet.sendTransaction(payment);
    return wallet.waitForTransactionReceipt({ hash, timeout: 5_000 });
  }),
);
console.log(paid.filter((each) => each.status === "fulfilled" && each.value.status === "success").length);
