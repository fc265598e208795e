// Run by tests: `fencepost` without its launcher, which a bundle cannot follow.
import { main } from "../../dist/main/cli.js";

main(process.argv.slice(2)).then((code) => process.stdout.write("", () => process.exit(code)));
