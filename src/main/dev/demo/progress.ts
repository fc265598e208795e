/** Progress as two bars on a terminal, as occasional lines elsewhere. */
export interface Progress {
  update(accepted: number, confirmed: number): void;
  say(line: string): void;
}

export interface ProgressOutput {
  readonly isTerminal: boolean;
  write(text: string): void;
}

const WIDTH = 32;
const PLAIN_STEP = 10;

export function createProgress(total: number, output: ProgressOutput): Progress {
  return output.isTerminal ? liveProgress(total, output) : plainProgress(total, output);
}

function liveProgress(total: number, { write }: ProgressOutput): Progress {
  let bars = "";
  const draw = (above: string, next: string): void => {
    const erased = bars === "" ? "" : "\u001b[2A\u001b[J";
    write(erased + above + next);
    bars = next;
  };
  return {
    update: (accepted, confirmed) =>
      draw("", `  accepted   ${bar(accepted, total)}\n  confirmed  ${bar(confirmed, total)}\n`),
    say: (line) => draw(`  ${line}\n`, bars),
  };
}

function plainProgress(total: number, { write }: ProgressOutput): Progress {
  let reported = 0;
  return {
    update: (accepted, confirmed) => {
      const percent = Math.floor((confirmed / total) * 100);
      if (percent < reported + PLAIN_STEP) return;
      reported = percent - (percent % PLAIN_STEP);
      write(`accepted ${accepted}, confirmed ${confirmed} of ${total}\n`);
    },
    say: (line) => write(`${line}\n`),
  };
}

function bar(done: number, total: number): string {
  const filled = Math.round((done / total) * WIDTH);
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${String(done).padStart(String(total).length)}/${total}`;
}
