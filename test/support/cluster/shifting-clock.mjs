// Loaded into a node before anything else (`--import`): from SIGUSR2 on, its wall clock is wrong by CLOCK_JUMP_MS, as
// when somebody sets a machine's clock: the monotonic clock and timers are not affected.
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
