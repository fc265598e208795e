/** Rows of `commit_marker`: one for each writing transaction that is under way at a time. */
export class CommitSlots {
  readonly storeId: string;
  private readonly free: number[] = [];
  private highest = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  take(): number {
    return this.free.pop() ?? ++this.highest;
  }

  give(slot: number): void {
    this.free.push(slot);
  }
}
