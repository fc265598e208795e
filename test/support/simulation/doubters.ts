import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { CHAIN_ID, SIGNERS, TO } from "../world.ts";
import { Actor } from "./actor.ts";
import { FALSE_REFUSAL } from "./callers.ts";
import type { Crew } from "./crew.ts";
import type { Payers } from "./payers.ts";

/** First value of the doubters' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 400_000_000;

/**
 * One of two endpoints lies, often, about all that a price or a refusal rests on, while callers leave the price and the
 * gas to the nodes. Their requests are accepted in the callers' own database transactions, so none of them may end
 * because of what one endpoint says.
 */
export class Doubters extends Actor {
  private readonly entropy = createSeededEntropy(4_712);
  private readonly accepted = new Set<string>();
  private serial = 0;

  /** What may happen in one step of a simulation. */
  step(crew: Crew, payers: Payers): void {
    const { dice } = this;
    if (dice.chance(0.15)) crew.raiseMarket(dice);
    if (dice.chance(0.15)) crew.refuseFalsely(dice);
    if (dice.chance(0.1)) crew.branchOff(dice);
    if (dice.chance(0.3)) payers.trust();
    if (dice.chance(0.3)) this.deposit(dice.pick(SIGNERS));
  }

  /** Reasons for which an accepted request ended although only one endpoint said so. */
  believed(): readonly string[] {
    const ended = this.world.rows().filter(({ txId, subState }) => subState === "REJECTED" && this.accepted.has(txId));
    const reasons = ended.flatMap(({ history }) => history.map(({ reason }) => reason ?? ""));
    return reasons.filter((reason) => FALSE_REFUSAL.test(reason));
  }

  private deposit(signer: Address): void {
    const ports = { codec: createCodec(), entropy: this.entropy, chainIds: [CHAIN_ID] };
    const intent = normalise(ports, { signer, payload: { to: TO, value: FIRST_VALUE + ++this.serial * 10 } });
    this.world.database.insertIntake(intent);
    this.accepted.add(intent.txId);
  }
}
