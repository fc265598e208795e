import type { FencepostError } from "../../../src/domain/errors.ts";
import { isSettled } from "../../../src/domain/transitions.ts";
import { SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import type { Dice } from "./dice.ts";

/** What whoever asks for too much may hear: it is refused, or nobody could be asked. */
const EXPECTED: readonly string[] = ["CONFLICT", "NOT_LEADER", "UNAVAILABLE", "QUEUE_FULL", "NOT_FOUND"];

/** Callers and operators who name fees above the ceiling: whatever else goes wrong, none of them is obeyed. */
export class Spendthrifts {
  readonly absurd: string[] = [];
  refused = 0;
  private readonly world: World;
  private readonly dice: Dice;
  private readonly nodes: () => readonly WorldNode[];

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    this.world = world;
    this.dice = dice;
    this.nodes = nodes;
  }

  ask(): void {
    const [node] = [this.nodes()].filter((nodes) => nodes.length > 0).map((nodes) => this.dice.pick(nodes));
    if (node === undefined) return;
    const deed = this.dice.pick([
      () => this.create(node),
      () => this.act(node, "reprice"),
      () => this.act(node, "cancel"),
    ]);
    deed().then(
      (answer) => answer !== null && this.absurd.push(`fees above the ceiling were taken: ${JSON.stringify(answer)}`),
      (error: FencepostError) => this.note(error),
    );
  }

  private get fees() {
    const most = this.world.ceilings.feePerGas;
    return { maxFeePerGas: String(most * 2n), maxPriorityFeePerGas: String(most) };
  }

  private async create({ node }: WorldNode): Promise<unknown> {
    const payload = { to: TO, value: 1, gas: 21_000, ...this.fees };
    const { txId } = await node.api.create({ signer: this.dice.pick(SIGNERS), payload });
    return txId;
  }

  private async act({ node }: WorldNode, action: "reprice" | "cancel"): Promise<unknown> {
    const rows = [...this.world.database.state.transactions.values()].filter((row) => !isSettled(row.state));
    if (rows.length === 0) return null;
    const { txId } = this.dice.pick(rows);
    const request = { reason: "whatever it costs", ...this.fees };
    return (await node.api.act({ action, txId, request, actor: "operator:spendthrift" })).txId;
  }

  private note(error: FencepostError): void {
    if (error.extras?.reason === "FEE_OVER_CEILING") this.refused++;
    else if (!EXPECTED.includes(error.code)) this.absurd.push(`a spendthrift was answered ${String(error)}`);
  }
}
