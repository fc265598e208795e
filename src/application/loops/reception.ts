/** Who may come in to create something, and how many are at it. */
import { type FencepostError, queueFull, unavailable } from "../../domain/errors.ts";
import { type Admittance, OPEN } from "../admittance.ts";
import { LeaseLapsed } from "../lane/between-owners.ts";
import type { Wakefulness } from "./wakefulness.ts";

interface ReceptionPorts {
  readonly admission: { readonly underWay: number; readonly perNode: number };
  readonly lease: { mayAct(): boolean };
  /** Other nodes that are live, and whether creates are taken to them. */
  readonly cluster: { readonly peers: number; readonly forwards: boolean };
  readonly wakefulness: Pick<Wakefulness, "pausedMs">;
}

export const DRAINING = "this node is shutting down";

export class Reception {
  private readonly ports;
  private open = 0;
  draining = false;
  /** Callers at the door who were not read yet. */
  waiting = 0;

  constructor(ports: ReceptionPorts) {
    this.ports = ports;
  }

  /** A node that shuts down waits for these. */
  get underWay(): number {
    return this.open;
  }

  async counted<T>(creates: Promise<T>): Promise<T> {
    this.open++;
    try {
      return await creates;
    } finally {
      this.open--;
    }
  }

  /** There are other nodes, and creates are taken to them. */
  private get isTakenElsewhere() {
    const { forwards, peers } = this.ports.cluster;
    return forwards && peers > 0;
  }

  /** Null unless this node shuts down and no other node can take its creates. */
  turnedAway(): FencepostError | null {
    return this.draining && !this.isTakenElsewhere ? unavailable(DRAINING) : null;
  }

  /** Whether a create can be taken in right now. Where other nodes are live it can: it is taken to them. */
  admittance(): Admittance {
    const { admission, lease, cluster, wakefulness } = this.ports;
    const turnedAway = this.turnedAway();
    if (turnedAway !== null) return { kind: "closed", refusal: () => turnedAway };
    if (admission.underWay >= admission.perNode && !this.isTakenElsewhere)
      return { kind: "closed", refusal: queueFull };
    if (lease.mayAct() || cluster.peers > 0) return OPEN;
    const pausedMs = wakefulness.pausedMs();
    return { kind: pausedMs === 0 ? "closed" : "soon", refusal: () => new LeaseLapsed(pausedMs) };
  }
}
