/**
 * Words that occur in our own messages, settings and codes. A secret that equals such a word is masked only by its
 * shape: in a URL, in a header or after the word password. Elsewhere it stays: with the database password `fencepost`
 * every message would read `***: ***_API_KEYS: is required`. At start a node reports which setting has such a secret.
 */

import { ERROR_CATALOGUE, REJECTION_REASONS } from "../errors.ts";
import { STATES } from "../transaction/transitions.ts";
import { ALERT_CODES } from "../troubles/table.ts";

const SETTINGS = `abi abis addresses admin advertise after age alert all allowance allowed api attempts auth aws balance batch block broadcast ca
  cert chain clock cluster confirmations cost count database depth dir direct drain duration entry expired explorer
  external fee fencepost fetch fields file files finality flight foreign format gas gcp gray gwei head hole hook host
  hosts id ids in interval key keys keystore kms lease length level limit log logs lookback low max mnemonic mode module names
  networks node nonce notifications oldest oracle origins password path paths pattern peer pending policies policy poll
  pools port prepared private query queue range rate raw read receipt reconciliation remote renew repairs reprice repricing request
  reservation reservations reserved resubmit resubmits retention rpc schema secret share signer signers signing size skew
  stale state statements stuck timeout to transaction ttl unit upon url use vault versions webhook wei window workers
  writer ws zone`;

const SENTENCES = `id methods never only public reads send accepted account action actions address already another answer answered answers approve approved attempt behind
  before between blocked blocks cancel cannot ceiling chains changed client commit committed completions config configuration
  configured confirmed connection connections contract created creates critical deadline default detail different directory
  embedded endpoint endpoints errors existing explain failed finalized forbidden hashes history instance instead invalid
  latest leader limits localhost message method migrate missing mnemonics moment newest nonces nothing number operate operator
  options others outcome payload postgres postgresql private problem process reached reason refused rejected release released
  repeat replace requests required resolve result resume running seconds server service session settings signature signed
  stopped submit suspend suspended terminal transactions transfer unavailable unknown unreachable username variable variables
  version waiting waits warning whether without`;

const OWN_WORDS: readonly string[] = [
  ...`${SETTINGS} ${SENTENCES}`.split(/\s+/),
  ...[...Object.keys(ERROR_CATALOGUE), ...REJECTION_REASONS, ...ALERT_CODES, ...STATES].map((code) =>
    code.toLowerCase(),
  ),
];

const KNOWN: ReadonlySet<string> = new Set(OWN_WORDS);

/**
 * True for words of our own messages, parts of them, and combinations like the names of settings: masking them would
 * garble our own messages.
 */
export function isOwnWord(text: string): boolean {
  const lower = text.toLowerCase();
  return OWN_WORDS.some((word) => word.includes(lower)) || lower.split("_").every((part) => KNOWN.has(part));
}
