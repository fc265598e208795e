#!/usr/bin/env -S node --max-semi-space-size=64 --no-parallel-scavenge
// A node whose figures over time can be switched off and on while it runs: SIGUSR2 changes from one to the other. The product
// has no such switch. The compiled modules are used instead of the bundle, because a bundle exports no class.
import { FigureBook } from "../../dist/application/lane/figure-book.js";
import { main } from "../../dist/main/cli.js";

const { record } = FigureBook.prototype;
let isOn = true;
FigureBook.prototype.record = function counted(commit) {
  if (isOn) record.call(this, commit);
};
process.on("SIGUSR2", () => {
  isOn = !isOn;
});

process.exit(await main(process.argv.slice(2)));
