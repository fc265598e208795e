/** Whole groups: keys and accounts of the node behind us, its administration, and what steers a chain made for tests. */
const GROUPS =
  /^(personal|admin|debug|miner|engine|wallet|account|clique|ibft|qbft|les|db|shh|bzz|parity|signer|clef|anvil|hardhat|evm|tenderly|opp2p|sequencer|flashbots|mev)_/i;

/** Of the group that callers may use: what signs, sends, mines, or needs a connection that stays. */
const SINGLE = /^eth_(sign|send|resend|cancel|submit|getWork|setEtherbase|subscribe|unsubscribe)/i;

/** As all clients spell them; anything else is nothing that a node could be asked for. */
const METHOD = /^[a-z][a-zA-Z0-9]*_[a-zA-Z0-9_]{1,60}$/;

/** Whether a method may be put to the chain's endpoints. What is answered here never comes to that. */
export function mayPass(method: string): boolean {
  return METHOD.test(method) && !GROUPS.test(method) && !SINGLE.test(method);
}
