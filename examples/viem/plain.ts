import { createWalletClient, http, nonceManager, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { key, payments, rpcUrl } from "./settings.ts";

const wallet = createWalletClient({
  account: privateKeyToAccount(key, { nonceManager }),
  chain: foundry,
  transport: http(rpcUrl),
  pollingInterval: 200,
}).extend(publicActions);

const paid = await Promise.allSettled(
  payments.map(async (payment) => {
    const hash = await wallet.sendTransaction(payment);
    return wallet.waitForTransactionReceipt({ hash, timeout: 5_000 });
  }),
);
console.log(paid.filter((each) => each.status === "fulfilled" && each.value.status === "success").length);
