// Loaded into a node before anything else (`--import`). From SIGUSR2 on, its wall clock is wrong by CLOCK_JUMP_MS, as
// if an administrator had set the machine's clock. The monotonic clock and timers are not affected.
import { writeSync } from "node:fs";

const RealDate = Date;
let jumpMs = 0;

class JumpingDate extends RealDate {
  /** @param {any[]} given */
  constructor(...given) {
    if (given.length === 0) super(JumpingDate.now());
    else super(...given);
  }

  static now() {
    return RealDate.now() + jumpMs;
  }
}

globalThis.Date = JumpingDate;
process.on("SIGUSR2", () => {
  jumpMs = Number(process.env.CLOCK_JUMP_MS);
  writeSync(1, `the clock says ${new Date().toISOString()}\n`);
});
