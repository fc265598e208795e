/**
 * One kind of work that never overlaps itself. A kick while it runs means "look again afterwards": however many kicks
 * arrive, none is lost and none queues up.
 */
export class Activity {
  private readonly work: () => Promise<void>;
  private readonly onError: (error: unknown) => void;
  private running: Promise<void> | null = null;
  private again = false;

  constructor(work: () => Promise<void>, onError: (error: unknown) => void) {
    this.work = work;
    this.onError = onError;
  }

  kick(): void {
    if (this.running !== null) {
      this.again = true;
      return;
    }
    this.running = this.run();
  }

  /** Resolves when it has run, from its beginning, after this call. */
  now(): Promise<void> {
    this.kick();
    return this.settled();
  }

  /** Resolves when the work under way, if any, has ended. */
  async settled(): Promise<void> {
    while (this.running !== null) await this.running;
  }

  private async run(): Promise<void> {
    do {
      this.again = false;
      try {
        await this.work();
      } catch (error) {
        this.again = false;
        this.onError(error);
      }
    } while (this.again);
    this.running = null;
  }
}
